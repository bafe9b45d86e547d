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
    """Return the ranges of what either set has; their ranges may overlap, as long as the starts ascend."""

def are_in_ranges(starts: Numbers, lasts: Numbers, numbers: Numbers) -> npt.NDArray[np.bool_]:
    """Return for each number whether it is in the set; numbers that ascend take the least time."""

def ranges_of(numbers: Numbers) -> tuple[Numbers, Numbers] | None:
    """Return the ranges of numbers that ascend, some of which may be there more than once; None if they do not ascend."""

def bits_of(starts: Numbers, lasts: Numbers, most: int) -> tuple[Numbers, Numbers] | None:
    """Return a set as a bit for each number of those blocks of 65,536 that have some of it; None: ``most`` are fewer.

    The blocks' numbers ascend; the bits of each are 1,024 words.  Raises ValueError for
    ranges that overlap or do not ascend.
    """

def are_in_bits(keys: Numbers, words: Numbers, numbers: Numbers) -> npt.NDArray[np.bool_]:
    """Return for each number whether its bit is set; ``keys`` and ``words`` are what `bits_of` returns.

    Raises ValueError where there are more or fewer words.
    """
