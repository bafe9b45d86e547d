"""The iterator of a loader's batches, which reads ahead on threads."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Self, TypeVar

from pennon.core.thread_pools import PoolSpec, map_in_order

T = TypeVar("T")


class BatchIterator(Iterator[T]):
    """An iterator of batches that reads ahead on threads.  `Batches.state_dict` counts what it has returned.

    >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
    >>> with iter(pennon.training.Batches(uri, batch_size=5)) as batches:
    ...     len(next(batches))
    5
    """

    def __init__(
        self,
        starts: range,
        groups: Iterator[Sequence[tuple[int, int]]],
        make: Callable[[Sequence[tuple[int, int]]], Iterable[T]],
        prefetch: int,
        note_progress: Callable[[int], None],
    ) -> None:
        self._note_progress = note_progress
        self._starts = starts
        self._returned = 0
        self._made = _made_ahead(make, groups, prefetch)
        note_progress(starts.start)

    def __iter__(self) -> Self:
        """Return the iterator itself."""
        return self

    def __next__(self) -> T:
        """Return the next batch."""
        made = next(self._made)
        self._returned += 1
        self._note_progress(self._starts.start + self._returned * self._starts.step)
        return made

    def __enter__(self) -> Self:
        """Return the iterator; at the end of the block it is closed."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the iterator."""
        self.close()

    def close(self) -> None:
        """Let go of the batches that were read ahead.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> iter(pennon.training.Batches(uri, batch_size=5)).close()
        """
        self._made.close()


def _made_ahead(
    make: Callable[[Sequence[tuple[int, int]]], Iterable[T]],
    groups: Iterator[Sequence[tuple[int, int]]],
    prefetch: int,
) -> Generator[T, None, None]:
    """Yield what is made of each group of batches, in order; ``prefetch`` threads are ahead of the reader."""
    if not prefetch:
        for group in groups:
            yield from make(group)
        return
    threads = PoolSpec("training", prefetch)
    for made in map_in_order(make, groups, lambda _: 1, prefetch + 1, threads):
        yield from made
