"""Progress callbacks of index builds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias


@dataclass(frozen=True)
class IndexProgress:
    """The progress of a stage: ``completed`` of ``total`` units; ``total`` None: not known.

    ``event``: a stage has a ``start``, any number of ``progress``, and is ``complete``.

    >>> from pennon.vector import vec_to_table
    >>> ds = pennon.write_dataset(vec_to_table([[float(n), 1.0] for n in range(300)]), uri)
    >>> stages = []
    >>> _ = ds.create_index("vector", "IVF_FLAT", num_partitions=1, progress_callback=stages.append)
    >>> stages[0].stage, stages[-1].event
    ('train_ivf', 'complete')
    """

    event: Literal["start", "progress", "complete"]
    stage: str
    completed: int | None = None
    total: int | None = None
    unit: str = ""

    @property
    def fraction(self) -> float | None:
        """Return which share of the stage is done, if that is known."""
        if self.completed is None or not self.total:
            return None
        return self.completed / self.total


Watch: TypeAlias = Callable[[IndexProgress], None]
"""Is told of each event."""


@contextmanager
def with_progress(
    watch: Watch | None, name: str, total: int | None = None, unit: str = ""
) -> Iterator[Callable[[], None]]:
    """Tell of the start and the end of a stage, and give a function to call when one more unit is done."""
    state = IndexProgress("start", name, 0, total, unit)
    if watch is not None:
        watch(state)

    def done() -> None:
        nonlocal state
        state = replace(state, event="progress", completed=(state.completed or 0) + 1)
        if watch is not None:
            watch(state)

    yield done
    if watch is not None:
        watch(replace(state, event="complete"))
