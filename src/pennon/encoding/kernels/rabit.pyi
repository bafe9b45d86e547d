"""Vectors turned, and the distances that codes of RQ (RaBitQ) say, for several queries in one call."""

import numpy as np
import numpy.typing as npt

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

def estimates(
    signs: npt.NDArray[np.uint8],
    rest: npt.NDArray[np.uint8],
    factors: npt.NDArray[np.float32],
    turned: npt.NDArray[np.float32],
    tables: npt.NDArray[np.uint8],
    ranges: npt.NDArray[np.float32],
    apart: npt.NDArray[np.float32],
    bounds: npt.NDArray[np.float32],
    out: npt.NDArray[np.float32],
) -> None:
    """Put how far each row is from query ``q`` into ``out[q]``, infinity where it is not below ``bounds[q]``.

    ``signs`` are packed by groups of 32 rows and ``rest`` has blocks of 64 dimensions, as in files.  ``factors`` are
    those to add and to scale by, the same pair of further bits, and the error, a row of the array each; those
    of further bits are there if these are, and without the error no row is left out.  Of ``apart[q]``, the first
    times the addend of a row and the second are added to all distances of a query, and an error counts as
    often as the third says.  `sign_tables` makes ``tables`` and ``ranges``.

    Raises ValueError for arrays that do not fit.
    """
