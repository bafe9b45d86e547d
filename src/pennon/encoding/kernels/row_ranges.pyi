"""Sets of rows as ranges that ascend: what two of them have in common, and which numbers are in one.

Range i has the numbers ``starts[i]`` to ``lasts[i]``, both included; of one set no two ranges touch.  All raise
ValueError where there are not as many last numbers as starts.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.uint64]

def common_ranges(
    starts: Numbers, lasts: Numbers, other_starts: Numbers, other_lasts: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the ranges of what both sets have."""

def count_common(
    starts: Numbers, lasts: Numbers, other_starts: Numbers, other_lasts: Numbers
) -> int:
    """Return how many numbers both sets have, modulo 2 ** 64."""

def united_ranges(
    starts: Numbers, lasts: Numbers, other_starts: Numbers, other_lasts: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the ranges of what either set has."""

def are_in_ranges(starts: Numbers, lasts: Numbers, numbers: Numbers) -> npt.NDArray[np.bool_]:
    """Return for each number whether it is in the set; numbers that ascend take the least time."""
