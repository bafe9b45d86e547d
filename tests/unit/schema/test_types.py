"""Logical type strings, both ways."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.errors import FormatError, UnsupportedError
from pennon.schema.types import arrow_type, logical_type

EXACT = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "uint64": pa.uint64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:ms": pa.time32("ms"),
    "time64:ns": pa.time64("ns"),
    "timestamp:us:-": pa.timestamp("us"),
    "timestamp:us:UTC": pa.timestamp("us", "UTC"),
    "timestamp:ns:+01:00": pa.timestamp("ns", "+01:00"),
    "duration:ms": pa.duration("ms"),
    "decimal:128:10:-2": pa.decimal128(10, -2),
    "decimal:256:60:3": pa.decimal256(60, 3),
    "fixed_size_binary:0": pa.binary(0),
    "fixed_size_binary:16": pa.binary(16),
    "fixed_size_list:float:4": pa.list_(pa.float32(), 4),
    "fixed_size_list:bool:9": pa.list_(pa.bool_(), 9),
    "fixed_size_list:fixed_size_list:float:2:3": pa.list_(pa.list_(pa.float32(), 2), 3),
    "fixed_size_list:timestamp:us:+01:00:2": pa.list_(pa.timestamp("us", "+01:00"), 2),
    "fixed_size_list:decimal:128:5:2:2": pa.list_(pa.decimal128(5, 2), 2),
    "dict:string:int32:false": pa.dictionary(pa.int32(), pa.string()),
    "dict:large_string:uint64:false": pa.dictionary(pa.uint64(), pa.large_string()),
}


@pytest.mark.parametrize(("logical", "arrow"), EXACT.items())
def test_the_string_of_the_oracle(logical: str, arrow: pa.DataType) -> None:
    assert logical_type(arrow) == logical
    assert arrow_type(logical) == arrow


@pytest.mark.parametrize(
    ("arrow", "logical"),
    [
        (pa.list_(pa.int8()), "list"),
        (pa.list_(pa.struct([("x", pa.int8())])), "list.struct"),
        (pa.large_list(pa.int8()), "large_list"),
        (pa.large_list(pa.struct([])), "large_list.struct"),
        (pa.list_(pa.struct([]), 2), "fixed_size_list:struct:2"),
        (pa.struct([]), "struct"),
        (pa.map_(pa.string(), pa.int8()), "map"),
        (pa.string_view(), "string"),
        (pa.binary_view(), "binary"),
        (pa.json_(), "json"),
        (pa.uuid(), "fixed_size_binary:16"),
        (pa.dictionary(pa.int8(), pa.int64(), ordered=True), "dict:int64:int8:false"),
    ],
)
def test_logical_type_of_nested_types(arrow: pa.DataType, logical: str) -> None:
    assert logical_type(arrow) == logical


@pytest.mark.parametrize(
    "arrow",
    [
        pa.decimal32(5, 2),
        pa.decimal64(5, 2),
        pa.month_day_nano_interval(),
        pa.list_view(pa.int8()),
        pa.run_end_encoded(pa.int32(), pa.int32()),
        pa.dense_union([pa.field("a", pa.int8())]),
        pa.map_(pa.string(), pa.int8(), keys_sorted=True),
        pa.list_(pa.list_(pa.int8()), 2),
        pa.list_(pa.map_(pa.string(), pa.int8()), 2),
        pa.dictionary(pa.int8(), pa.timestamp("us")),
        pa.dictionary(pa.int8(), pa.list_(pa.int8())),
        pa.dictionary(pa.int8(), pa.binary(3)),
    ],
    ids=str,
)
def test_types_without_a_logical_type_are_refused(arrow: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="no version"):
        logical_type(arrow)


@pytest.mark.parametrize(
    "logical",
    [
        *("", "int33", "Int32", "int32 ", "date32", "date32:ms", "time32:us", "duration:"),
        *("timestamp", "timestamp:us", "timestamp:us:", "timestamp:d:-"),
        *("decimal:64:5:2", "decimal:128:39:0", "decimal:128:0:0", "decimal:128:5:200"),
        *("decimal:128:5", "decimal:128:+5:0", "decimal:128:٣:0", "decimal:256:77:0"),
        *("fixed_size_binary", "fixed_size_binary:-1", "fixed_size_binary:2147483648"),
        *("fixed_size_binary:1_0", "fixed_size_binary: 1", "fixed_size_binary:9999999999999"),
        *("fixed_size_list:float", "fixed_size_list:float:-1", "fixed_size_list::4"),
        *("fixed_size_list:list:4", "fixed_size_list:struct:4", "fixed_size_list:float:4:"),
        *("dict:string:int32", "dict:string:float:false", "dict:struct:int8:false"),
        *("dict:string:int32:maybe", "list", "map", "large_list.struct", "list.int"),
        "fixed_size_list:" * 100 + "int8" + ":1" * 100,
        "dict:" * 100_000,
        "x" * 1_000_000,
    ],
    ids=lambda text: text[:40],
)
def test_damaged_strings_are_format_errors(logical: str) -> None:
    with pytest.raises(FormatError) as caught:
        arrow_type(logical)
    assert len(str(caught.value)) < 200


@given(st.text(max_size=30))
def test_logical_type_strings_parse_or_raise_format_error(text: str) -> None:
    for logical in (text, f"fixed_size_list:{text}", f"dict:{text}", f"decimal:{text}"):
        try:
            arrow_type(logical)
        except FormatError:
            continue


def test_a_map_needs_entries_of_two_fields() -> None:
    entries = pa.field("entries", pa.struct([("key", pa.string()), ("value", pa.int8())]))
    assert arrow_type("map", [entries]) == pa.map_(pa.string(), pa.int8())
    with pytest.raises(FormatError, match="entries of a map"):
        arrow_type("map", [pa.field("entries", pa.int8())])
    with pytest.raises(FormatError, match="2 children instead of 1"):
        arrow_type("list", [entries, entries])


def test_bfloat16_items_have_their_extension_name() -> None:
    logical = "fixed_size_list:lance.bfloat16:8"
    arrow = arrow_type(logical)
    assert arrow.value_type == pa.binary(2)
    assert logical_type(arrow) == logical
