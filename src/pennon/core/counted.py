"""Numbers from 0 on."""

from __future__ import annotations

from typing import Final

import numpy as np

from pennon.core.byte_ranges import Int64Array

_FIRST: Final = np.arange(4096)
_FIRST.flags.writeable = False


def counted(count: int) -> Int64Array:
    """Return the numbers from 0 on, read-only; `numpy.arange` lets go of the interpreter's lock for the fewest."""
    return _FIRST[:count] if count <= len(_FIRST) else np.arange(count)
