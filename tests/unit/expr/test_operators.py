"""Comparisons of floating-point numbers, in total order, and membership: whichever side is one value for all rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import pyarrow as pa
import pytest

from pennon.expr.operators import OPERATORS, is_in

VALUES = [None, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan]


def _key(value: float) -> tuple[bool, float]:
    return math.isnan(value), 0.0 if math.isnan(value) else value


EXPECTED: dict[str, Callable[[float, float], bool]] = {
    "<": lambda x, y: _key(x) < _key(y),
    "<=": lambda x, y: _key(x) <= _key(y),
    ">": lambda x, y: _key(x) > _key(y),
    ">=": lambda x, y: _key(x) >= _key(y),
    "=": lambda x, y: _key(x) == _key(y),
    "!=": lambda x, y: _key(x) != _key(y),
}


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("name", EXPECTED)
def test_float_comparisons_in_total_order(name: str, kind: pa.DataType) -> None:
    for x, y in product(VALUES, VALUES):
        expected = None if x is None or y is None else EXPECTED[name](x, y)
        left, right = pa.array([x], kind), pa.array([y], kind)
        for sides in ((left, right), (left[0], right), (left, right[0])):
            assert OPERATORS[name](*sides)[0].as_py() is expected, (x, y, sides)


WHOLE = [
    pa.int8(),
    pa.uint16(),
    pa.int64(),
    pa.uint64(),
    pa.date32(),
    pa.time64("us"),
    pa.timestamp("s", "UTC"),
]


@pytest.mark.parametrize("kind", [*WHOLE, pa.string(), pa.float32(), pa.decimal128(21, 1)], ids=str)
@pytest.mark.parametrize("wanted", [[], [3], [0, 7, 7, 100], [5, None], [None]])
def test_membership_of_values_in_lists(kind: pa.DataType, wanted: list[int | None]) -> None:
    given = [None, 3, 0, None, 7, 100, 5, 6, None]
    items = _of_kind(wanted, kind)
    offsets = pa.array([0, len(items)], pa.int64())
    listed = pa.LargeListArray.from_arrays(offsets, items)[0]
    expected = [
        None if each is None or (None in wanted and each not in wanted) else each in wanted
        for each in given
    ]
    values = _of_kind([1, *given], kind)[1:]
    assert is_in(values, listed).to_pylist() == expected
    assert is_in(values.drop_null(), listed).to_pylist() == [
        e for e, v in zip(expected, given, strict=True) if v is not None
    ]
    assert is_in(values[1], listed).as_py() is expected[1]


def _of_kind(numbers: list[int | None], kind: pa.DataType) -> pa.Array:
    """Return numbers in a type, by way of one of as many bits."""
    if pa.types.is_temporal(kind):
        return pa.array(numbers, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return pa.array(numbers, pa.int64()).cast(kind)
