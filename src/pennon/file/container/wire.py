"""The file descriptor (global buffer 0: schema and number of rows), and messages within ``Any``.

Source: seed 001; that the bytes of an encoding are an ``Any`` is pylance's (and early writers') bytes.
"""

from __future__ import annotations

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message

from pennon.errors import FormatError
from pennon.file.container.footer import MAX_ROWS
from pennon.proto import file_pb2
from pennon.schema.field import Schema
from pennon.schema.wire import serialize_schema


def parse_file_descriptor(data: bytes) -> file_pb2.FileDescriptor:
    """Return the ``FileDescriptor``, its number of rows checked; its schema is still a message.

    Raises FormatError if the bytes are no such message.
    """
    message = file_pb2.FileDescriptor()
    parse_message(message, data)
    if message.length > MAX_ROWS:
        text = f"file of {message.length} rows"
        raise FormatError(text)
    return message


def serialize_file_descriptor(schema: Schema, num_rows: int) -> bytes:
    """Return global buffer 0."""
    message = file_pb2.FileDescriptor(schema=serialize_schema(schema), length=num_rows)
    return message.SerializeToString(deterministic=True)


def unwrap_encoding(data: bytes, name: str) -> bytes:
    """Return the message of an encoding inside an ``Any``, which must be of the kind ``name``.

    Raises FormatError if it is not.
    """
    message = AnyMessage()
    parse_message(message, data)
    kind = message.type_url.rpartition("/")[2].rpartition(".")[2]
    if kind != name:
        text = f"expected an encoding of kind {name}, found {message.type_url!r}"
        raise FormatError(text)
    return message.value


def wrap_encoding(name: str, data: bytes) -> bytes:
    """Return an ``Any`` message around that of an encoding; ``name`` is its package and its kind."""
    message = AnyMessage(type_url=f"/lance.{name}", value=data)
    return message.SerializeToString(deterministic=True)


def parse_message(message: Message, data: bytes) -> None:
    """Fill a message.  Raises FormatError if the bytes are none of its kind."""
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        text = f"not a valid {type(message).__name__} message: {error}"
        raise FormatError(text) from error
