"""Distances of vectors that lie row by row, and the nearest of them.

The kind of a distance is a number.  Rows are bytes, and so are queries:

==  =======================================  ===================  =================================
 0  sum of the squared differences           float32              float32
 1  less the sum of the products             float32              float32
 2  as 0                                     float64              float64
 3  as 1                                     float64              float64
 4  as 0                                     uint8                uint8
 5  as 1                                     uint8                float32
 6  bits that differ                         uint8                uint8
 7  sum of what tables say                   uint8                256 times float32 for each
==  =======================================  ===================  =================================
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

def row_distances(
    kind: int,
    rows: npt.NDArray[np.uint8],
    queries: npt.NDArray[np.uint8],
    out: npt.NDArray[np.float32],
) -> None:
    """Put how far each row is from query ``q`` into ``out[q]``.  Raises ValueError for arrays that do not fit."""

def cut_bytes(count: int, width: int) -> int:
    """Return how many bytes rows take that are cut, 0 where they are too few, or of too few values, to be cut."""

def cut_rows(rows: npt.NDArray[np.uint8], out: npt.NDArray[np.uint8]) -> bool:
    """Cut rows of float32 to bytes, `cut_bytes` of them; return whether they can be.  Raises ValueError for others."""

def keep_rows(
    kind: int,
    parts: Sequence[npt.NDArray[np.uint8]],
    cuts: Sequence[npt.NDArray[np.uint8] | None],
    rows: Sequence[npt.NDArray[np.uint64]],
    passing: Sequence[npt.NDArray[np.uint8] | None],
    partitions: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    queries: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.float32],
    factor: float,
    best: npt.NDArray[np.float32],
    best_rows: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.int64],
) -> None:
    """Put the rows of partitions that are nearest to the queries of some pairs into heaps.

    Partition ``n`` has the rows ``parts[n]`` with the numbers ``rows[n]``, of which those may be found that are
    ``passing[n]``, or all.  Pair ``p`` is of the partition ``partitions[p]``, ``queries[places[p]]`` and the heap
    ``numbers[p]``; those of one partition that follow one another are compared together: see `pennon.encoding.kernels.vector_scan.keep_nearest`.  A distance
    is the start of its query and ``factor`` times that of the kind.  ``cuts[n]`` has the same rows as `cut_rows` made
    them, or is None: with them rows are left out that are too far away by the kinds 0 and 1.  Raises ValueError for
    arrays that do not fit.
    """
