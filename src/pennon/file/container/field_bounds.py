"""Statistics of a field in a data file, unit by unit, without reading the values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class FieldBounds:
    """Bounds of a field: unit u has the rows ``[borders[u], borders[u + 1])``.

    ``low`` and ``high`` hold for what a reader gets that is not NULL; a NULL among them, or None for
    all, says nothing.  ``null_counts`` are those of what a reader gets, too.  A column of floats has
    no ``high``, for NaN is above all numbers, and statistics leave it out.
    """

    borders: Int64Array
    low: pa.Array[Any] | None
    high: pa.Array[Any] | None
    null_counts: pa.Array[Any] | None
