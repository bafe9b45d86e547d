"""What a scalar index is to whoever asks one."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from pennon.core.byte_ranges import Int64Array
from pennon.expr.tree import Column, Expression
from pennon.index.row_set import Selection

VALUE = "value"
"""The name of an index's column in the conditions that it is asked."""


class ScalarIndex(Protocol):
    """An index over one column, or over the items of one.

    Conditions name no other column than ``column``, and are of those that its kind answers
    (`pennon.index.registry.Kind`).
    """

    @property
    def column(self) -> Column:
        """Return the column of the conditions: its type is that of the table's column."""
        ...

    @property
    def size_bytes(self) -> int:
        """Return about how much memory the open index takes."""
        ...

    def search(self, condition: Expression) -> Selection:
        """Return the rows for which a condition is true, by their addresses or ids as they are stored.

        Rows that are not in the index are in neither set.  Raises FormatError if the files are damaged.
        """
        ...


def true_places(passes: pa.Array[Any]) -> Int64Array:
    """Return the places at which an array of booleans is true."""
    mask: npt.NDArray[np.bool_] = np.asarray(
        passes.fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - Arrow's own order
    )
    return np.flatnonzero(mask)


def is_nan(value: pa.Scalar) -> bool:
    """Return whether a value is NaN."""
    return bool(t.is_floating(value.type) and value.is_valid and math.isnan(value.as_py()))


def bound_of(value: pa.Scalar) -> pa.Scalar | None:
    """Return a bound of values; NaN is none, for releases differ in where it comes among numbers."""
    return None if not value.is_valid or is_nan(value) else value
