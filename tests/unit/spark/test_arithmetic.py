"""Numbers that tasks compute of columns, beside Python's exact decimals and integers."""

from __future__ import annotations

import pickle
from decimal import Decimal, localcontext

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as hs
from pyspark.sql import types as st

from pennon.spark.frames.arithmetic import Number, computed, constant, stored, text_length

MONEY = st.DecimalType(12, 2)
CENTS = hs.integers(-(10**12) + 1, 10**12 - 1).map(lambda cents: Decimal(cents).scaleb(-2))


def need(number: Number | None) -> Number:
    """Return a number that is there."""
    assert number is not None
    return number


@given(hs.lists(hs.tuples(CENTS, CENTS, CENTS), min_size=1, max_size=20))
def test_products_of_decimals_are_exact_in_the_type_of_spark(
    rows: list[tuple[Decimal, ...]],
) -> None:
    columns = [pa.array([row[n] for row in rows], pa.decimal128(12, 2)) for n in range(3)]
    table = pa.table(columns, names=["price", "discount", "tax"])
    price, discount, tax = (need(stored(name, MONEY)) for name in table.column_names)
    one = need(constant("1"))
    less = need(computed("*", price, need(computed("-", one, discount))))
    charge = need(computed("*", less, need(computed("+", one, tax))))
    assert (less.kind, charge.kind) == (st.DecimalType(26, 4), st.DecimalType(38, 6))
    assert less.of(table).to_pylist() == [p * (1 - d) for p, d, _ in rows]
    with localcontext(prec=80):
        expected = [p * (1 - d) * (1 + t) for p, d, t in rows]
    assert pickle.loads(pickle.dumps(charge)).of(table).to_pylist() == expected


def test_integers_take_the_wider_type_and_refuse_overflow() -> None:
    table = pa.table({"n": pa.array([7, None, 32_000], pa.int16()), "s": ["añ", "", None]})
    n = need(stored("n", st.ShortType()))
    more = need(computed("*", n, need(constant("3"))))
    assert more.kind == st.IntegerType()
    assert more.of(table).to_pylist() == [21, None, 96_000]
    with pytest.raises(OverflowError, match="leaves the type int"):
        need(computed("*", n, need(constant("2000000000")))).of(table)
    assert need(computed("+", n, need(constant("3000000000")))).kind == st.LongType()
    assert need(text_length("s", st.StringType())).of(table).to_pylist() == [2, 0, None]


def test_doubles_are_computed_and_mixed_with_decimals_they_are_not() -> None:
    table = pa.table({"x": [0.5, None], "n": pa.array([2**53 + 1, 1], pa.int64())})
    x, n = need(stored("x", st.DoubleType())), need(stored("n", st.LongType()))
    assert need(computed("-", x, n)).of(table).to_pylist() == [0.5 - float(2**53 + 1), None]
    assert computed("*", x, need(constant("0.5"))) is None


@pytest.mark.parametrize("text", ["1e3", "0x1f", "", ".5.", "1L", "٣", "9" * 19 + "0"])
def test_constants_written_in_other_ways_are_not_computed(text: str) -> None:
    assert constant(text) is None


def test_products_that_spark_rounds_are_not_computed() -> None:
    wide = need(stored("w", st.DecimalType(30, 10)))
    assert computed("*", wide, wide) is None
    assert stored("f", st.FloatType()) is None
    assert stored("t", st.StringType()) is None
