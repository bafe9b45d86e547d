"""NumPy's names of Arrow's types."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

_FLOATS: Final = {"halffloat": "float16", "float": "float32", "double": "float64"}


def numpy_dtype(kind: pa.DataType) -> np.dtype[Any]:
    """Return NumPy's type of an integer or floating-point type, and integers for other fixed widths.

    ``to_pandas_dtype`` of pyarrow says the same, but needs pandas before release 26.
    """
    name = str(kind)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return np.dtype(_FLOATS.get(name, name) if is_number else f"int{kind.bit_width}")
