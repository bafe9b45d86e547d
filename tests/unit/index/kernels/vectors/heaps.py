"""Partitions, queries, and heaps of the nearest rows, for kernels and their plain twins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def bytes_of(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return vectors as kernels take them."""
    return np.ascontiguousarray(values).view(np.uint8).reshape(*values.shape[:-1], -1)


class Asked:
    """Partitions of so many rows each, asked by some queries at random; of every third few are passing, of others most or all."""

    def __init__(
        self, rng: np.random.Generator, sizes: Sequence[int], queries: int, heaps: int, most: int
    ) -> None:
        numbers = rng.permutation(sum(sizes)).astype(np.uint64)
        self.rows = [each.copy() for each in np.split(numbers, np.cumsum(sizes)[:-1])]
        masks = [lambda _: None, lambda row: row % 3 != 1, lambda row: row % 20 == 1]
        chosen = [masks[at % 3](each) for at, each in enumerate(self.rows)]
        self.passing = [None if each is None else each.astype(np.uint8) for each in chosen]
        counts = rng.integers(0, heaps + 1, len(sizes))
        self.ends = np.cumsum(counts).astype(np.int64)
        self.numbers = np.concatenate([rng.permutation(heaps)[:count] for count in counts])
        self.places = rng.integers(0, queries, len(self.numbers))
        self.heaps: tuple[Any, Any, Any] = (
            np.empty((heaps, most), np.float32),
            np.empty((heaps, most), np.uint64),
            np.zeros(heaps, np.int64),
        )

    @property
    def pairs(self) -> tuple[Any, ...]:
        """Return what kernels take."""
        return self.rows, self.passing, self.ends, self.numbers, self.places

    def nearest(
        self, far: Callable[[int, int], npt.NDArray[Any]]
    ) -> list[tuple[list[float], list[int]]]:
        """Return how far the nearest rows of each heap are, and which they are; ``far``: of a partition and a query."""
        found: list[list[tuple[float, int]]] = [[] for _ in self.heaps[2]]
        first = 0
        for part, end in enumerate(self.ends.tolist()):
            for pair in range(first, end):
                distances = far(part, int(self.places[pair])).tolist()
                mask = self.passing[part]
                its = zip(distances, self.rows[part].tolist(), strict=True)
                found[self.numbers[pair]] += [
                    each for at, each in enumerate(its) if mask is None or mask[at]
                ]
            first = end
        best = [sorted(each)[: self.heaps[0].shape[1]] for each in found]
        return [([far for far, _ in each], [row for _, row in each]) for each in best]

    def check(self, far: Callable[[int, int], npt.NDArray[Any]], error: float = 1e-4) -> None:
        """Compare heaps with what a plain twin finds."""
        for heap, (distances, rows) in enumerate(self.nearest(far)):
            count = self.heaps[2][heap]
            assert count == len(rows)
            order = np.lexsort((self.heaps[1][heap, :count], self.heaps[0][heap, :count]))
            kept = self.heaps[0][heap, :count][order]
            np.testing.assert_allclose(kept, distances, rtol=1e-4, atol=error)
            same = {*self.heaps[1][heap, :count].tolist()} & {*rows}
            assert len(same) >= 0.98 * count - 1  # what is about as far may change places
