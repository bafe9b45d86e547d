"""Two libraries asked the same in turns, in one process: medians, and the median of the ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self, TypeAlias

import lance

import pennon

LIBRARIES: Final = (pennon, lance)
Ask: TypeAlias = Callable[[Any, Any], Any]
"""Asks something of a library and its handle."""
Turn: TypeAlias = tuple[float, float]
"""Seconds of wall and CPU time."""
HEAD: Final = (
    "| question | Pennon, ms | pylance, ms | ratio, wall | ratio, CPU |\n|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: rows are divided by ``share``, and each question is asked ``runs`` times."""

    runs: int = 7
    share: int = 1


@dataclass(frozen=True, slots=True)
class Figure:
    """The medians of one question: seconds of both, and the ratios of wall and CPU time; above 1 Pennon is faster."""

    name: str
    ours: float
    theirs: float
    wall: float
    cpu: float
    note: str = ""

    @classmethod
    def of(cls, name: str, ours: Sequence[Turn], theirs: Sequence[Turn], note: str = "") -> Self:
        """Return the figure of turns, one of each library beside the other."""
        pairs = list(zip(ours, theirs, strict=True))
        return cls(
            name,
            statistics.median(wall for wall, _ in ours),
            statistics.median(wall for wall, _ in theirs),
            statistics.median(other[0] / mine[0] for mine, other in pairs),
            statistics.median(other[1] / max(mine[1], 1e-6) for mine, other in pairs),
            note,
        )

    def line(self) -> str:
        """Return a row of a Markdown table."""
        ours, theirs = self.ours * 1e3, self.theirs * 1e3
        name = f"{self.name} ({self.note})" if self.note else self.name
        return f"| {name} | {ours:.2f} | {theirs:.2f} | {self.wall:.2f} | {self.cpu:.2f} |"


def ask_in_turns(asked: Mapping[str, Ask], uri: str, runs: int) -> Iterator[Figure]:
    """Yield the figure of each question about a table; both libraries must find as many rows."""
    handles = {library: library.dataset(uri) for library in LIBRARIES}
    for name, ask in asked.items():
        counts = [_rows(ask(library, handle)) for library, handle in handles.items()]
        if counts[0] != counts[1]:
            message = f"{name}: {counts[0]} rows, and {counts[1]} by pylance"
            raise RuntimeError(message)
        yield time_in_turns(name, partial(_ask, ask, handles), runs)


def _ask(ask: Ask, handles: Mapping[Any, Any], library: Any) -> object:
    return ask(library, handles[library])


def time_in_turns(
    name: str,
    work: Callable[[Any], object],
    runs: int,
    prepare: Callable[[Any], object] = lambda _: None,
) -> Figure:
    """Return the figure of some work; ``prepare`` comes before each turn, and is not timed."""
    found: dict[Any, list[Turn]] = {library: [] for library in LIBRARIES}
    for number in range(runs):
        for library in LIBRARIES if number % 2 else LIBRARIES[::-1]:
            prepare(library)
            wall, cpu = time.perf_counter(), time.process_time()
            work(library)
            found[library].append((time.perf_counter() - wall, time.process_time() - cpu))
    return Figure.of(name, found[pennon], found[lance])


def _rows(found: Any) -> int:
    return found if isinstance(found, int) else int(found.num_rows)
