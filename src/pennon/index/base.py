"""The interface of scalar indices: questions and answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.expr.tree import Column, Expression
from pennon.index.row_set import Numbers, Selection

T = TypeVar("T")

VALUE = "value"
"""The name of an index's column in the conditions that it is asked."""


class Question:
    """A condition that indices are asked, and what they worked out of it: it is asked again and again."""

    __slots__ = ("_made", "condition")

    def __init__(self, condition: Expression) -> None:
        self.condition = condition
        self._made: dict[Callable[..., Any], Any] = {}

    def once(self, make: Callable[[Expression], T]) -> T:
        """Return what a function makes of the condition, made now or before; threads may do so at once."""
        if make not in self._made:
            self._made[make] = make(self.condition)
        found: T = self._made[make]
        return found


class OpenIndex(Protocol):
    """A segment of an index whose files were opened."""

    @property
    def size_bytes(self) -> int:
        """Return about how much memory the open index takes."""

    @property
    def statistics(self) -> dict[str, Any]:
        """Return what `LanceDataset.index_statistics` says of a segment of this kind."""

    def warm(self) -> None:
        """Read what searches will read, as far as that is remembered."""


class ScalarIndex(OpenIndex, Protocol):
    """An index over one column, or over the items of one, that filters ask.

    Conditions name no other column than ``column``, and are of those that its kind answers
    (`pennon.index.kind.Kind`).
    """

    @property
    def column(self) -> Column:
        """Return the column of the conditions: its type is that of the table's column."""

    def search(self, question: Question) -> Selection:
        """Return the rows for which the condition of a question is true, by their addresses or ids as they are stored.

        Rows that are not in the index are in neither set.  Raises FormatError if the files are damaged.
        """


@dataclass(frozen=True, slots=True)
class Values:
    """Values of the indexed column, and the number of the row of each: its address or its stable id."""

    values: pa.Array[Any]
    rows: Numbers


def joined(parts: Iterable[Values], kind: pa.DataType) -> Values:
    """Return all values in one."""
    found = list(parts)
    if len(found) == 1:
        return found[0]
    values = [each.values for each in found] or [pa.nulls(0, kind)]
    rows = [each.rows for each in found] or [np.empty(0, np.uint64)]
    return Values(pa.concat_arrays(values), np.concatenate(rows))


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
