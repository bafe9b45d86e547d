"""Spark's types and Lance's; the table of both directions is in docs/spark.md.

What exists keeps its types: `pennon.spark.source.table_fit` takes those of the table, and `pennon.spark.arrow_convert`
checks each value.  What is new gets the types of `lance_schema`: maps as marked lists of entries
(see below), fixed-size lists where the option says so, and every field may be NULL, the
keys of maps excepted.

Maps are those of `pennon.schema.maps`: real ones in files of version 2.2, marked lists of entries
before.  Spark sees a map in both.  `tests/spark/test_maps.py` holds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pat
from pyspark.sql import types as st

from pennon.errors import ArgumentError, UnsupportedError
from pennon.schema.maps import MARK, map_entries, map_storage_field
from pennon.schema.version import Ability, FileVersion
from pennon.spark.pyspark_classes import (
    GeographyType,
    GeometryType,
    TimeType,
    VariantType,
    check_release,
    to_arrow,
)

ROW_ID = "_rowid"
ROW_ADDRESS = "_rowaddr"
SYSTEM_COLUMNS = (ROW_ID, ROW_ADDRESS)

MAX_SPARK_PRECISION = 38
INTEGERS: Final = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
"""Spark's types of whole numbers, narrow ones first."""

COMMENT = "comment"
"""The metadata of a field that Spark shows as a column's comment; lance-spark calls it so, too."""
VARIANT = "variant"
"""What `MARK` says of a struct that holds a VARIANT's two binaries."""

_LEAVES: Mapping[pa.DataType, st.DataType] = {
    pa.null(): st.NullType(),
    pa.bool_(): st.BooleanType(),
    pa.int8(): st.ByteType(),
    pa.int16(): st.ShortType(),
    pa.int32(): st.IntegerType(),
    pa.int64(): st.LongType(),
    pa.uint8(): st.ShortType(),
    pa.uint16(): st.IntegerType(),
    pa.uint32(): st.LongType(),
    pa.uint64(): st.DecimalType(20, 0),
    pa.float16(): st.FloatType(),
    pa.float32(): st.FloatType(),
    pa.float64(): st.DoubleType(),
    pa.string(): st.StringType(),
    pa.large_string(): st.StringType(),
    pa.string_view(): st.StringType(),
    pa.binary(): st.BinaryType(),
    pa.large_binary(): st.BinaryType(),
    pa.binary_view(): st.BinaryType(),
    pa.date32(): st.DateType(),
    pa.date64(): st.DateType(),
}


def system_field(name: str) -> pa.Field:
    """Return the Arrow field of one of `SYSTEM_COLUMNS`; `spark_schema` makes it a LongType."""
    return pa.field(name, pa.uint64(), nullable=False)


def with_system_columns(schema: pa.Schema) -> pa.Schema:
    """Return a table's columns with ``_rowid`` and ``_rowaddr``, where no column has such a name."""
    missing = [name for name in SYSTEM_COLUMNS if name not in schema.names]
    return pa.schema([*schema, *map(system_field, missing)], schema.metadata)


def spark_schema(schema: pa.Schema) -> st.StructType:
    """Return the schema that Spark sees for a table (or a projection of it)."""
    return st.StructType([_spark_field(field, field.name) for field in schema])


def _spark_field(field: pa.Field, path: str) -> st.StructField:
    if path in SYSTEM_COLUMNS:
        return st.StructField(field.name, st.LongType(), field.nullable)
    comment = (field.metadata or {}).get(COMMENT.encode())
    said = None if comment is None else {COMMENT: comment.decode(errors="replace")}
    return st.StructField(field.name, spark_type(field, path), field.nullable, said)


def spark_type(field: pa.Field, path: str) -> st.DataType:
    """Return the Spark type of a column; ``path`` names it in the error when there is none."""
    entries = map_entries(field)
    if entries is not None:
        key, value = entries
        return st.MapType(spark_type(key, path), spark_type(value, path), value.nullable)
    arrow = field.type
    if isinstance(arrow, pa.BaseExtensionType):
        return spark_type(field.with_type(arrow.storage_type), path)
    if pat.is_dictionary(arrow):
        return spark_type(field.with_type(arrow.value_type), path)
    if pat.is_list(arrow) or pat.is_large_list(arrow) or pat.is_fixed_size_list(arrow):
        element = spark_type(arrow.value_field, path)
        return st.ArrayType(element, arrow.value_field.nullable)
    if pat.is_struct(arrow):
        if _is_variant(field):
            check_release((4, 0), f"column {path!r}, a VARIANT,")
            return VariantType()
        children = (arrow.field(i) for i in range(arrow.num_fields))
        return st.StructType([_spark_field(c, f"{path}.{c.name}") for c in children])
    leaf = _LEAVES.get(arrow)
    return _parametric_type(arrow, path) if leaf is None else leaf


def _is_variant(field: pa.Field) -> bool:
    """Return whether a struct is marked as a VARIANT of Spark, and can be one."""
    if (field.metadata or {}).get(MARK.encode()) != VARIANT.encode():
        return False
    children = [field.type.field(i) for i in range(field.type.num_fields)]
    names = [child.name for child in children]
    return names == ["value", "metadata"] and all(pat.is_binary(each.type) for each in children)


def _parametric_type(arrow: pa.DataType, path: str) -> st.DataType:
    """The types that carry a width, a unit, a zone or a precision."""
    if pat.is_timestamp(arrow):
        return st.TimestampNTZType() if arrow.tz is None else st.TimestampType()
    if pat.is_time(arrow):
        check_release((4, 1), f"column {path!r}, which is {arrow},")
        return TimeType(6)
    if pat.is_duration(arrow):
        return st.DayTimeIntervalType()
    if pat.is_fixed_size_binary(arrow):
        return st.BinaryType()
    if pat.is_decimal(arrow):
        if arrow.precision <= MAX_SPARK_PRECISION and 0 <= arrow.scale <= arrow.precision:
            return st.DecimalType(arrow.precision, arrow.scale)
        message = f"column {path!r} is {arrow}; Spark's decimals have at most 38 digits"
        raise UnsupportedError(message)
    message = f"column {path!r} is {arrow}, which has no Spark type"
    raise UnsupportedError(message)


def is_plain_text(kind: st.DataType) -> bool:
    """Return whether values are texts that are compared by their bytes; a collation changes what equality means."""
    # The name of a collation is part of the simple string.
    return isinstance(kind, st.StringType) and kind.simpleString() == "string"


def arrow_schema(schema: st.StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark wants the batches of ``schema``, exactly."""
    return pa.schema([_arrow_field(field, field.name) for field in schema.fields])


def _arrow_field(field: st.StructField, path: str) -> pa.Field:
    try:
        return pa.field(field.name, to_arrow(field.dataType), field.nullable)
    except Exception as error:
        message = f"column {path!r}: Spark cannot hand over {field.dataType.simpleString()}"
        raise UnsupportedError(message) from error


def lance_schema(
    schema: st.StructType, fixed_size_lists: Mapping[str, int], version: FileVersion
) -> pa.Schema:
    """Return the Arrow schema of a new table for a Spark schema, in files of a version.

    ``fixed_size_lists`` maps dotted column names to dimensions.  Raises ArgumentError when one of
    them is not an array column of ``schema``.
    """
    unused = dict(fixed_size_lists)
    stored = _Stored(unused, has_maps=version.holds(Ability.MAPS))
    pairs = zip(arrow_schema(schema), schema.fields, strict=True)
    fields = [stored.commented(arrow, said, said.name) for arrow, said in pairs]
    if unused:
        names = ", ".join(schema.fieldNames())
        message = f"fixed_size_list names {sorted(unused)}: no array columns; columns are {names}"
        raise ArgumentError(message)
    return pa.schema(fields)


@dataclass(frozen=True, slots=True)
class _Stored:
    """The storage form of fields; ``dimensions`` loses the columns that were found."""

    dimensions: dict[str, int]
    has_maps: bool

    def commented(self, field: pa.Field, said: st.StructField, path: str) -> pa.Field:
        """Return the field as it is stored, with its comment."""
        made = self.field(field, said.dataType, path)
        comment = (said.metadata or {}).get(COMMENT)
        if comment is None:
            return made
        return made.with_metadata({**(made.metadata or {}), COMMENT: str(comment)})

    def field(self, field: pa.Field, said: st.DataType, path: str) -> pa.Field:
        """Return the field as it is stored; parts of a map are ``path.key`` and ``path.value``."""
        arrow, metadata = field.type, None
        if isinstance(said, st.MapType):
            key = self.field(arrow.key_field, said.keyType, f"{path}.key")
            value = self.field(arrow.item_field, said.valueType, f"{path}.value")
            if not self.has_maps:
                return map_storage_field(field.name, key, value)
            arrow = pa.map_(key.with_nullable(nullable=False), value)
        elif isinstance(said, st.StructType):
            pairs = zip(_fields_of(arrow), said.fields, strict=True)
            parts = [self.commented(part, each, f"{path}.{part.name}") for part, each in pairs]
            arrow = pa.struct(parts)
        elif isinstance(said, st.ArrayType):
            dimension = self.dimensions.pop(path, None)
            item = self.field(arrow.value_field.with_name("item"), said.elementType, path)
            arrow = pa.list_(item) if dimension is None else pa.list_(item, dimension)
        elif isinstance(said, VariantType):
            parts = [part.remove_metadata().with_nullable(True) for part in _fields_of(arrow)]  # noqa: FBT003
            arrow = pa.struct(parts)
            metadata = {MARK: VARIANT}
        else:
            _check_kept(said, path)
        return pa.field(field.name, arrow, nullable=True, metadata=metadata)


def _fields_of(struct: pa.DataType) -> list[pa.Field]:
    return [struct.field(i) for i in range(struct.num_fields)]


def _check_kept(said: st.DataType, path: str) -> None:
    """Raise UnsupportedError for a type that would come back as another one without a word."""
    remedy = None
    if isinstance(said, st.UserDefinedType):
        remedy = "write what it is made of (for ML vectors: vector_to_array)"
    elif isinstance(said, (GeometryType, GeographyType)):
        remedy = "write its WKB: st_asbinary(column)"
    elif isinstance(said, st.StringType) and "collate" in said.simpleString():
        remedy = "a table keeps no collation: write it as string (collate UTF8_BINARY)"
    if remedy is not None:
        message = f"column {path!r} is {said.simpleString()}, which a table does not keep; {remedy}"
        raise UnsupportedError(message)


def is_assignable(given: st.DataType, wanted: st.DataType) -> bool:
    """Return whether a column takes values of a type: the same one, or a number for a number."""
    if isinstance(given, st.NullType):
        return True
    if isinstance(given, st.NumericType) and isinstance(wanted, st.NumericType):
        return True
    if isinstance(given, st.ArrayType) and isinstance(wanted, st.ArrayType):
        return is_assignable(given.elementType, wanted.elementType)
    if isinstance(given, st.MapType) and isinstance(wanted, st.MapType):
        return is_assignable(given.keyType, wanted.keyType) and is_assignable(
            given.valueType, wanted.valueType
        )
    if isinstance(given, st.StructType) and isinstance(wanted, st.StructType):
        return set(given.names) == set(wanted.names) and all(
            is_assignable(field.dataType, wanted[field.name].dataType) for field in given.fields
        )
    text = (st.StringType, st.CharType, st.VarcharType)
    if isinstance(given, text) and isinstance(wanted, text):
        return True
    return type(given) is type(wanted)
