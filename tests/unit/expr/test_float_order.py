"""-0.0 equals 0.0 and NaN of any bits equals NaN, in filters, lists and order."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.dataset import ColumnOrdering
from pennon.expr.float_order import one_form

NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000000))[0]
ODD_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000001))[0]
KINDS = [pa.float32(), pa.float64()]


def _table(folder: Path, kind: pa.DataType) -> pennon.LanceDataset:
    """Return rows of a list with -0.0, one with NaN whose sign is set, and one with 1.0."""
    values = [-0.0, NEGATIVE_NAN, 1.0]
    table = pa.table(
        {
            "id": [0, 1, 2],
            "x": pa.array(values, kind),
            "z": pa.array([0.0] * 3, kind),
            "n": pa.array([math.nan] * 3, kind),
            "l": pa.array([[v, v] for v in values], pa.list_(kind)),
            "zeros": pa.array([[0.0, 0.0]] * 3, pa.list_(kind)),
            "nans": pa.array([[math.nan] * 2] * 3, pa.list_(kind)),
            "deep": pa.array([[[v]] for v in values], pa.list_(pa.list_(kind))),
        }
    )
    return pennon.write_dataset(table, folder)


@pytest.fixture(params=KINDS, ids=str)
def ds(request: pytest.FixtureRequest, tmp_path: Path) -> pennon.LanceDataset:
    return _table(tmp_path, request.param)


NAN = "(0.0 / 0.0)"


@pytest.mark.parametrize("zero", ["0.0", "z"])
@pytest.mark.parametrize(
    "condition",
    [
        "x = {}",
        "x IN ({}, 7.0)",
        "array_has(l, {})",
        "array_has_any(l, make_array({}))",
        "array_has_all(l, make_array({}))",
        "arrays_overlap(l, make_array({}, 9.0))",
        "array_position(l, {}) = 1",
        "array_length(array_positions(l, {})) = 2",
        "array_length(array_remove(l, {})) = 1",
        "array_length(array_remove_all(l, {})) IS NULL OR array_length(array_remove_all(l, {})) = 0",
        "array_has(array_replace(l, {}, 5.0), 5.0)",
        "array_has(array_replace_all(l, {}, 5.0), 5.0)",
        "cardinality(array_except(l, make_array({}))) = 0",
        "cardinality(array_intersect(l, make_array({}))) = 1",
        "cardinality(array_union(l, make_array({}))) = 1",
        "cardinality(array_distinct(array_append(l, {}))) = 1",
        "array_has(deep, make_array({}))",
    ],
)
def test_minus_zero_equals_zero_in_filters(
    ds: pennon.LanceDataset, condition: str, zero: str
) -> None:
    if "IN (" in condition and zero == "z":
        condition = condition.replace("IN ({}, 7.0)", "= {}")
    found = ds.to_table(filter=condition.replace("{}", zero))["id"].to_pylist()
    assert found == [0]


@pytest.mark.parametrize(
    "condition",
    [
        "x = n",
        "isnan(x)",
        "array_has(l, n)",
        "array_has_any(l, nans)",
        "array_has_all(l, nans)",
        "array_position(l, n) = 1",
        "cardinality(array_distinct(array_append(l, n))) = 1 AND isnan(x)",
        "cardinality(array_except(l, nans)) = 0",
        "array_has(deep, make_array(n))",
        "l = nans",
    ],
)
def test_nan_of_any_bits_equals_nan_in_filters(ds: pennon.LanceDataset, condition: str) -> None:
    assert ds.to_table(filter=condition)["id"].to_pylist() == [1]


def test_null_lists_are_not_equal(tmp_path: Path) -> None:
    lists = pa.array([None, None], pa.list_(pa.float64()))
    ds = pennon.write_dataset(pa.table({"l": lists, "m": lists}), tmp_path)
    assert ds.count_rows("l = m") == 0
    assert ds.count_rows("l = m AND l != m") == 0


def test_lists_with_minus_zero_equal_those_with_zero(ds: pennon.LanceDataset) -> None:
    assert ds.to_table(filter="l = zeros")["id"].to_pylist() == [0]
    assert ds.to_table(filter="l != zeros")["id"].to_pylist() == [1, 2]


@pytest.mark.parametrize("kind", [pa.float16(), *KINDS], ids=str)
@pytest.mark.parametrize("limit", [None, 7])
def test_order_by_has_nan_at_one_end(tmp_path: Path, kind: pa.DataType, limit: int | None) -> None:
    values = [1.0, NEGATIVE_NAN, 0.0, None, -math.inf, math.nan, -0.0, math.inf, ODD_NAN, 0.0]
    table = pa.table({"id": range(len(values)), "x": pa.array(values, kind)})
    ds = pennon.write_dataset(table, tmp_path)
    ascending = ds.to_table(order_by=["x"], limit=limit)["id"].to_pylist()
    assert (
        ascending == [4, 6, 2, 9, 0, 7, 1, 5, 8, 3][:limit]
    )  # equal ones in the order of the table
    order: Any = [ColumnOrdering("x", ascending=False, nulls_first=True)]
    descending = ds.to_table(order_by=order, limit=limit)["id"].to_pylist()
    assert descending == [3, 1, 5, 8, 7, 0, 2, 9, 6, 4][:limit]


def test_order_by_dictionary_of_floats_with_equal_items(tmp_path: Path) -> None:
    items = pa.array([2.0, NEGATIVE_NAN, -0.0, 0.0, math.nan, -1.0])
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, 4, None, 5], pa.int32()), items)
    ds = pennon.write_dataset(pa.table({"id": range(7), "x": values}), tmp_path)
    assert ds.to_table(order_by=["x"])["id"].to_pylist() == [6, 2, 3, 0, 1, 4, 5]


def test_one_form_has_the_same_bits_for_equal_values() -> None:
    for kind in KINDS:
        values = pa.array([-0.0, 0.0, NEGATIVE_NAN, math.nan, None, 1.5], kind)
        found = one_form(values).dictionary_encode()
        assert found.indices.to_pylist() == [0, 0, 1, 1, None, 2]
    assert one_form(pa.array(["a"])).to_pylist() == ["a"]
