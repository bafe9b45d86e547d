"""The nodes of a transducer of tokens, written."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

def write_nodes(
    data: Bytes, ends: Int64Array, values: npt.NDArray[np.uint64], base: int
) -> tuple[bytes, int]:
    """Return the nodes of keys, ``data[ends[i]:ends[i + 1]]``, and the address of the root.

    The nodes will lie from byte ``base`` on.  Raises ValueError for keys that do not ascend.
    """
