"""Graphs of near neighbours, as HNSW has them: rows are linked one after the other, each with the nearest before it.

The first row is on all levels; a search begins there, and goes down greedily.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Floats: TypeAlias = npt.NDArray[np.float32]
Nodes: TypeAlias = npt.NDArray[np.int32]

def grow_graph(
    rows: Floats,
    is_product: bool,
    levels: npt.NDArray[np.uint8],
    starts: Int64Array,
    m: int,
    wide: int,
    counts: Nodes,
    nodes: Nodes,
    far: Floats,
    upper_counts: Nodes,
    upper_nodes: Nodes,
    upper_far: Floats,
) -> None:
    """Link each row with its near neighbours, at most ``2 * m`` on the lowest level and ``m`` above.

    ``rows`` have a number of dimensions that 16 divides.  ``levels``: the greatest level of each; the upper ones of
    a row are the slots from ``starts`` on.  ``wide``: how many rows are looked at closely for each.  ``counts``,
    ``nodes`` and ``far`` say how many neighbours a slot has, which, and how far away; ``is_product``: 1 less the
    product, otherwise the square of the distance.
    """
