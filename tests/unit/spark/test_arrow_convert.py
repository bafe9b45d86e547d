"""Conversion between Spark's Arrow types and those of a table."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pennon.errors import ArgumentError
from pennon.spark.arrow_convert import convert, convert_batch

VECTOR = pa.list_(pa.float32(), 2)
LIST = pa.list_(pa.field("element", pa.float32()))


@pytest.mark.parametrize("rows", [[[1.0, 2.0], [3.0, None]], [[1.0, 2.0], None, [3.0, 4.0]], []])
@pytest.mark.parametrize("start", [0, 1])
def test_fixed_size_lists_round_trip_as_lists(rows: list[list[float] | None], start: int) -> None:
    vectors = pa.array(rows, VECTOR).slice(start)
    lists = convert(vectors, LIST)
    lists.validate(full=True)
    assert lists.to_pylist() == rows[start:]
    back = convert(lists, VECTOR)
    back.validate(full=True)
    assert back.to_pylist() == rows[start:]


def test_arrow_convert_ignores_values_under_null_list() -> None:
    values = pa.array([9.0, 1.0, 2.0], pa.float32())
    mask = pa.array([True, False])
    hidden = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), values, mask=mask)
    assert convert(hidden, VECTOR).to_pylist() == [None, [1.0, 2.0]]


def test_struct_conversion_matches_fields_by_name_and_keeps_nulls() -> None:
    given = pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}]).slice(1)
    target = pa.struct([pa.field("y", pa.string()), pa.field("x", pa.int32())])
    assert convert(given, target).to_pylist() == [None, {"y": "b", "x": None}]


def test_nanoseconds_are_rounded_down_before_and_after_1970() -> None:
    given = pa.array([-1, 1999, None], pa.int64()).cast(pa.timestamp("ns", "UTC"))
    micros = convert(given, pa.timestamp("us", "UTC")).cast(pa.int64())
    assert micros.to_pylist() == [-1, 1, None]


@pytest.mark.parametrize(
    ("given", "target", "message"),
    [
        (pa.array([300]), pa.uint8(), "'a' cannot become uint8"),
        (pa.array([[1.0]], LIST), VECTOR, "a list of 1 values, not 2"),
        (pa.array([0], pa.timestamp("us")), pa.timestamp("us", "UTC"), "different kinds of time"),
        (pa.array([0.5, 0.1]), pa.float32(), "0.1 would be rounded or lost"),
        (pa.array([1e300]), pa.float32(), "1e.300 would be rounded or lost"),
        (pa.array([1e6], pa.float32()), pa.float16(), "1000000.0 would be rounded or lost"),
        (pa.array([0.125]), pa.decimal128(5, 2), "0.125 would be rounded or lost"),
        (pa.array([Decimal("12345678901234567.8")]), pa.float64(), "would be rounded or lost"),
        (pa.array([{"x": 1.9}]), pa.struct([("x", pa.int32())]), r"'a\.x' cannot become int32"),
        (
            pa.array([{"x": Decimal("1.234")}]),
            pa.struct([("x", pa.decimal128(9, 2))]),
            r"'a\.x' .*loss",
        ),
        (pa.array([[1.9]]), pa.large_list(pa.int32()), r"'a\.item' cannot become int32"),
        (pa.array([[0.1]]), pa.large_list(pa.float32()), r"'a\.item' .*0.1 would be rounded"),
        (
            pa.array([[{"x": 2**53 + 1}]]),
            pa.list_(pa.struct([("x", pa.float64())])),
            r"'a\.item\.x'",
        ),
        (
            pa.array([[("k", 70000)]], pa.map_(pa.string(), pa.int32())),
            pa.map_(pa.string(), pa.int16()),
            r"'a\.value' cannot become int16",
        ),
        (
            pa.array([[1e300, 0.0]]),
            VECTOR,
            r"'a\.item' cannot become float: 1e.300 is beyond float",
        ),
        (pa.array([1000]), pa.decimal128(4, 2), "'a' cannot become decimal"),
    ],
)
def test_conversion_of_unfitting_values_names_the_column(
    given: pa.Array, target: pa.DataType, message: str
) -> None:
    batch = pa.record_batch({"a": given})
    with pytest.raises(ArgumentError, match=message):
        convert_batch(batch, pa.schema([pa.field("a", target)]))


def test_vectors_of_doubles_are_rounded_to_floats_and_other_lists_are_not() -> None:
    given = pa.array([[0.1, 2.0], None, [float("inf"), float("nan")]])
    narrow = pa.array([0.1], pa.float32())[0].as_py()
    made = convert(given, VECTOR)
    made.validate(full=True)
    assert str(made.to_pylist()) == str([[narrow, 2.0], None, [float("inf"), float("nan")]])
    half = convert(pa.array([[0.1, 2.0]]), pa.list_(pa.float16(), 2))
    assert half.to_pylist() == [[pytest.approx(0.1, rel=1e-3), 2.0]]
    with pytest.raises(pa.ArrowInvalid, match=r"0\.1 would be rounded"):
        convert(given, pa.list_(pa.float32()))


def test_integers_convert_to_decimals() -> None:
    target = pa.decimal128(5, 2)
    found = convert(pa.array([1, -999, None]), target).to_pylist()
    assert found == [Decimal("1.00"), Decimal("-999.00"), None]


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
def test_struct_conversion_within_lists_and_maps_matches_fields_by_name(kind: Any) -> None:
    given, wanted = (
        pa.struct([("b", pa.int64()), ("a", pa.int64())]),
        pa.struct([("a", pa.int32()), ("b", pa.int32())]),
    )
    rows = [[{"b": 20, "a": 10}]]
    assert convert(pa.array(rows, pa.list_(given)), kind(wanted)).to_pylist() == [
        [{"a": 10, "b": 20}]
    ]
    pairs = pa.array([[({"b": 20, "a": 10}, [{"b": 2, "a": 1}])]], pa.map_(given, pa.list_(given)))
    made = convert(pairs, pa.map_(wanted, kind(wanted)))
    made.validate(full=True)
    assert made.to_pylist() == [[({"a": 10, "b": 20}, [{"a": 1, "b": 2}])]]


def test_dictionaries_become_values_and_back() -> None:
    words = pa.array(["x", None, "y", "x"]).dictionary_encode()
    assert convert(words, pa.string()).to_pylist() == ["x", None, "y", "x"]
    again = convert(convert(words, pa.string()), words.type)
    assert (again.type, again.to_pylist()) == (words.type, ["x", None, "y", "x"])


PAIR = [pa.field("key", pa.int64(), nullable=False), pa.field("value", pa.string())]
STORED_MAP = pa.list_(pa.field("entries", pa.struct(PAIR), nullable=False))
MAP = pa.map_(pa.int64(), pa.string())


@pytest.mark.parametrize("start", [0, 1, 2])
@pytest.mark.parametrize("wide", [False, True])
def test_maps_round_trip_as_lists_of_entries(start: int, wide: bool) -> None:
    rows = [[(1, "a"), (2, None)], None, [], [(3, "c")]]
    maps = pa.array(rows, pa.map_(pa.int64(), pa.large_string() if wide else pa.string()))
    lists = convert(maps.slice(start), STORED_MAP)
    lists.validate(full=True)
    entries = [row and [{"key": k, "value": v} for k, v in row] for row in rows]
    assert lists.to_pylist() == entries[start:]
    large = lists.cast(pa.large_list(STORED_MAP.value_field))
    for stored in (lists, large, maps.slice(start)):
        back = convert(stored, MAP)
        back.validate(full=True)
        assert (back.type, back.to_pylist()) == (MAP, rows[start:])


def test_map_with_null_key_or_entry_is_refused_except_under_null_rows() -> None:
    entry = pa.struct([("k", pa.int64()), ("v", pa.string())])
    wrong = [[{"k": None, "v": "a"}], [None]]
    for row in wrong:
        with pytest.raises(pa.ArrowInvalid, match="an entry or a key is NULL"):
            convert(pa.array([row], pa.list_(entry)), MAP)
    values = pa.array([None, {"k": 1, "v": "a"}], entry)
    mask = pa.array([True, False])
    hidden = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), values, mask=mask)
    assert convert(hidden, MAP).to_pylist() == [None, [(1, "a")]]
    with pytest.raises(pa.ArrowInvalid, match="no list of structs of two fields"):
        convert(pa.array([[1]]), MAP)


def test_exact_numbers_convert_to_narrower_types() -> None:
    nan, endless = float("nan"), float("inf")
    given = pa.array([0.5, None, nan, endless, -0.0])
    for target in (pa.float32(), pa.float16()):
        assert str(convert(given, target).to_pylist()) == str(given.to_pylist())
    assert convert(pa.array([0.1]), pa.decimal128(5, 2)).to_pylist() == [Decimal("0.10")]
    assert convert(pa.array([Decimal("0.1")]), pa.float64()).to_pylist() == [0.1]
    assert convert(pa.array([0.1], pa.float32()), pa.float16()).to_pylist() == [0.0999755859375]


def test_struct_conversion_ignores_case_and_fills_missing_fields() -> None:
    given = pa.array([{"X": 1, "y": 2}, None])
    target = pa.struct([("x", pa.int64()), ("Y", pa.int64()), ("y", pa.int64())])
    assert convert(given, target).to_pylist() == [{"x": 1, "Y": None, "y": 2}, None]
