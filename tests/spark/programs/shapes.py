"""Nested types of random programs on Spark: their Arrow, Spark and SQL forms, and values of them.

A value is plain Python: a struct is a dict, a map a list of pairs, a variant a `Json`.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyspark.sql.types as st

TEXTS: Final = ("a", "b", "it's", "ü", "")


@dataclass(frozen=True, slots=True)
class Json:
    """A value of a variant."""

    text: str


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a field of a struct."""

    name: str
    shape: Shape
    required: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """A type: a scalar by its name, or one that has others inside."""

    kind: str
    fields: tuple[Field, ...] = ()
    """Those of a struct; ``item`` of an array, ``key`` and ``value`` of a map."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """The facts of a type without others inside."""

    arrow: pa.DataType
    spark: st.DataType
    make: Callable[[Random], Any]
    sql: Callable[[Any], str]


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCALARS: Final[dict[str, Scalar]] = {
    "int": Scalar(pa.int32(), st.IntegerType(), lambda r: r.randint(-99, 99), str),
    "long": Scalar(pa.int64(), st.LongType(), lambda r: r.randint(-99, 99), "{}L".format),
    "double": Scalar(pa.float64(), st.DoubleType(), lambda r: r.randint(-9, 9) / 4, "{!r}D".format),
    "string": Scalar(pa.string(), st.StringType(), lambda r: r.choice(TEXTS), _quoted),
    "bool": Scalar(
        pa.bool_(), st.BooleanType(), lambda r: r.random() < 0.5, lambda v: str(v).lower()
    ),
    "date": Scalar(
        pa.date32(),
        st.DateType(),
        lambda r: dt.date(2020, 1, 1) + dt.timedelta(r.randrange(-900, 900)),
        "DATE'{}'".format,
    ),
    "decimal": Scalar(
        pa.decimal128(10, 2),
        st.DecimalType(10, 2),
        lambda r: Decimal(r.randint(-9999, 9999)).scaleb(-2),
        "CAST('{}' AS DECIMAL(10,2))".format,
    ),
    "variant": Scalar(
        pa.null(),
        st.VariantType(),
        lambda r: Json(json.dumps(r.choice([3, "x", [1, None], {"a": {"b": True}}]))),
        lambda v: f"parse_json({_quoted(v.text)})",
    ),
}


def scalar(kind: str) -> Shape:
    """Return a type without others inside."""
    return Shape(kind)


def struct(*fields: Field) -> Shape:
    """Return a struct."""
    return Shape("struct", fields)


def array(item: Shape, *, required: bool = False) -> Shape:
    """Return an array."""
    return Shape("array", (Field("item", item, required),))


def map_of(key: Shape, value: Shape) -> Shape:
    """Return a map."""
    return Shape("map", (Field("key", key, required=True), Field("value", value)))


def has(shape: Shape, kind: str) -> bool:
    """Return whether a type is of a kind, or has one inside."""
    return shape.kind == kind or any(has(field.shape, kind) for field in shape.fields)


def is_strict(shape: Shape) -> bool:
    """Return whether something inside may not be NULL, keys of maps apart."""
    return any(
        (field.required and shape.kind != "map") or is_strict(field.shape) for field in shape.fields
    )


def random_shape(rng: Random, depth: int, *, strict: bool, variants: bool) -> Shape:
    """Return a type; ``strict``: fields inside may be required."""
    scalars = [kind for kind in SCALARS if kind != "variant"]
    choice = rng.random()
    if not depth or choice < 0.3:
        return scalar("variant" if variants and rng.random() < 0.3 else rng.choice(scalars))

    def inner() -> Shape:
        return random_shape(rng, depth - 1, strict=strict, variants=variants)

    if choice < 0.65:
        names = rng.sample(["a", "b", "c", "d e"], rng.randint(1, 3))
        return struct(
            *(Field(name, inner(), required=strict and rng.random() < 0.3) for name in names)
        )
    if choice < 0.8:
        return array(inner(), required=strict and rng.random() < 0.3)
    key = scalar(rng.choice(["string", "int"]))
    if rng.random() < 0.3:
        key = struct(Field("p", scalar("int")), Field("q", scalar("string")))
    return map_of(key, inner())


# --- forms ----------------------------------------------------------------------------------------


def arrow_type(shape: Shape) -> pa.DataType:
    """Return a type of Arrow, with what may not be NULL."""
    if shape.kind in SCALARS:
        return SCALARS[shape.kind].arrow
    inner = [pa.field(f.name, arrow_type(f.shape), not f.required) for f in shape.fields]
    if shape.kind == "struct":
        return pa.struct(inner)
    return pa.list_(inner[0]) if shape.kind == "array" else pa.map_(inner[0].type, inner[1])


def spark_type(shape: Shape) -> st.DataType:
    """Return a type of Spark in which everything may be NULL."""
    if shape.kind in SCALARS:
        return SCALARS[shape.kind].spark
    inner = [spark_type(field.shape) for field in shape.fields]
    if shape.kind == "struct":
        named = zip(shape.fields, inner, strict=True)
        return st.StructType([st.StructField(field.name, each) for field, each in named])
    return st.ArrayType(inner[0]) if shape.kind == "array" else st.MapType(inner[0], inner[1])


def ddl(shape: Shape) -> str:
    """Return a type as Spark's SQL writes it."""
    if shape.kind in SCALARS:
        return SCALARS[shape.kind].spark.simpleString()
    inner = [ddl(field.shape) for field in shape.fields]
    if shape.kind == "struct":
        named = zip(shape.fields, inner, strict=True)
        inner = [f"`{field.name}`: {each}" for field, each in named]
    return f"{shape.kind}<{', '.join(inner)}>"


def sql_of(rng: Random, shape: Shape, value: Any) -> str:
    """Return an expression of Spark's SQL; fields of structs in any order, the same for all items."""
    return _sql(_shuffled(rng, shape), value)


def _shuffled(rng: Random, shape: Shape) -> Shape:
    fields = [replace(field, shape=_shuffled(rng, field.shape)) for field in shape.fields]
    if shape.kind == "struct":
        rng.shuffle(fields)
    return replace(shape, fields=tuple(fields))


def _sql(shape: Shape, value: Any) -> str:
    if value is None or (shape.kind in {"array", "map"} and not value):
        made = "NULL" if value is None else f"{shape.kind}()"
        return f"CAST({made} AS {ddl(shape)})"
    if shape.kind in SCALARS:
        return SCALARS[shape.kind].sql(value)
    if shape.kind == "struct":
        named = (f"'{f.name}', {_sql(f.shape, value[f.name])}" for f in shape.fields)
        return f"named_struct({', '.join(named)})"
    if shape.kind == "array":
        return f"array({', '.join(_sql(shape.fields[0].shape, item) for item in value)})"
    pairs = (
        _sql(field.shape, part)
        for pair in value
        for field, part in zip(shape.fields, pair, strict=True)
    )
    return f"map({', '.join(pairs)})"


# --- values ---------------------------------------------------------------------------------------


def random_value(rng: Random, shape: Shape, *, required: bool = False) -> Any:
    """Return a value, NULL now and then where that may be."""
    if not required and rng.random() < 0.15:
        return None
    if shape.kind in SCALARS:
        return SCALARS[shape.kind].make(rng)
    if shape.kind == "struct":
        return {f.name: random_value(rng, f.shape, required=f.required) for f in shape.fields}
    count = rng.choice([0, 1, 2, 3])
    if shape.kind == "array":
        (item,) = shape.fields
        return [random_value(rng, item.shape, required=item.required) for _ in range(count)]
    key, value = shape.fields
    keys = {repr(made): made for made in (_key(rng, key.shape) for _ in range(count))}
    return [(made, random_value(rng, value.shape)) for made in keys.values()]


def _key(rng: Random, shape: Shape) -> Any:
    if shape.kind == "struct":
        return {f.name: SCALARS[f.shape.kind].make(rng) for f in shape.fields}
    return SCALARS[shape.kind].make(rng)


def for_arrow(shape: Shape, value: Any) -> Any:
    """Return a value as pyarrow takes it."""
    if value is None or shape.kind in SCALARS:
        return value
    if shape.kind == "struct":
        return {f.name: for_arrow(f.shape, value[f.name]) for f in shape.fields}
    if shape.kind == "array":
        return [for_arrow(shape.fields[0].shape, item) for item in value]
    return [
        tuple(for_arrow(f.shape, part) for f, part in zip(shape.fields, pair, strict=True))
        for pair in value
    ]


def for_spark(shape: Shape, value: Any) -> Any:
    """Return a value as ``createDataFrame`` takes it, by a shape that may have other order or names."""
    if value is None:
        return None
    if shape.kind == "double":
        return float(value)
    if shape.kind == "variant":
        return st.VariantVal.parseJson(value.text)
    if shape.kind in SCALARS:
        return value
    if shape.kind == "struct":
        by_name = {name.lower(): part for name, part in value.items()}
        return tuple(for_spark(f.shape, by_name.get(f.name.lower())) for f in shape.fields)
    if shape.kind == "array":
        return [for_spark(shape.fields[0].shape, item) for item in value]
    key, item = shape.fields
    return {for_spark(key.shape, k): for_spark(item.shape, v) for k, v in value}


def plain(shape: Shape, value: Any) -> Any:
    """Return a value that Spark collected, or one of the model, so that equal ones are equal."""
    if value is None:
        return None
    if shape.kind == "variant":
        return ("variant", json.loads(value.text if isinstance(value, Json) else value.toJson()))
    if shape.kind in SCALARS:
        return value
    if shape.kind == "struct":
        return {f.name: plain(f.shape, value[f.name]) for f in shape.fields}
    if shape.kind == "array":
        return [plain(shape.fields[0].shape, item) for item in value]
    key, item = shape.fields
    pairs = value.items() if isinstance(value, dict) else value
    return sorted(((plain(key.shape, k), plain(item.shape, v)) for k, v in pairs), key=repr)


# --- changed shapes -------------------------------------------------------------------------------


Way = tuple[Field, ...]
"""A column, and fields inside it, from the outside."""


def ways(fields: tuple[Field, ...]) -> Iterator[Way]:
    """Yield the ways to all columns and to all fields of structs in structs."""
    for field in fields:
        yield (field,)
        if field.shape.kind == "struct":
            yield from ((field, *way) for way in ways(field.shape.fields))


def quoted(way: Way) -> str:
    """Return a way as SQL writes it."""
    return ".".join(f"`{field.name}`" for field in way)


def value_at(way: Way, row: dict[str, Any]) -> Any:
    """Return what a way leads to in a row; NULL below NULL."""
    value: Any = row
    for field in way:
        if value is None:
            return None
        value = value[field.name]
    return value


def with_value(way: Way, row: dict[str, Any], value: Any) -> dict[str, Any]:
    """Return a row with another value at the end of a way; a NULL struct on it becomes one of NULLs."""
    first, *rest = way
    if rest:
        inner = row[first.name]
        if inner is None:
            inner = {field.name: None for field in first.shape.fields}
        value = with_value(tuple(rest), inner, value)
    return {**row, first.name: value}


def grown(rng: Random, shape: Shape, name: str) -> Shape:
    """Return the type with a new field in one of its structs, wherever that is; the same if it has none."""
    able = [at for at, field in enumerate(shape.fields) if has(field.shape, "struct")]
    if shape.kind == "map":
        able = [at for at in able if at == 1]  # two keys might become equal, and files of 2.1 ...
    if shape.kind == "struct" and (not able or rng.random() < 0.5):
        return replace(
            shape, fields=(*shape.fields, Field(name, scalar(rng.choice(["int", "string"]))))
        )
    if not able:
        return shape
    at = rng.choice(able)
    field = shape.fields[at]
    inside = replace(field, shape=grown(rng, field.shape, name))
    return replace(shape, fields=(*shape.fields[:at], inside, *shape.fields[at + 1 :]))


def fitted(shape: Shape, value: Any) -> Any:
    """Return a value with the fields of a type: NULL for those that it lacks, and none besides."""
    if value is None or shape.kind in SCALARS:
        return value
    if shape.kind == "struct":
        return {f.name: fitted(f.shape, value.get(f.name)) for f in shape.fields}
    if shape.kind == "array":
        return [fitted(shape.fields[0].shape, item) for item in value]
    return [(key, fitted(shape.fields[1].shape, item)) for key, item in value]


def respelled(rng: Random, shape: Shape, *, case: bool) -> Shape:
    """Return a type that a source may have: fields in other order, wider numbers, names in other case."""
    if shape.kind == "int" and rng.random() < 0.3:
        return scalar(rng.choice(["long", "double"]))
    fields = [
        replace(
            field,
            shape=respelled(rng, field.shape, case=case),
            name=field.name.upper()
            if case and shape.kind == "struct" and rng.random() < 0.2
            else field.name,
        )
        for field in shape.fields
    ]
    if shape.kind == "struct":
        rng.shuffle(fields)
    return replace(shape, fields=tuple(fields))


def spoiled(table: Shape, source: Shape, value: Any) -> tuple[Any, bool]:
    """Return a value with one number that the table's type does not hold, if it has a place for it."""
    if value is None:
        return value, False
    if table.kind == "int" and source.kind in {"long", "double"}:
        return (1 << 40 if source.kind == "long" else 1.5), True
    if table.kind == "struct":
        by_name = {field.name.lower(): field for field in source.fields}
        for field in table.fields:
            other = by_name.get(field.name.lower())
            if other is not None:
                inside, done = spoiled(field.shape, other.shape, value[field.name])
                if done:
                    return {**value, field.name: inside}, True
    if table.kind == "array" and value:
        inside, done = spoiled(table.fields[0].shape, source.fields[0].shape, value[0])
        return ([inside, *value[1:]], True) if done else (value, False)
    if table.kind == "map" and value:
        inside, done = spoiled(table.fields[1].shape, source.fields[1].shape, value[0][1])
        return ([(value[0][0], inside), *value[1:]], True) if done else (value, False)
    return value, False
