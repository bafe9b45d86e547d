"""Walks over graphs of vectors, of the kinds of `pennon.index.kernels.vectors.vector_rows`."""

import numpy as np
import numpy.typing as npt

def check_graph(
    count: int,
    nodes: npt.NDArray[np.uint32],
    levels: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    neighbours: npt.NDArray[np.uint32],
    entry: int,
) -> None:
    """Raise FormatError unless a graph of ``count`` nodes may be walked.

    Level ``l`` has the rows ``levels[l]`` to ``levels[l + 1]``.  Row ``r`` is node ``nodes[r]``, which has the neighbours
    ``neighbours[ends[r] : ends[r + 1]]``.  Level 0 has all nodes in order, those of others ascend.
    """

def walk_graph(
    kind: int,
    rows: npt.NDArray[np.uint8],
    queries: npt.NDArray[np.uint8],
    nodes: npt.NDArray[np.uint32],
    levels: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    neighbours: npt.NDArray[np.uint32],
    entry: int,
    passing: npt.NDArray[np.uint8] | None,
    found: npt.NDArray[np.uint32],
    distances: npt.NDArray[np.float32],
    counts: npt.NDArray[np.int64],
) -> None:
    """Walk a graph to the nodes near each of some queries: ``counts[q]`` of them are found, in no order.

    From the entry down the levels to the nearest node of each, then as wide as a row of ``found`` is long.  The graph
    has passed `check_graph`.  Raises ValueError for arrays that do not fit.
    """
