"""Codes of vectors looked up in tables, and the nearest of many; of many partitions for many queries in one call."""

from collections.abc import Sequence

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

def keep_words(
    parts: list[npt.NDArray[np.uint8]],
    rows: Sequence[npt.NDArray[np.uint64]],
    passing: Sequence[npt.NDArray[np.uint8] | None],
    ends: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    words: npt.NDArray[np.float32],
    vectors: npt.NDArray[np.float32],
    near: npt.NDArray[np.float32] | None,
    products: bool,
    start: float,
    best: npt.NDArray[np.float32],
    best_rows: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.int64],
) -> None:
    """Put the rows of partitions that are nearest to the vectors of some pairs into heaps, as `keep_rows` does.

    Of partition ``n``, what is left of vectors without ``near[n]`` is compared, or they themselves.
    Row ``m`` of a part has byte ``m`` of all rows.  A distance is ``start`` and the sum of how far each word of a row is
    from its part of the vector: see `word_tables`.  Of 16 words each, a byte has that of part ``2 m`` in its lower half
    and that of the next part in the upper one.  Raises ValueError for arrays that do not fit.
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

def join_heaps(
    best: npt.NDArray[np.float32],
    best_rows: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    others: npt.NDArray[np.float32],
    other_rows: npt.NDArray[np.uint64],
    other_counts: npt.NDArray[np.int64],
) -> None:
    """Put the rows of other heaps into heaps: those of ``others[q]`` into the one of the number ``numbers[q]``.  Raises ValueError for arrays that do not fit."""

def sort_heaps(
    best: npt.NDArray[np.float32],
    best_rows: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.int64],
) -> None:
    """Sort the rows of heaps, the nearest first: they are heaps no more.  Raises ValueError for arrays that do not fit."""
