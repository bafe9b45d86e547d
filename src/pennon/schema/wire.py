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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from google.protobuf.message import DecodeError

from pennon.core.units import FieldId
from pennon.errors import Breadcrumb, FormatError, LanceError
from pennon.proto import file_pb2
from pennon.schema.arrow import storage_field
from pennon.schema.field import Field, Schema
from pennon.schema.types import EXTENSION_NAME, MAX_NESTING, is_plain_type

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


def parse_field_messages(messages: Iterable[bytes], metadata: Mapping[str, bytes]) -> Schema:
    """Return the schema of serialized fields; raises as `parse_fields` does, and FormatError for other bytes."""
    try:
        fields = [file_pb2.Field.FromString(message) for message in messages]
    except DecodeError as error:
        text = "these bytes are no field of a schema"
        raise FormatError(text) from error
    return parse_fields(fields, metadata)


def parse_fields(fields: Iterable[file_pb2.Field], metadata: Mapping[str, bytes]) -> Schema:
    """Return the schema that a flat list of fields describes.

    A parent stands before its children.  Where a damaged table repeats an id, the nearest field
    before the child is its parent.  Raises FormatError for a child without a parent (which a cycle
    is, too), for too many or too deep fields, and for a type that does not parse.
    """
    messages = list(islice(fields, MAX_FIELDS + 1))
    if len(messages) > MAX_FIELDS:
        text = f"a schema has more than {MAX_FIELDS} fields"
        raise FormatError(text)
    is_flat = {message.parent_id for message in messages} <= {TOP_LEVEL}
    tops = [_field(message, None) for message in messages] if is_flat else _tree(messages)
    for top in tops:
        _check_type(top)
    return Schema(tuple(tops), dict(metadata) if metadata else {})


def _tree(messages: Sequence[file_pb2.Field]) -> list[Field]:
    """Return the fields on top, with those below them."""
    parents = _parents(messages)
    below: dict[int, list[Field]] = {}
    for number in range(len(messages) - 1, -1, -1):  # children are complete before their parent
        made = _field(messages[number], below.pop(number, None))
        below.setdefault(parents[number], []).append(made)
    tops = below.get(TOP_LEVEL, [])
    tops.reverse()
    return tops


def _parents(messages: Sequence[file_pb2.Field]) -> list[int]:
    """Return the number of each message's parent, `TOP_LEVEL` for those on top."""
    seen: dict[int, int] = {}
    parents: list[int] = []
    depths: list[int] = []
    for number, message in enumerate(messages):
        parent, depth = TOP_LEVEL, 1
        if message.parent_id != TOP_LEVEL:
            parent = seen.get(message.parent_id, TOP_LEVEL)
            if parent == TOP_LEVEL:
                text = f"field {message.id} names a parent {message.parent_id} that no earlier field has"
                raise FormatError(text, where=Breadcrumb(column=message.name))
            depth = depths[parent] + 1
            if depth > MAX_NESTING:
                text = f"field {message.id} is nested deeper than {MAX_NESTING} levels"
                raise FormatError(text, where=Breadcrumb(column=message.name))
        parents.append(parent)
        depths.append(depth)
        seen[message.id] = number
    return parents


def _field(message: file_pb2.Field, children: list[Field] | None) -> Field:
    """Return the field of a message; ``children`` come last first."""
    metadata = dict(message.metadata) if message.metadata else {}
    if message.extension_name:
        metadata.setdefault(EXTENSION_NAME, message.extension_name.encode())
    return Field(
        message.name,
        FieldId(message.id),
        message.logical_type,
        message.nullable,
        metadata,
        tuple(reversed(children)) if children else (),
    )


def _check_type(top: Field) -> None:
    """Raise FormatError, with the field's name, if the logical types of a column do not parse."""
    if not top.children and is_plain_type(top.logical_type):
        return  # nearly all are: their Arrow fields are made when they are asked for
    try:
        storage_field(top)
    except LanceError as error:
        raise error.located(Breadcrumb(column=top.name)) from None
    except (ValueError, OverflowError, UnicodeError) as error:  # pyarrow's ArrowInvalid among them
        text = f"field {top.id} has no Arrow type: {error}"
        raise FormatError(text, where=Breadcrumb(column=top.name)) from error


def serialize_fields(schema: Schema) -> list[file_pb2.Field]:
    """Return the flat list of a schema's fields, depth first, as pylance writes it."""
    return [message for top in schema.fields for message in _messages(top, TOP_LEVEL)]


def serialize_metadata(schema: Schema) -> dict[str, bytes]:
    """Return the metadata map that stands beside the list of fields."""
    return dict(schema.metadata)


def serialize_schema(schema: Schema) -> file_pb2.Schema:
    """Return the schema message of a data file's descriptor."""
    return file_pb2.Schema(fields=serialize_fields(schema), metadata=serialize_metadata(schema))


def _messages(f: Field, parent_id: int) -> Iterator[file_pb2.Field]:
    """Yield the message of a field, then those of the fields below it."""
    logical = f.logical_type
    message = file_pb2.Field(
        name=f.name,
        id=f.id,
        parent_id=parent_id,
        logical_type=logical,
        nullable=f.nullable,
        encoding=_encoding(logical),
        dictionary=_dictionary(logical),
    )
    if f.metadata:  # few fields have any, and tables have thousands of fields
        message.metadata.update(f.metadata)
        message.extension_name = f.metadata.get(EXTENSION_NAME, b"").decode(errors="replace")
        message.unenforced_primary_key = is_primary_key(f)
    yield message
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
