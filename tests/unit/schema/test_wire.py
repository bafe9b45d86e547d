"""The flat list of fields in protobuf."""

from __future__ import annotations

import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from pennon.errors import FormatError
from pennon.proto import file_pb2
from pennon.schema import parse_fields, schema_from_arrow, schema_to_arrow, serialize_fields
from pennon.schema.wire import MAX_FIELDS, serialize_schema
from tests.unit.schema.strategies import schemas


def _field(field_id: int, parent: int, logical: str, name: str = "f") -> file_pb2.Field:
    return file_pb2.Field(id=field_id, parent_id=parent, logical_type=logical, name=name)


@settings(max_examples=60, deadline=None)
@given(schemas, st.integers(0, 1000))
def test_serialize_then_parse_is_the_same(arrow: pa.Schema, first_id: int) -> None:
    schema = schema_from_arrow(arrow, first_id)
    message = file_pb2.Schema.FromString(serialize_schema(schema).SerializeToString())
    assert parse_fields(message.fields, message.metadata) == schema


@settings(max_examples=60, deadline=None)
@given(schemas, st.data())
def test_damaged_messages_parse_or_are_format_errors(arrow: pa.Schema, data: st.DataObject) -> None:
    raw = bytearray(serialize_schema(schema_from_arrow(arrow)).SerializeToString() or b"\0")
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        message = file_pb2.Schema.FromString(bytes(raw))
        schema_to_arrow(parse_fields(message.fields, message.metadata))
    except (DecodeError, FormatError):
        return


def test_schema_wire_equals_pylance() -> None:
    arrow = pa.schema(
        [
            pa.field("key", pa.int64(), nullable=False, metadata={_KEY: "TRUE"}),
            pa.field("tags", pa.list_(pa.field("element", pa.struct([("s", pa.string())])))),
            pa.field("d", pa.dictionary(pa.int8(), pa.string())),
            pa.field("u", pa.uuid()),
        ]
    )
    written = serialize_fields(schema_from_arrow(arrow))
    plain, text, words = file_pb2.PLAIN, file_pb2.VAR_BINARY, file_pb2.DICTIONARY
    assert [
        (m.name, m.id, m.parent_id, m.logical_type, m.nullable, m.encoding, m.extension_name)
        for m in written
    ] == [
        ("key", 0, -1, "int64", False, plain, ""),
        ("tags", 1, -1, "list.struct", True, plain, ""),
        ("element", 2, 1, "struct", True, file_pb2.NONE, ""),
        ("s", 3, 2, "string", True, text, ""),
        ("d", 4, -1, "dict:string:int8:false", True, words, ""),
        ("u", 5, -1, "fixed_size_binary:16", True, plain, "arrow.uuid"),
    ]
    assert all(m.type == file_pb2.Field.PARENT for m in written)
    assert [m.unenforced_primary_key for m in written] == [True] + [False] * 5
    assert [m.name for m in written if m.HasField("dictionary")] == ["d"]


_KEY = "lance-schema:unenforced-primary-key"


def test_ids_need_not_start_at_zero_nor_be_dense() -> None:
    fields = [_field(5, -1, "struct", "s"), _field(9, 5, "int8", "x"), _field(2, -1, "int8", "y")]
    schema = parse_fields(fields, {})
    assert [f.id for f in schema.walk()] == [5, 9, 2]
    assert schema_to_arrow(schema).types == [
        pa.struct([pa.field("x", pa.int8(), nullable=False)]),
        pa.int8(),
    ]


def test_a_child_of_a_repeated_id_hangs_under_the_nearest_field() -> None:
    fields = [
        _field(1, -1, "struct", "a"),
        _field(2, 1, "int8", "x"),
        _field(1, -1, "struct", "b"),
        _field(3, 1, "int8", "y"),
    ]
    schema = parse_fields(fields, {})
    assert [[c.name for c in top.children] for top in schema.fields] == [["x"], ["y"]]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([_field(1, 0, "int8")], "names a parent 0"),
        ([_field(1, 1, "struct")], "names a parent 1"),
        ([_field(1, 2, "struct"), _field(2, 1, "struct")], "names a parent 2"),
        ([_field(2, -2, "int8")], "names a parent -2"),
        ([_field(1, -1, "list")], "0 children"),
        ([_field(1, -1, "wrong")], "unknown logical type 'wrong'"),
        ([_field(1, -1, "list.struct"), _field(2, 1, "nope")], "unknown logical type 'nope'"),
        ([_field(0, -1, "struct")] + [_field(i, i - 1, "struct") for i in range(1, 99)], "deeper"),
    ],
)
def test_field_list_without_tree_is_refused(fields: list[file_pb2.Field], message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        parse_fields(fields, {})
    assert caught.value.where.column == "f"


def test_null_type_field_is_always_nullable() -> None:
    assert schema_to_arrow(parse_fields([_field(0, -1, "null")], {})).field(0).nullable


def test_too_many_fields_are_a_format_error() -> None:
    field = _field(0, -1, "null")
    with pytest.raises(FormatError, match="more than"):
        parse_fields((field for _ in range(MAX_FIELDS + 1)), {})


def test_an_extension_name_of_an_early_writer_joins_the_metadata() -> None:
    early = file_pb2.Field(
        name="a", parent_id=-1, logical_type="int8", extension_name="arrow.bool8"
    )
    assert schema_to_arrow(parse_fields([early], {})).field("a").type == pa.bool8()
