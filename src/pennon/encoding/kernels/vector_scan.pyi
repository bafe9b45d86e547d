"""Codes of vectors looked up in tables, and the nearest of many."""

import numpy as np
import numpy.typing as npt

def word_tables(
    words: npt.NDArray[np.float32],
    query: npt.NDArray[np.float32],
    products: bool,
    tables: npt.NDArray[np.float32],
) -> None:
    """Put what each word is apart from its part of a query into ``tables``, a row for each part.

    ``words[p, i, w]`` is value ``i`` of word ``w`` of part ``p``.  The squared distance, or, of ``products``, 1
    less the product.  Raises ValueError for arrays that do not fit.
    """

def looked_up(
    codes: npt.NDArray[np.uint8],
    tables: npt.NDArray[np.float32],
    start: float,
    out: npt.NDArray[np.float32],
) -> None:
    """Put ``start`` and the sum of what tables say of each column of codes into ``out``.

    Row ``m`` of ``codes`` has byte ``m`` of all rows, and row ``m`` of ``tables`` a value for each byte there is.
    Raises ValueError for arrays that do not fit.
    """

def keep_nearest(
    best: npt.NDArray[np.float32],
    best_rows: npt.NDArray[np.uint64],
    count: int,
    distances: npt.NDArray[np.float32],
    rows: npt.NDArray[np.uint64],
    passing: npt.NDArray[np.uint8] | None,
) -> int:
    """Put the nearest of some rows into a heap of ``count`` so far; return how many there are then.

    Of rows at one distance the lower number is nearer; a distance that is NaN is none, and neither is one
    that is not ``passing``.  Raises ValueError for arrays that do not fit.
    """
