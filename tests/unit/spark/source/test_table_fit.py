"""Columns of a DataFrame against those of a table, without a session."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import types as st

from pennon.errors import InvalidSchemaError, SchemaMismatchError
from pennon.schema.maps import map_entries
from pennon.schema.version import V2_1
from pennon.spark.names import check_new_names, find_name
from pennon.spark.source.table_fit import FitRule, fit_columns, fit_value, grown_columns
from pennon.spark.types import spark_schema

MARK = {"pennon:logical-type": "map"}
PAIR = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.int32())])
TABLE = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False, metadata={"unit": "m"}),
        pa.field("u8", pa.uint64()),
        pa.field("m", pa.list_(pa.field("entries", PAIR, nullable=False)), metadata=MARK),
        pa.field("deep", pa.large_list(pa.field("item", pa.struct([("x", pa.float32())])))),
    ],
    metadata={"of": "table"},
)
STRICT, MERGING = FitRule(V2_1), FitRule(V2_1, merges=True)


def struct(*pairs: tuple[str, st.DataType]) -> st.StructType:
    return st.StructType([st.StructField(name, kind) for name, kind in pairs])


def test_fit_columns_without_merge_keeps_the_table_schema() -> None:
    given = struct(("M", st.MapType(st.StringType(), st.LongType())), ("ID", st.LongType()))
    fit = fit_columns(TABLE, given, STRICT)
    assert fit.table.equals(TABLE, check_metadata=True)
    assert fit.rows.equals(
        pa.schema([TABLE.field("m"), TABLE.field("id")], TABLE.metadata), check_metadata=True
    )


def test_table_fit_of_new_columns_keeps_metadata_and_order() -> None:
    item = struct(("y", st.BooleanType()), ("X", st.DoubleType()))
    given = struct(
        ("new", st.StringType()),
        ("id", st.LongType()),
        ("u8", st.DecimalType(38, 0)),
        ("deep", st.ArrayType(item)),
    )
    fit = fit_columns(TABLE, given, MERGING)
    assert fit.table.names == [*TABLE.names, "new"]
    assert fit.table.field("id") == pa.field("id", pa.int64(), nullable=False)
    assert fit.table.field("id").metadata == {b"unit": b"m"}
    assert fit.table.field("u8").type == pa.uint64()
    inner = pa.struct([("x", pa.float64()), ("y", pa.bool_())])
    assert fit.table.field("deep").type == pa.large_list(inner)
    assert fit.rows.names == ["new", "id", "u8", "deep"]


@pytest.mark.parametrize(
    ("given", "rule", "message"),
    [
        (struct(("id", st.IntegerType()), ("w", st.LongType())), STRICT, "no column 'w'.*mergeSchema"),
        (struct(("u8", st.LongType())), MERGING, "lacks id, which the table requires"),
        (struct(("id", st.StringType())), MERGING, "'id' is int in the table and string"),
        (struct(("ID", st.IntegerType())), FitRule(V2_1, case_sensitive=True), "no column 'ID'"),
        (
            struct(("id", st.IntegerType()), ("deep", st.ArrayType(struct(("z", st.LongType()))))),
            STRICT,
            "'deep.item' has no field 'z'; it has x",
        ),
        (
            struct(("id", st.IntegerType()), ("m", st.MapType(st.StringType(), st.DateType()))),
            MERGING,
            "'m.value' is int in the table and date",
        ),
    ],
)  # fmt: skip
def test_table_fit_refuses_columns_of_other_types(
    given: st.StructType, rule: FitRule, message: str
) -> None:
    with pytest.raises(SchemaMismatchError, match=message):
        fit_columns(TABLE, given, rule)


def test_fit_value_adds_fields_to_map_values_only() -> None:
    item = struct(("a", st.IntegerType()))
    more = struct(("a", st.LongType()), ("b", st.StringType()))
    pair = pa.struct([pa.field("a", pa.int32())])
    real = pa.field("m", pa.map_(pair, pair))
    entries = pa.struct([pa.field("key", pair, nullable=False), pa.field("value", pair)])
    marked = pa.field("m", pa.list_(pa.field("entries", entries, nullable=False)), metadata=MARK)
    for field in (real, marked):
        assert fit_value(field, st.MapType(item, item), MERGING) is field
        grown = fit_value(field, st.MapType(item, more), MERGING)
        assert grown.metadata == field.metadata
        key, value = map_entries(grown) or (None, None)
        assert (key.type, key.nullable) == (pair, False)
        assert value.type == pa.struct([("a", pa.int64()), ("b", pa.string())])
        with pytest.raises(SchemaMismatchError, match=r"'m\.key' has no field 'b'"):
            fit_value(field, st.MapType(more, item), MERGING)


def test_a_void_field_takes_the_type_of_its_values() -> None:
    table = pa.schema(
        [pa.field("x", pa.null(), metadata={"comment": "c"}), ("s", pa.struct([("v", pa.null())]))]
    )
    given = struct(
        ("x", st.MapType(st.StringType(), st.LongType())), ("s", struct(("v", st.VariantType())))
    )
    grown = fit_columns(table, given, MERGING).table
    assert map_entries(grown.field("x")) is not None
    assert grown.field("x").metadata == {
        b"comment": b"c",
        **{k.encode(): v.encode() for k, v in MARK.items()},
    }
    assert spark_schema(grown)["s"].dataType == struct(("v", st.VariantType()))
    with pytest.raises(SchemaMismatchError, match=r"'x' is void .*mergeSchema gives it that type"):
        fit_columns(table, given, STRICT)
    assert fit_columns(table, struct(("x", st.NullType())), STRICT).table.equals(table)


WIDER = [
    (pa.int8(), st.ShortType(), pa.int16()),
    (pa.int32(), st.DoubleType(), pa.float64()),
    (pa.int64(), st.DoubleType(), pa.int64()),
    (pa.int32(), st.FloatType(), pa.int32()),
    (pa.int32(), st.DecimalType(12, 2), pa.decimal128(12, 2)),
    (pa.int32(), st.DecimalType(11, 2), pa.int32()),
    (pa.int64(), st.DecimalType(19, 0), pa.decimal128(19, 0)),
    (pa.uint32(), st.DecimalType(20, 1), pa.decimal128(20, 1)),
    (pa.uint64(), st.DecimalType(38, 0), pa.uint64()),
    (pa.decimal128(4, 2), st.DecimalType(6, 3), pa.decimal128(6, 3)),
    (pa.decimal128(4, 2), st.DecimalType(6, 5), pa.decimal128(4, 2)),
    (pa.float16(), st.FloatType(), pa.float16()),
    (pa.float32(), st.DoubleType(), pa.float64()),
    (pa.date32(), st.TimestampNTZType(), pa.timestamp("us")),
]


@pytest.mark.parametrize(("stored", "given", "wanted"), WIDER)
def test_fit_value_widens_to_lossless_types(
    stored: pa.DataType, given: st.DataType, wanted: pa.DataType
) -> None:
    field = pa.field("x", stored)
    assert fit_value(field, given, MERGING).type == wanted
    if not pa.types.is_date(stored):
        assert fit_value(field, given, STRICT) is field


def test_fit_value_widens_vectors_in_append_but_not_in_merge() -> None:
    vectors, given = pa.field("v", pa.list_(pa.float32(), 2)), st.ArrayType(st.DoubleType())
    assert fit_value(vectors, given, MERGING).type == pa.list_(pa.float64(), 2)
    assert fit_value(vectors, given, replace(MERGING, assigns=True)) is vectors
    numbers = pa.field("v", pa.list_(pa.float32()))
    assert fit_value(numbers, given, replace(MERGING, assigns=True)).type == pa.list_(pa.float64())


def test_grown_columns_keep_types_of_unfitting_columns() -> None:
    given = struct(("id", st.StringType()), ("u8", st.LongType()), ("NEW", st.LongType()))
    grown = grown_columns(TABLE, given, MERGING)
    assert grown.field("id").equals(TABLE.field("id"), check_metadata=True)
    assert grown.names == [*TABLE.names, "NEW"]


def test_find_name_prefers_the_exact_case() -> None:
    assert find_name("a", ["A", "a"], case_sensitive=False) == "a"
    assert find_name("B", ["a", "b"], case_sensitive=False) == "b"
    assert find_name("B", ["a", "b"], case_sensitive=True) is None


def test_check_new_names_within_maps_and_arrays() -> None:
    twice = struct(("x", st.LongType()), ("X", st.LongType()))
    given = struct(("m", st.MapType(st.StringType(), st.ArrayType(twice))))
    with pytest.raises(InvalidSchemaError, match="column 'm' has the fields 'x' and 'X'"):
        check_new_names(given, case_sensitive=False)
    check_new_names(given, case_sensitive=True)
