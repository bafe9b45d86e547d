"""Conditions that compare a column of whole numbers, or of times, with values: NumPy finds the rows that pass.

Of a few thousand rows that takes a fraction of the time that Arrow's functions take, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.expr.tree import Call, Column, Expression, Literal

_COMPARED: Final[Mapping[str, Callable[..., Any]]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_TURNED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SIGNED: Final = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


@dataclass(frozen=True, slots=True, eq=False)
class NumberTest:
    """Comparisons of one column, all of which have to be true: functions, and the value that each is given."""

    column: Column
    dtype: npt.DTypeLike
    parts: tuple[tuple[Callable[..., Any], np.generic], ...]

    @classmethod
    def of(cls, condition: Expression) -> NumberTest | None:
        """Return what a condition compares; None of any other condition."""
        found = [_comparison(each) for each in _parts(condition)]
        known = [each for each in found if each is not None]
        columns = {column for column, _, _ in known}
        if len(known) < len(found) or len(columns) != 1:
            return None
        (column,) = columns
        parts = tuple((compare, value) for _, compare, value in known)
        return cls(column, known[0][2].dtype, parts)

    def passing(self, values: pa.Array[Any]) -> Int64Array | None:
        """Return the numbers of the values that pass; None if they are of another type, or some are NULL."""
        if not len(values) or values.type != self.column.type or values.null_count:
            return None
        whole = np.frombuffer(values.buffers()[1], self.dtype, values.offset + len(values))
        numbers = whole[values.offset :]
        compare, value = self.parts[0]
        mask = compare(numbers, value)
        for compare, value in self.parts[1:]:
            mask &= compare(numbers, value)
        found: Int64Array = mask.nonzero()[0]
        return found


def _parts(condition: Expression) -> Iterator[Expression]:
    """Yield the conditions all of which have to be true."""
    if isinstance(condition, Call) and condition.function == "AND":
        for each in condition.arguments:
            yield from _parts(each)
    else:
        yield condition


def _comparison(node: Expression) -> tuple[Column, Callable[..., Any], np.generic] | None:
    """Return which column is compared, how, and with what; None where it is not, or with NULL."""
    if not isinstance(node, Call) or node.function not in _COMPARED:
        return None
    function, (column, literal) = node.function, node.arguments
    if isinstance(column, Literal):
        function, column, literal = _TURNED[function], literal, column
    if not isinstance(column, Column) or not isinstance(literal, Literal):
        return None
    kind, value = column.type, literal.value
    if len(column.path) > 1 or not value.is_valid or value.type != kind:
        return None
    one = pa.repeat(value, 1)
    if t.is_temporal(kind) and not t.is_interval(kind):
        one = one.view(_SIGNED[kind.bit_width])
    elif not t.is_integer(kind):
        return None
    number: np.generic = np.asarray(one)[0]
    return column, _COMPARED[function], number
