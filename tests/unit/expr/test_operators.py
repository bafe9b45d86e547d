"""Comparisons of floating-point numbers, in total order, membership and remainders: whichever side is one value for all rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from pennon.core.numpy_types import numpy_dtype
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


@pytest.mark.parametrize(
    "name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_remainder_of_one_divisor_has_the_sign_of_the_dividend_at_all_bounds(name: str) -> None:
    kind = pa.type_for_alias(name)
    bounds = np.iinfo(numpy_dtype(kind))
    numbers = [0, 1, 6, 7, 8, bounds.max, bounds.max - 1, bounds.min, bounds.min + 1, None]
    if bounds.min < 0:
        numbers += [-1, -6, -7, -8]
    values = pa.array([*numbers, *numbers], kind)[len(numbers) - 2 :]
    divisors = {1, 7, 100, bounds.max, bounds.min, *([-1, -7] if bounds.min < 0 else [])} - {0}
    for divisor in divisors:
        found = OPERATORS["%"](values, pa.scalar(divisor, kind))
        assert found.type == kind
        assert found.to_pylist() == [
            None if each is None else (abs(each) % abs(divisor)) * (-1 if each < 0 else 1)
            for each in values.to_pylist()
        ]


def test_remainder_of_a_division_by_zero_or_null_raises_or_is_null() -> None:
    values = pa.array([1, 2], pa.int32())
    with pytest.raises(pa.ArrowInvalid, match="divide by zero"):
        OPERATORS["%"](values, pa.scalar(0, pa.int32()))
    assert OPERATORS["%"](values, pa.scalar(None, pa.int32())).null_count == 2
