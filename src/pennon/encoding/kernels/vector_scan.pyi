"""Codes of vectors looked up in tables, and the nearest of many; each for several queries in one call."""

import numpy as np
import numpy.typing as npt

def word_tables(
    words: npt.NDArray[np.float32],
    queries: npt.NDArray[np.float32],
    products: bool,
    tables: npt.NDArray[np.float32],
) -> None:
    """Put what each word is apart from its part of each query into ``tables``: ``tables[q, p]`` is of part ``p``.

    ``words[p, i, w]`` is value ``i`` of word ``w`` of part ``p``.  The squared distance, or, of ``products``, 1
    less the product.  Raises ValueError for arrays that do not fit.
    """

def looked_up(
    codes: npt.NDArray[np.uint8],
    tables: npt.NDArray[np.float32],
    start: float,
    out: npt.NDArray[np.float32],
) -> None:
    """Put ``start`` and the sum of what the tables of query ``q`` say of each column of codes into ``out[q]``.

    Row ``m`` of ``codes`` has byte ``m`` of all rows, and ``tables[q, m]`` a value for each byte there is.
    Raises ValueError for arrays that do not fit.
    """

def keep_nearest(
    best: npt.NDArray[np.float32],
    best_rows: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    distances: npt.NDArray[np.float32],
    rows: npt.NDArray[np.uint64],
    passing: npt.NDArray[np.uint8] | None,
) -> None:
    """Put the nearest of some rows into heaps: ``distances[q]`` into that of the number ``numbers[q]``.

    A heap is a row of ``best`` and of ``best_rows``, of which the first ``counts`` are in use; these are brought up to
    date.  Of rows at one distance the lower number is nearer; a distance that is NaN is none, and neither is one
    that is not ``passing``.  Raises ValueError for arrays that do not fit.
    """
