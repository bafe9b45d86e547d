"""Binary search in sorted numbers, and a sort of few numbers.

NumPy does both as well, but lets go of the interpreter's lock for the fewest numbers; see ``long_work.pxd``.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

def places(numbers: npt.NDArray[Any], others: npt.NDArray[Any], behind: bool = False) -> Int64Array:
    """Return how many of some numbers, which ascend, come before each of others of their type; ``behind``: or are equal."""

def place_of_uint64(
    numbers: npt.NDArray[np.uint64], other: int | np.uint64, behind: bool = False
) -> int:
    """Return the same for one other number."""

def sort_few(numbers: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], Int64Array]:
    """Return numbers in order, each once, and the place of each one given among them; NumPy sorts many of them sooner."""
