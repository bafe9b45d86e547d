"""Graphs of which every node can be reached from every other one.

Rows that are equal are nodes of one place: a graph of near neighbours would link them with one another only.  So the
first of them is in the graph, and the others hang on it as a tree::

    firsts = first_equal_rows(kind, rows)          5 rows, of which 1, 3 and 4 are equal: 0, 1, 2, 1, 1
    ... the graph of the rows that are their own first ...
    connect_graph(kind, rows, firsts, ...)         1 is linked with 3 and 4, and lost nodes with others
"""

import numpy as np
import numpy.typing as npt

def first_equal_rows(kind: int, rows: npt.NDArray[np.uint8], firsts: npt.NDArray[np.int32]) -> None:
    """Set ``firsts`` to the number of the first row that is equal to each.

    ``kind`` and ``rows`` are those of `pennon.index.kernels.vectors.hnsw_build.Growth`.  Numbers of the rows that add nothing
    to any sum become 0: -0.0, and for squares those below ``2 ** -75``.

    Raises ValueError for arrays that do not fit.
    """

def connect_graph(
    kind: int,
    rows: npt.NDArray[np.uint8],
    firsts: npt.NDArray[np.int32],
    few: int,
    counts: npt.NDArray[np.int32],
    nodes: npt.NDArray[np.int32],
    far: npt.NDArray[np.float32],
) -> None:
    """Link equal rows with one another, and each node that cannot be reached, or does not lead back, with a near one.

    The arrays are those of the lowest level of a graph; rows that are equal to an earlier one have no neighbours yet.
    A node is linked with at most ``few`` of its equals, and with one above it.  Where a node has no slot left, it
    loses the farthest neighbour that has another way.  Nodes of the graph that have no slot for a link back have one
    from an equal row.

    Raises ValueError for arrays that do not fit.
    """
