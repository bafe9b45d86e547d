"""The part of the batches that one reader yields."""

from __future__ import annotations

from pennon.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """The part of the batches that one reader yields.

    Rank ``rank`` of ``world_size`` has that part of the rows of each batch; worker ``worker`` of ``workers``
    has every ``workers``-th batch.
    """

    rank: int = 0
    world_size: int = 1
    worker: int = 0
    workers: int = 1

    def of(self, start: int, end: int) -> tuple[int, int]:
        """Return the positions of a batch ``start <= position < end`` that this rank has: shares differ by one row at most."""
        rows = end - start
        return (
            start + rows * self.rank // self.world_size,
            start + rows * (self.rank + 1) // self.world_size,
        )
