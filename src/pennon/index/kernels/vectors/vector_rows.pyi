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

from pennon.index.kernels.vectors.work_chunks import WorkChunks

def row_distances(
    kind: int,
    rows: npt.NDArray[np.uint8],
    queries: npt.NDArray[np.uint8],
    out: npt.NDArray[np.float32],
) -> None:
    """Put how far each row is from query ``q`` into ``out[q]``.  Raises ValueError for arrays that do not fit."""

def bounds_bytes(count: int, width: int) -> int:
    """Return how many bytes quantised rows take, 0 where they are too few, or of too few values, to be worth it."""

def quantise_rows(rows: npt.NDArray[np.uint8], out: npt.NDArray[np.uint8]) -> bool:
    """Quantise rows of float32 to bytes, `bounds_bytes` of them; return whether they can be.  Raises ValueError for others."""

class CodeRows:
    """The rows of a partition as kernels take them, in arrays that nobody changes: to take these anew at each search would be a part of its time."""

    def __init__(self, codes: npt.NDArray[np.uint8], numbers: npt.NDArray[np.uint64]) -> None:
        """Take rows and their numbers.  Raises ValueError for some that do not fit."""

    @property
    def has_bounds(self) -> bool:
        """Return whether they were quantised to bytes."""

    def take_bounds(self, made: npt.NDArray[np.uint8]) -> None:
        """Take the rows as `quantise_rows` made them: with them those are left out that are too far away by the kinds 0 and 1.

        Raises ValueError for an array that does not fit.
        """

class RowParts:
    """Partitions as kernels take them: threads that search share them."""

    def __init__(
        self,
        kind: int,
        parts: Sequence[CodeRows],
        passing: Sequence[npt.NDArray[np.uint8] | None],
    ) -> None:
        """Take partitions, and which rows of each may be found, or None: all.  Raises ValueError for some that do not fit."""

def keep_rows(
    parts: RowParts,
    partitions: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    queries: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.float32],
    factor: float,
    best: npt.NDArray[np.float32],
    best_rows: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.int64],
    chunks: WorkChunks,
) -> None:
    """Put the rows of partitions that are nearest to the queries of some pairs into heaps.

    Pair ``p`` is of the partition ``partitions[p]``, ``queries[places[p]]`` and the heap ``numbers[p]``; those of one
    partition that follow one another in a chunk are compared together: see
    `pennon.index.kernels.vectors.vector_scan.keep_nearest`.  Chunks of the pairs are taken until there are no more.  A
    distance is the start of its query and ``factor`` times that of the kind.  Raises ValueError for arrays that do not
    fit.
    """
