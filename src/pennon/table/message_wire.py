"""Protobuf messages of any kind: from bytes, to bytes, and what of one Pennon does not know."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from pennon.errors import ArgumentError, FormatError

M = TypeVar("M", bound=Message)


def parse_message(kind: type[M], data: bytes) -> M:
    """Parse one message; raises FormatError."""
    try:
        return kind.FromString(data)
    except DecodeError as error:
        message = f"these {len(data)} bytes are no {kind.DESCRIPTOR.name} message"
        raise FormatError(message) from error


def serialize_message(message: Message) -> bytes:
    """Serialize a message; the same value gives the same bytes."""
    try:
        return message.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        text = f"a {message.DESCRIPTOR.name} message cannot be written: {error}"
        raise ArgumentError(text) from error


def unknown_fields(message: Message) -> bytes:
    """Return, serialized, the fields of a message that Pennon does not know."""
    if not len(UnknownFieldSet(message)):
        return b""
    rest = type(message)()
    rest.CopyFrom(message)
    for known in message.DESCRIPTOR.fields:
        rest.ClearField(known.name)
    return rest.SerializeToString()
