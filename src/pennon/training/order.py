"""The order of a table's rows: a pure function of a few numbers."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError
from pennon.training.kernels.row_order import shuffled_rows

MOST_ROWS: Final = 1 << 62


def order_key(*numbers: int) -> int:
    """Return 64 bits that depend on every bit of some numbers."""
    text = ",".join(map(str, numbers))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True, slots=True)
class Order:
    """The order in which the rows ``0 .. rows - 1`` are read in each epoch.

    The rows form blocks of ``block_rows``.  A keyed permutation puts the blocks into an order; ``window_blocks``
    neighbours in it form a window, and another permutation shuffles the rows of each window; with ``window_blocks=0``
    the rows of a block keep their order.  With blocks of one row (the default) every order of the rows is about
    equally likely.  Larger blocks make fewer requests of a remote store; a larger window mixes them.

    No memory and no time grows with ``rows``.

    >>> order = pennon.training.Order(rows=1_000_000_000, seed=7)
    >>> order.rows_at(epoch=0, start=0, end=3).tolist() == order.rows_at(0, 0, 9)[:3].tolist()
    True
    >>> pennon.training.Order(rows=6, block_rows=2, window_blocks=0).rows_at(0, 0, 6).tolist()
    [4, 5, 2, 3, 0, 1]
    """

    rows: int
    seed: int = 0
    shuffle: bool = True
    block_rows: int = 1
    window_blocks: int = 1

    def __post_init__(self) -> None:
        """Raise ArgumentError for numbers that make no order."""
        for name, least in (("rows", 0), ("block_rows", 1), ("window_blocks", 0)):
            number = getattr(self, name)
            if not least <= number <= MOST_ROWS:
                message = f"{name} must be from {least} to 2**62, not {number}"
                raise ArgumentError(message)

    def rows_at(self, epoch: int, start: int, end: int) -> Int64Array:
        """Return the rows at positions ``start <= position < end`` of an epoch.

        Raises ArgumentError for positions outside ``[0, rows]``.

        >>> pennon.training.Order(rows=5, shuffle=False).rows_at(0, 2, 5).tolist()
        [2, 3, 4]
        """
        if not 0 <= start <= end <= self.rows:
            message = f"positions {start} to {end} are not among the {self.rows} of the order"
            raise ArgumentError(message)
        if not self.shuffle:
            return np.arange(start, end, dtype=np.int64)
        found = np.empty(end - start, np.int64)
        key = order_key(self.seed, epoch)
        window_blocks = min(self.window_blocks, max(self.rows, 1))
        shuffled_rows(start, self.rows, self.block_rows, window_blocks, key, found)
        return found
