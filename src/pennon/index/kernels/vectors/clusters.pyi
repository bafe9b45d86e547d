"""Vectors and the centroids nearest to them.

A panel is 16 centroids, dimension by dimension; behind the last centroid panels are filled with zeros, whose
halves are infinite.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Floats: TypeAlias = npt.NDArray[np.float32]

def nearest(
    rows: Floats,
    parts: int,
    dim: int,
    panels: Floats,
    halves: Floats,
    found: npt.NDArray[np.int32],
    scores: Floats,
) -> None:
    """Find the centroid that has the least score in each part of each row, the first of equals.

    ``rows`` are of ``parts`` times ``dim`` numbers; each part has centroids of its own.  A score is what ``halves``
    say of a centroid, less its product with the part of the row.  Where none is a number the first is found.
    """

def add_rows(
    rows: npt.NDArray[np.float32],
    found: npt.NDArray[np.int32],
    sums: npt.NDArray[np.float64],
    counts: Int64Array,
) -> None:
    """Add each row to the sum of its centroid, and count it."""
