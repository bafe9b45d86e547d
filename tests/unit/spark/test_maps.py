"""The mark of a map among lists of structs."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as st

from pennon.schema.arrow import schema_from_arrow, schema_to_arrow
from pennon.schema.maps import MARK, map_entries, map_storage_field
from pennon.schema.version import V2_1, V2_2
from pennon.spark.types import lance_schema, spark_schema

NESTED = st.StructType(
    [
        st.StructField("m", st.MapType(st.StringType(), st.MapType(st.LongType(), st.ByteType()))),
        st.StructField("a", st.ArrayType(st.MapType(st.StringType(), st.LongType()))),
        st.StructField(
            "s", st.StructType([st.StructField("m", st.MapType(st.DateType(), st.StringType()))])
        ),
        st.StructField("k", st.MapType(st.StructType([st.StructField("x", st.LongType())]),
                                       st.ArrayType(st.FloatType()))),
    ]
)  # fmt: skip


def test_nested_maps_round_trip_through_marked_schema() -> None:
    stored = schema_to_arrow(schema_from_arrow(lance_schema(NESTED, {"k.value": 4}, V2_1)))
    assert not any(pa.types.is_map(field.type) for field in stored)
    assert spark_schema(stored) == NESTED
    value = stored.field("k").type.value_type.field("value")
    assert value.type == pa.list_(pa.float32(), 4)


def test_maps_at_2_2_are_stored_as_maps() -> None:
    stored = lance_schema(NESTED, {"k.value": 4}, V2_2)
    stored = schema_to_arrow(schema_from_arrow(stored))
    assert pa.types.is_map(stored.field("m").type.item_type)
    assert pa.types.is_map(stored.field("a").type.value_type)
    assert stored.field("k").type.item_type == pa.list_(pa.float32(), 4)
    assert MARK not in stored.to_string(show_schema_metadata=True)
    assert spark_schema(stored) == NESTED


def plain(entries: pa.Field) -> pa.Field:
    return pa.field("m", pa.list_(entries), metadata={MARK: "map"})


KEY = pa.field("key", pa.string(), nullable=False)
VALUE = pa.field("value", pa.int64())
MARKED = map_storage_field("m", KEY, VALUE)


@pytest.mark.parametrize(
    "field",
    [
        MARKED.with_metadata(None),
        MARKED.with_metadata({MARK: "set"}),
        MARKED.with_type(pa.list_(pa.int64())),
        MARKED.with_type(pa.string()),
        plain(pa.field("entries", pa.struct([KEY, VALUE]))),
        plain(pa.field("entries", pa.struct([KEY]), nullable=False)),
        plain(pa.field("entries", pa.struct([KEY, VALUE, VALUE]), nullable=False)),
        plain(pa.field("entries", pa.struct([VALUE, KEY]), nullable=False)),
    ],
    ids=["no mark", "another", "list of numbers", "text", "NULL entry", "one", "three", "NULL key"],
)
def test_map_mark_on_other_types_is_ignored(field: pa.Field) -> None:
    assert map_entries(MARKED) == (KEY, VALUE)
    assert map_entries(field) is None
    assert not isinstance(spark_schema(pa.schema([field]))["m"].dataType, st.MapType)
