"""Vectors turned, and the rows that are nearest by codes of RQ (RaBitQ), of many partitions for many queries in one call."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pennon.index.kernels.vectors.work_chunks import WorkChunks

def turn(vectors: npt.NDArray[np.float32], flips: npt.NDArray[np.float32]) -> None:
    """Turn vectors in place: four rounds of ``flips``, 1 or -1 for each value, and Walsh-Hadamard transforms.

    Where the width is no power of two, rounds transform the first or the last values in turn, and halves are added
    and subtracted.  Raises ValueError for arrays that do not fit.
    """

def sign_tables(
    turned: npt.NDArray[np.float32],
    tables: npt.NDArray[np.uint8],
    ranges: npt.NDArray[np.float32],
) -> None:
    """Put what four signs at a time make of turned queries into ``tables``, rounded to bytes.

    The sum of the values of query ``q``, halved, those without a sign subtracted, is about ``ranges[q, 0]`` and
    ``ranges[q, 1]`` times the sum of ``tables[q, p, four signs from 4 p on]``, each rounded to half a step.  The step is
    infinite for queries that have no tables, for their values are too large or NaN.  Raises ValueError for arrays
    that do not fit.
    """

def pairs_apart(
    queries: npt.NDArray[np.float32],
    centroids: npt.NDArray[np.float32],
    numbers: npt.NDArray[np.int64],
    partitions: npt.NDArray[np.int64],
    is_product: bool,
    is_by_residual: bool,
    apart: npt.NDArray[np.float32],
) -> None:
    """Put what the query ``numbers[p]`` and the centroid ``partitions[p]`` of each pair add to distances into ``apart[p]``.

    How often the addends of rows count, what is added to all distances, and how far query and centroid are apart.
    Raises ValueError for arrays that do not fit.
    """

class RabitRows:
    """The rows of a partition as kernels take them, in arrays that nobody changes: to take these anew at each search would be a part of its time.

    Signs are packed by groups of 32 rows and further bits are in blocks of 64 dimensions, as in files.  Factors are
    those to add and to scale by, the same pair of further bits, and the error, a row of the array each; those of
    further bits are there if these are.
    """

    def __init__(
        self,
        signs: npt.NDArray[np.uint8],
        rest: npt.NDArray[np.uint8],
        factors: npt.NDArray[np.float32],
        numbers: npt.NDArray[np.uint64],
    ) -> None:
        """Take signs, further bits and factors of rows, and their numbers.  Raises ValueError for arrays that do not fit."""

class RabitParts:
    """Partitions as kernels take them: threads that search share them."""

    def __init__(
        self, parts: Sequence[RabitRows], passing: Sequence[npt.NDArray[np.uint8] | None]
    ) -> None:
        """Take partitions, and which rows of each may be found, or None: all.  Raises ValueError for some that do not fit."""

def keep_estimates(
    parts: RabitParts,
    partitions: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    turned: npt.NDArray[np.float32],
    tables: npt.NDArray[np.uint8],
    ranges: npt.NDArray[np.float32],
    apart: npt.NDArray[np.float32],
    best: npt.NDArray[np.float32],
    best_rows: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.int64],
    chunks: WorkChunks,
) -> None:
    """Put the rows of partitions that are nearest to the queries of some pairs into heaps, as `keep_rows` does.

    Pair ``p`` is of the part ``partitions[p]``, the query ``places[p]`` and the heap ``numbers[p]``.  Pairs of a share
    are searched in their order: those of a query are best together, the nearest part first.

    Of ``apart[p]``, the first times the addend of a row and the second are added to all distances of a pair, and an
    error counts as often as the third says: see `pairs_apart`.  `sign_tables` makes ``tables`` and ``ranges`` of ``turned`` queries.

    A row that is farther than all of a full heap, as far as signs and errors say, is left out, and so is one that is
    farther than as many rows of its part as there is room for; without errors beside further bits none is.  Raises ValueError for arrays that do not fit.
    """
