"""The shuffled order of rows, computed for any stretch of positions."""

import numpy as np
import numpy.typing as npt

def shuffled_rows(
    start: int,
    rows: int,
    block_rows: int,
    window_blocks: int,
    key: int,
    out: npt.NDArray[np.int64],
) -> None:
    """Write the rows at positions ``start``, ``start + 1`` ... of a shuffled order into ``out``.

    The rows ``0 .. rows - 1`` form blocks of ``block_rows`` (the last one may be shorter).  A keyed
    permutation puts the blocks into an order; ``window_blocks`` neighbours in that order form a window,
    and another keyed permutation shuffles the rows of each window; with no window the rows of a block
    keep their order.  The work for one position depends on no other position, and no memory grows with ``rows``.

    Each permutation is a Feistel network of 8 rounds over the next power of two, walked until the
    value lies inside.  Raises ValueError for positions outside ``[0, rows)``.
    """
