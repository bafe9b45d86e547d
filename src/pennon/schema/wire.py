"""A schema's fields in protobuf: one flat list, each field with the id of its parent.

    id  parent  name   logical type
     0    -1    point  struct
     1     0    x      double           a field's children follow it, depth first
     2     0    y      double
     3    -1    tags   list
     4     3    item   string

``Field.type`` (parent, repeated, leaf) is 0 in everything that is written, so the tree comes from
``parent_id`` alone.  Ids need not be dense, nor start at 0: they outlive dropped columns.

Source: file.proto, ``Field``; format-facts 0, row 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pennon.errors import Breadcrumb, FormatError, LanceError
from pennon.proto import file_pb2
from pennon.schema.arrow import storage_field
from pennon.schema.field import Field, Schema
from pennon.schema.types import EXTENSION_NAME, MAX_NESTING
from pennon.units import FieldId

MAX_FIELDS = 1_000_000
TOP_LEVEL = -1
PRIMARY_KEY = "lance-schema:unenforced-primary-key"

_CHILDLESS_ENCODINGS = {
    "string": file_pb2.VAR_BINARY,
    "large_string": file_pb2.VAR_BINARY,
    "binary": file_pb2.VAR_BINARY,
    "large_binary": file_pb2.VAR_BINARY,
    "json": file_pb2.VAR_BINARY,
    "null": file_pb2.NONE,
    "struct": file_pb2.NONE,
}


@dataclass(slots=True)
class _Node:
    """A field while the tree grows: its protobuf message and its children so far."""

    message: file_pb2.Field
    depth: int
    children: list[_Node] = field(default_factory=list)


def parse_fields(fields: Iterable[file_pb2.Field], metadata: Mapping[str, bytes]) -> Schema:
    """Return the schema that a flat list of fields describes.

    A parent stands before its children.  Where a damaged table repeats an id, the nearest field
    before the child is its parent.  Raises FormatError for a child without a parent (which a cycle
    is, too), for too many or too deep fields, and for a type that does not parse.
    """
    tops: list[_Node] = []
    seen: dict[int, _Node] = {}
    for number, message in enumerate(fields):
        if number >= MAX_FIELDS:
            text = f"a schema has more than {MAX_FIELDS} fields"
            raise FormatError(text)
        seen[message.id] = _place(message, tops, seen)
    schema = Schema(tuple(map(_field, tops)), dict(metadata) if metadata else {})
    for top in schema.fields:
        _check_type(top)
    return schema


def _place(message: file_pb2.Field, tops: list[_Node], seen: Mapping[int, _Node]) -> _Node:
    """Hang a field under its parent, or on top, and return its node."""
    if message.parent_id == TOP_LEVEL:
        node = _Node(message, 1)
        tops.append(node)
        return node
    parent = seen.get(message.parent_id)
    where = Breadcrumb(column=message.name)
    if parent is None:
        text = f"field {message.id} names a parent {message.parent_id} that no earlier field has"
        raise FormatError(text, where=where)
    if parent.depth >= MAX_NESTING:
        text = f"field {message.id} is nested deeper than {MAX_NESTING} levels"
        raise FormatError(text, where=where)
    node = _Node(message, parent.depth + 1)
    parent.children.append(node)
    return node


def _field(node: _Node) -> Field:
    """Return the field of a node whose subtree is complete."""
    message = node.message
    metadata = dict(message.metadata) if message.metadata else {}
    if message.extension_name:
        metadata.setdefault(EXTENSION_NAME, message.extension_name.encode())
    return Field(
        message.name,
        FieldId(message.id),
        message.logical_type,
        message.nullable,
        metadata,
        tuple(map(_field, node.children)),
    )


def _check_type(top: Field) -> None:
    """Raise FormatError, with the field's name, if the logical types of a column do not parse."""
    try:
        storage_field(top)
    except LanceError as error:
        raise error.located(Breadcrumb(column=top.name)) from None
    except (ValueError, OverflowError, UnicodeError) as error:  # pyarrow's ArrowInvalid among them
        text = f"field {top.id} has no Arrow type: {error}"
        raise FormatError(text, where=Breadcrumb(column=top.name)) from error


def serialize_fields(schema: Schema) -> list[file_pb2.Field]:
    """Return the flat list of a schema's fields, depth first, as the oracle writes it."""
    return [message for top in schema.fields for message in _messages(top, TOP_LEVEL)]


def serialize_metadata(schema: Schema) -> dict[str, bytes]:
    """Return the metadata map that stands beside the list of fields."""
    return dict(schema.metadata)


def serialize_schema(schema: Schema) -> file_pb2.Schema:
    """Return the schema message of a data file's descriptor."""
    return file_pb2.Schema(fields=serialize_fields(schema), metadata=serialize_metadata(schema))


def _messages(f: Field, parent_id: int) -> Iterator[file_pb2.Field]:
    """Yield the message of a field, then those of the fields below it."""
    yield file_pb2.Field(
        name=f.name,
        id=f.id,
        parent_id=parent_id,
        logical_type=f.logical_type,
        nullable=f.nullable,
        metadata=dict(f.metadata),
        encoding=_encoding(f.logical_type),
        extension_name=f.metadata.get(EXTENSION_NAME, b"").decode(errors="replace"),
        unenforced_primary_key=is_primary_key(f),
        dictionary=_dictionary(f.logical_type),
    )
    for child in f.children:
        yield from _messages(child, f.id)


def _encoding(logical: str) -> file_pb2.Encoding.ValueType:
    """Return the encoding that file 0.1 would use; later versions carry it along, unread."""
    if logical.startswith("dict:"):
        return file_pb2.DICTIONARY
    return _CHILDLESS_ENCODINGS.get(logical, file_pb2.PLAIN)


def _dictionary(logical: str) -> file_pb2.Dictionary | None:
    """Return where file 0.1 would have the dictionary: nowhere, but old readers want it said."""
    return file_pb2.Dictionary() if logical.startswith("dict:") else None


def is_primary_key(f: Field) -> bool:
    """Say whether the field's metadata marks it as part of an unenforced primary key."""
    return f.metadata.get(PRIMARY_KEY, b"").lower() in (b"true", b"1", b"yes")
