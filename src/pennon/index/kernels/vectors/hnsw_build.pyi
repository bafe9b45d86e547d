"""Graphs of near neighbours, as HNSW has them: rows are linked in their order, each with the nearest before it.

The first row is on all levels; a search begins there, and goes down greedily.  Rows are linked block by block: for
each of a block those near to it are found, in the graph as it is and in the block; then these are linked with it.
Several workers share either step, and the graph is the same for any number of them::

    while growth.next_block():
        side by side: growth.find(worker)
        side by side: growth.link(worker)
"""

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

class Growth:
    """A graph that grows in the arrays that it is given.

    ``kind`` is how rows are compared: 0 by the squares of float32, 1 by 1 less the products of float32, 2 by the
    squares of bytes, of which there are no more than 32,768.  ``rows`` are their bytes, padded with zeros to 64.

    ``spare``: how many slots of a row's lowest level are kept free; below 0, the row is not linked with any.

    A node has at most ``2 * m`` neighbours on the lowest level and ``m`` above.  ``levels``: the greatest level of each; the
    upper ones of a row are the slots from ``starts`` on.  ``wide``: how many rows are looked at closely for each.
    ``counts``, ``nodes`` and ``far`` say how many neighbours a slot has, which, and how far away, nearest first.

    Raises ValueError for arrays that do not fit.
    """

    def __init__(
        self,
        kind: int,
        rows: npt.NDArray[np.uint8],
        spare: npt.NDArray[np.int32],
        levels: npt.NDArray[np.uint8],
        starts: Int64Array,
        m: int,
        wide: int,
        counts: npt.NDArray[np.int32],
        nodes: npt.NDArray[np.int32],
        far: npt.NDArray[np.float32],
        upper_counts: npt.NDArray[np.int32],
        upper_nodes: npt.NDArray[np.int32],
        upper_far: npt.NDArray[np.float32],
        workers: int,
    ) -> None: ...
    def next_block(self) -> int:
        """Begin with the rows that are linked next; return how many, 0 when all are."""

    def find(self, worker: int) -> None:
        """Find what rows of the block are near to; workers, from 0 on, share the rows."""

    def link(self, worker: int) -> None:
        """Link rows with those of the block to which they are near; each worker has rows of its own.

        It begins when all workers have found what they look for.
        """
