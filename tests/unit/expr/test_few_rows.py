"""Comparisons of numbers and texts in few rows equal Arrow's, for every memory layout of a column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pennon.expr.few_rows import NumberTest, TextTest
from pennon.expr.from_arrow import from_arrow
from pennon.expr.tree import Expression

KINDS = [pa.int8(), pa.uint16(), pa.int32(), pa.uint64(), pa.date32(), pa.timestamp("us", "UTC")]


def values_of(kind: pa.DataType) -> pa.Array:
    """Return numbers, a slice of more of them."""
    numbers = pa.array(np.random.default_rng(3).integers(0, 100, 2_000))
    narrow = numbers.cast(pa.int32()) if kind == pa.date32() else numbers
    return narrow.cast(kind).slice(17, 1_500)


def bound(condition: pc.Expression, kind: pa.DataType) -> Expression:
    """Return a condition on a column ``v``."""
    found = from_arrow(condition, pa.schema([("v", kind)]))
    assert found is not None
    return found


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_few_row_conditions_equal_arrow(kind: pa.DataType) -> None:
    values, v = values_of(kind), pc.field("v")
    a, b = values[3], values[5]
    conditions = [v == a, v != a, v < a, v <= a, v > a, v >= a, (v >= a) & (v < b) & (v != b)]
    for condition in conditions:
        test = NumberTest.of(bound(condition, kind))
        assert test is not None
        found = test.passing(values)
        assert found is not None
        expected = pa.table({"v": values, "row": np.arange(len(values))}).filter(condition)
        assert found.tolist() == expected["row"].to_pylist()


def test_number_test_skips_nulls_and_other_types() -> None:
    test = NumberTest.of(bound(pc.field("v") > 3, pa.int64()))
    assert test is not None
    assert test.passing(pa.array([1, None, 5], pa.int64())) is None
    assert test.passing(pa.array([1, 5], pa.int32())) is None
    assert test.passing(pa.array([], pa.int64())) is None


@pytest.mark.parametrize("kind", [pa.float64(), pa.string(), pa.bool_()], ids=str)
def test_number_test_of_unsupported_column_types_is_none(kind: pa.DataType) -> None:
    value = pa.array([1]).cast(kind)[0]
    assert NumberTest.of(bound(pc.field("v") == value, kind)) is None


def test_number_test_of_unsupported_conditions_is_none() -> None:
    v = pc.field("v")
    assert NumberTest.of(bound((v > 3) | (v < 1), pa.int64())) is None
    assert NumberTest.of(bound(v.is_null(), pa.int64())) is None


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()], ids=str)
def test_text_test_equals_arrow(kind: pa.DataType) -> None:
    texts = ["", "a", "b", "ab", "bb", "aab", "a" * 40, "a" * 39 + "b"]
    chosen = np.random.default_rng(3).integers(0, len(texts), 2_000)
    values = pa.array([texts[at] for at in chosen.tolist()]).cast(kind).slice(17, 1_500)
    for text in texts[1:]:
        value = pa.scalar(text).cast(kind)
        test = TextTest.of(bound(pc.field("v") == value, kind))
        assert test is not None
        found = test.passing(values)
        assert found is not None
        assert found.tolist() == np.flatnonzero(pc.equal(values, value)).tolist()
        empty = pa.array([""] * 3).cast(kind)
        nothing = test.passing(empty)
        assert nothing is not None
        assert not len(nothing)


def test_text_test_of_unsupported_conditions_is_none() -> None:
    v = pc.field("v")
    for condition in (v == "", v != "a", v < "a", (v == "a") | (v == "b")):
        assert TextTest.of(bound(condition, pa.string())) is None
    test = TextTest.of(bound(v == "a", pa.string()))
    assert test is not None
    assert test.passing(pa.array(["a", None])) is None
    assert test.passing(pa.array(["a"], pa.large_string())) is None
