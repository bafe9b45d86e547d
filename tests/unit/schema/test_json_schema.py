"""Arrow schemas as JSON values."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.errors import FormatError, UnsupportedError
from pennon.schema import json_to_schema, schema_to_json

FIELDS = [
    pa.field("a", pa.int32(), nullable=False, metadata={"k": "v"}),
    pa.field(
        "s",
        pa.struct(
            [pa.field("x", pa.string(), nullable=False), ("y", pa.struct([("z", pa.int8())]))]
        ),
    ),
    pa.field("l", pa.list_(pa.field("item", pa.float32(), nullable=False))),
    pa.field("ll", pa.large_list(pa.list_(pa.large_string()))),
    pa.field("v", pa.list_(pa.float32(), 3)),
    pa.field("vs", pa.list_(pa.struct([("x", pa.int8())]), 2)),
    pa.field("t", pa.timestamp("us", "Europe/Berlin")),
    pa.field("naive", pa.timestamp("ns")),
    pa.field("d", pa.decimal128(10, 2)),
    pa.field("w", pa.decimal256(60, 3)),
    pa.field("dict", pa.dictionary(pa.int8(), pa.string())),
    pa.field("date", pa.date32()),
    pa.field("b", pa.binary(4)),
    pa.field("lb", pa.large_binary()),
    pa.field("h", pa.float16()),
    pa.field("dur", pa.duration("ms")),
    pa.field("t32", pa.time32("s")),
    pa.field("n", pa.null()),
    pa.field("ok", pa.bool_()),
]


@pytest.mark.parametrize("field", FIELDS, ids=[field.name for field in FIELDS])
def test_json_schema_comes_back_as_it_was(field: pa.Field) -> None:
    schema = pa.schema([field], metadata={"z": "1"})
    text = json.dumps(pennon.schema_to_json(schema))
    back = pennon.json_to_schema(json.loads(text))
    assert back.equals(schema, check_metadata=True)


def test_json_schema_has_the_names_of_the_format() -> None:
    found = schema_to_json(pa.schema([("v", pa.list_(pa.float32(), 3)), ("t", pa.timestamp("us"))]))
    assert found == {
        "fields": [
            {
                "name": "v",
                "type": {
                    "type": "fixed_size_list",
                    "length": 3,
                    "fields": [{"name": "item", "type": {"type": "float"}, "nullable": True}],
                },
                "nullable": True,
            },
            {"name": "t", "type": {"type": "timestamp:us:-"}, "nullable": True},
        ]
    }


def test_json_schema_keeps_the_name_of_an_extension_type() -> None:
    schema = pa.schema([("u", pa.uuid())])
    field = json_to_schema(schema_to_json(schema)).field("u")
    assert field.type == pa.binary(16)
    assert field.metadata[b"ARROW:extension:name"] == b"arrow.uuid"


def test_json_schema_has_no_maps() -> None:
    with pytest.raises(UnsupportedError, match="no maps"):
        schema_to_json(pa.schema([("m", pa.map_(pa.string(), pa.int8()))]))


def nested(depth: int) -> dict[str, Any]:
    """Return the JSON of a schema with structs in structs."""
    field: dict[str, Any] = {"name": "x", "type": {"type": "int8"}}
    for _ in range(depth):
        field = {"name": "x", "type": {"type": "struct", "fields": [field]}}
    return {"fields": [field]}


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        [],
        None,
        {"fields": "ab"},
        {"fields": {"a": 1}},
        {"fields": [1]},
        {"fields": [{"name": 1, "type": {"type": "int8"}}]},
        {"fields": [{"name": "a"}]},
        {"fields": [{"name": "a", "type": "int8"}]},
        {"fields": [{"name": "a", "type": {"type": "int9"}}]},
        {"fields": [{"name": "a", "type": {"type": "list"}}]},
        {"fields": [{"name": "a", "type": {"type": "list", "fields": []}}]},
        {"fields": [{"name": "a", "type": {"type": "fixed_size_binary"}}]},
        {"fields": [{"name": "a", "type": {"type": "fixed_size_binary", "length": -1}}]},
        {"fields": [{"name": "a", "type": {"type": "fixed_size_binary", "length": True}}]},
        {"fields": [], "metadata": [1]},
        nested(200),
    ],
)
def test_json_schema_that_describes_none_is_a_format_error(damaged: Any) -> None:
    with pytest.raises(FormatError):
        json_to_schema(damaged)
