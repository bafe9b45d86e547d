"""Distances between vectors and queries."""

import numpy as np
import numpy.typing as npt

def vector_distances(
    vectors: npt.NDArray[np.float32 | np.float64],
    queries: npt.NDArray[np.float32 | np.float64],
    metric: int,
    norms: npt.NDArray[np.float32 | np.float64],
    out: npt.NDArray[np.float32],
    most: float = 0,
    unusual: npt.NDArray[np.uint8] | None = None,
) -> int:
    """Set ``out[q, v]`` to the distance of query q and vector v; both are rows, of one type.

    ``metric`` 0: the sum of squared differences; 1: one minus the cosine, where ``norms`` are the lengths of
    the queries; 2: one minus the product.  Sums are of the vectors' type.

    ``unusual``, with the cosine: a mark is set for each vector whose length is above ``most``, or below its inverse,
    so that its squares may have left the range of the type.  Returns how many these are.

    Raises ValueError if the arrays do not fit together.
    """

def differing_bits(
    vectors: npt.NDArray[np.uint8], queries: npt.NDArray[np.uint8], out: npt.NDArray[np.float32]
) -> None:
    """Set ``out[q, v]`` to the number of bits in which query q and vector v differ; both are rows.

    Raises ValueError if the arrays do not fit together.
    """
