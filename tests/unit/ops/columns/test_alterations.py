"""The schema after alterations."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pennon.core.units import FieldId
from pennon.errors import ArgumentError, InvalidSchemaError, NotFoundError, UnsupportedError
from pennon.ops.columns.alter import without_columns
from pennon.ops.columns.alterations import Alteration, alter_schema, with_ascending_ids
from pennon.schema.arrow import schema_from_arrow, schema_to_arrow
from pennon.schema.field import Schema

ARROW = pa.schema(
    [
        pa.field("a", pa.int64(), metadata={"note": "kept", "lance-encoding:compression": "zstd"}),
        ("s", pa.struct([("x", pa.int32()), ("t", pa.struct([("y", pa.string())]))])),
        ("l", pa.list_(pa.int32())),
    ],
    metadata={"m": "1"},
)
SCHEMA = schema_from_arrow(ARROW)
LAST = FieldId(20)


def _ids(schema: Schema) -> list[tuple[str, int]]:
    return [(field.name, field.id) for field in schema.walk()]


def test_alter_schema_keeps_ids_except_of_cast_columns() -> None:
    altered = alter_schema(
        SCHEMA,
        [
            Alteration("l", data_type=pa.large_list(pa.int32()), name="L"),
            Alteration("s.t.y", data_type=pa.large_string()),
            Alteration("s", name="S"),
        ],
        LAST,
    )
    assert _ids(altered.schema) == [
        *[("a", 0), ("S", 1), ("x", 2), ("t", 3), ("y", 23)],
        *[("L", 21), ("item", 22)],
    ]
    assert [(old.name, new.name) for old, new in altered.cast] == [("s", "S"), ("l", "L")]
    assert altered.schema.metadata == SCHEMA.metadata


def test_alter_schema_of_names_and_nullability_casts_no_column() -> None:
    altered = alter_schema(
        SCHEMA, [Alteration("a", name="A", nullable=False), Alteration("s.x", nullable=True)], LAST
    )
    assert altered.cast == ()
    assert altered.tightened == ("a",)
    assert not altered.schema.field(0).nullable
    assert _ids(altered.schema)[0] == ("A", 0)


def test_alter_schema_to_the_same_type_casts_no_column() -> None:
    altered = alter_schema(SCHEMA, [Alteration("a", data_type=pa.int64())], LAST)
    assert altered.schema == SCHEMA
    assert altered.cast == ()


def test_alter_schema_keeps_metadata_except_of_the_type() -> None:
    altered = alter_schema(SCHEMA, [Alteration("a", data_type=pa.int8())], LAST)
    assert schema_to_arrow(altered.schema).field("a").metadata == {b"note": b"kept"}


def test_columns_in_the_order_of_their_ids() -> None:
    both = [
        Alteration("l", data_type=pa.large_list(pa.int8())),
        Alteration("a", data_type=pa.int8()),
    ]
    altered = with_ascending_ids(SCHEMA, alter_schema(SCHEMA, both, LAST), LAST)
    assert [(new.name, new.id) for _, new in altered.cast] == [("l", 21), ("a", 23)]


def test_ascending_ids_are_fresh_ids() -> None:
    altered = alter_schema(SCHEMA, [Alteration("s.x", data_type=pa.int64())], LAST)
    fresh = with_ascending_ids(SCHEMA, altered, LAST)
    assert _ids(fresh.schema)[1:5] == [("s", 21), ("x", 22), ("t", 23), ("y", 24)]
    assert [new.id for _, new in fresh.cast] == [21]


@pytest.mark.parametrize(
    ("alteration", "error"),
    [
        (Alteration("z", name="y"), NotFoundError),
        (Alteration("s.z", name="y"), NotFoundError),
        (Alteration("a", name="s"), InvalidSchemaError),
        (Alteration("a", name="_rowid"), InvalidSchemaError),
        (Alteration("a", name="b.c"), InvalidSchemaError),
        (Alteration("s.x", name="t"), InvalidSchemaError),
        (Alteration("a", data_type=pa.string()), ArgumentError),
        (Alteration("s", data_type=pa.int8()), ArgumentError),
    ],
)
def test_invalid_alterations_are_refused(alteration: Alteration, error: type[Exception]) -> None:
    with pytest.raises(error):
        alter_schema(SCHEMA, [alteration], LAST)


def test_alter_schema_swaps_names() -> None:
    altered = alter_schema(SCHEMA, [Alteration("a", name="l"), Alteration("l", name="a")], LAST)
    assert altered.schema.names == ["l", "s", "a"]


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        (["a"], ["s", "x", "t", "y", "l", "item"]),
        (["s.t.y"], ["a", "s", "x", "l", "item"]),
        (["s.t.y", "s.x"], ["a", "l", "item"]),
        (["s", "s.x", "a"], ["l", "item"]),
        (["l.item"], ["a", "s", "x", "t", "y"]),
        ([], ["a", "s", "x", "t", "y", "l", "item"]),
    ],
)
def test_drop_columns_removes_nested_fields(paths: list[str], left: list[str]) -> None:
    schema = without_columns(SCHEMA, paths)
    assert [field.name for field in schema.walk()] == left
    assert schema.metadata == SCHEMA.metadata


ENTRY = pa.struct([("u", pa.int8()), ("v", pa.int8())])
OF_PARTS = schema_from_arrow(
    pa.schema(
        [
            ("m", pa.map_(pa.string(), ENTRY)),
            ("s", pa.struct([("m", pa.map_(pa.int32(), pa.int64()))])),
            pa.field(
                "p", pa.struct([("x", pa.int8()), ("y", pa.int8())]), metadata={"packed": "true"}
            ),
        ]
    )
)


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        (["m.entries.value.u"], "m entries key value v s m entries key value p x y"),
        (["s.m.entries"], "m entries key value u v p x y"),
        (["p.x", "p.y", "s"], "m entries key value u v"),
    ],
)
def test_drop_columns_of_fields_within_map_values_and_structs(paths: list[str], left: str) -> None:
    assert [field.name for field in without_columns(OF_PARTS, paths).walk()] == left.split()


def test_alteration_that_breaks_a_map_or_packed_struct_is_refused() -> None:
    for path in ("m.entries.key", "m.entries.value", "s.m.entries.value"):
        with pytest.raises(InvalidSchemaError, match=r"map 'm' needs a key .* and a value"):
            without_columns(OF_PARTS, [path])
    with pytest.raises(InvalidSchemaError, match="map 'm' needs"):
        without_columns(OF_PARTS, ["m.entries.value.u", "m.entries.value.v"])
    for path in ("m.entries.key", "s.m.entries"):
        with pytest.raises(InvalidSchemaError, match="map 'm' needs a key that is never NULL"):
            alter_schema(OF_PARTS, [Alteration(path, nullable=True)], LAST)
    with pytest.raises(UnsupportedError, match=r"'p' is a packed struct, .* drop all of it"):
        without_columns(OF_PARTS, ["p.x"])


def test_drop_columns_of_all_columns_is_refused() -> None:
    with pytest.raises(InvalidSchemaError):
        without_columns(SCHEMA, ["a", "l", "s.x", "s.t"])
    with pytest.raises(NotFoundError, match=r"s\.t\.y"):
        without_columns(SCHEMA, ["nope"])
