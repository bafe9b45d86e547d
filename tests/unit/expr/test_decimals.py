"""Remainders of decimals in machine words, against Python's own decimals."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pennon.expr.cast import cast, try_cast
from pennon.expr.decimals import decimal_remainder
from pennon.expr.rowwise import ROWS_AT_ONCE, by_row

Values = Sequence[Decimal | None]
EXACT = Context(prec=76)
TYPES = [pa.decimal128(20, 0), pa.decimal128(10, 2), pa.decimal128(6, 4), pa.decimal128(38, 10)]


def values_of(kind: pa.DataType, *, zero: bool) -> st.SearchStrategy[Decimal | None]:
    """Return values of a type, small ones and the largest."""
    most = 10**kind.precision - 1
    numbers = st.one_of(st.integers(-1000, 1000), st.integers(-most, most))
    scaled = numbers.filter(lambda n: zero or n != 0).map(
        lambda n: EXACT.scaleb(Decimal(n), -kind.scale)
    )
    return st.none() | scaled


def remainders(over: Values, under: Values) -> list[Decimal | None]:
    """Return what comes out, one by one."""
    return [
        None if x is None or y is None else EXACT.remainder(x, y)
        for x, y in zip(over, under, strict=True)
    ]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_decimal_remainder_equals_python(data: st.DataObject) -> None:
    left, right = (data.draw(st.sampled_from(TYPES)) for _ in range(2))
    over = data.draw(st.lists(values_of(left, zero=True), max_size=8))
    under = [data.draw(values_of(right, zero=False)) for _ in over]
    start = data.draw(st.integers(0, len(over)))
    arrays = pa.array(over, left).slice(start), pa.array(under, right).slice(start)
    assert decimal_remainder(*arrays).to_pylist() == remainders(over[start:], under[start:])
    three = pa.scalar(Decimal(3), right)
    found = decimal_remainder(arrays[0], three).to_pylist()
    assert found == remainders(over[start:], [Decimal(3)] * len(arrays[0]))


def test_only_rows_with_both_values_are_divided() -> None:
    kind = pa.decimal128(20, 0)
    zero = pa.scalar(Decimal(0), kind)
    assert decimal_remainder(pa.array([None, None], kind), zero).to_pylist() == [None, None]
    with pytest.raises(pa.ArrowInvalid, match="divide by zero"):
        decimal_remainder(pa.array([Decimal(1), None], kind), zero)
    assert decimal_remainder(pa.array([Decimal(1)], kind), pa.scalar(None, kind))[0].as_py() is None


@pytest.mark.parametrize("rows", [0, 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1])
def test_rows_are_computed_a_few_at_a_time(rows: int) -> None:
    double = by_row(lambda value, more: value * 2 + more, pa.int64())
    found = double(pa.array(range(rows)), pa.scalar(1))
    assert isinstance(found, pa.Array)
    assert found.to_pylist() == [value * 2 + 1 for value in range(rows)]


def test_texts_of_too_many_digits() -> None:
    """Arrow's own cast makes decimals of them that are none."""
    kind = pa.decimal128(3, 2)
    assert try_cast(pa.array(["2020", "1.5", None]), kind).to_pylist() == [
        None,
        Decimal("1.50"),
        None,
    ]
    with pytest.raises(pa.ArrowInvalid):
        cast(pa.scalar("2020"), kind)
