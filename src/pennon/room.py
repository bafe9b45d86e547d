"""Memory for values that are about to be decoded.

Arrow's memory pool keeps what was given back to it, in large pages.  Memory that comes fresh from the
system costs a fault for every 4 KiB that is touched, which is far more than it costs to decode them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SMALL_BYTES: Final = 16 * 1024
"""Below this, the allocator of the C library does the same at less cost."""


def room(count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array of ``count`` values of any content."""
    kind = np.dtype(dtype)
    size_bytes = count * kind.itemsize
    if size_bytes < _SMALL_BYTES:
        return np.empty(count, kind)
    return np.frombuffer(pa.allocate_buffer(size_bytes), kind)
