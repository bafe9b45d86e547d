"""Types that a table keeps by a mark, and those that it does not keep at all."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as st

from pennon.errors import UnsupportedError
from pennon.schema.arrow import schema_from_arrow, schema_to_arrow
from pennon.schema.version import V2_1, V2_2, FileVersion
from pennon.spark.types import lance_schema, spark_schema


class Point(st.UserDefinedType):
    """A type of a user."""

    @classmethod
    def sqlType(cls) -> st.DataType:
        """What it is made of."""
        return st.StructType([st.StructField("x", st.DoubleType())])


def one(kind: st.DataType) -> st.StructType:
    return st.StructType(
        [st.StructField("c", st.ArrayType(st.StructType([st.StructField("p", kind)])))]
    )


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Point(), "'c.p' is .*write what it is made of"),
        (st.GeometryType(4326), "'c.p' is geometry.*st_asbinary"),
        (st.GeographyType(4326), "'c.p' is geography.*st_asbinary"),
        (st.StringType("UTF8_LCASE"), "'c.p' is string collate UTF8_LCASE.*keeps no collation"),
    ],
)
def test_types_without_round_trip_are_refused(kind: st.DataType, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        lance_schema(one(kind), {}, V2_1)


@pytest.mark.parametrize("version", [V2_1, V2_2])
def test_variants_and_comments_round_trip(version: FileVersion) -> None:
    comment = {"comment": "what it is"}
    inner = st.StructType([st.StructField("v", st.VariantType(), metadata=comment)])
    both = st.MapType(st.StringType(), st.ArrayType(st.VariantType()))
    given = st.StructType(
        [
            st.StructField("v", st.VariantType(), metadata=comment),
            st.StructField("s", inner, metadata=comment),
            st.StructField("m", both, metadata=comment),
            st.StructField("x", st.LongType()),
        ]
    )
    stored = schema_to_arrow(schema_from_arrow(lance_schema(given, {}, version)))
    assert spark_schema(stored) == given
    assert stored.field("v").type == pa.struct([("value", pa.binary()), ("metadata", pa.binary())])


def test_variant_mark_on_other_structs_is_ignored() -> None:
    mark = {"pennon:logical-type": "variant"}
    kinds = [
        pa.struct([("value", pa.binary())]),
        pa.struct([("value", pa.binary()), ("metadata", pa.string())]),
    ]
    shown = spark_schema(
        pa.schema([pa.field(str(at), kind, metadata=mark) for at, kind in enumerate(kinds)])
    )
    assert [field.dataType.typeName() for field in shown] == ["struct", "struct"]
