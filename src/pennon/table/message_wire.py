"""Protobuf messages of any kind: their bytes, their fields, and what of one Pennon does not know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

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


@dataclass(frozen=True, slots=True)
class Converter:
    """A pair of functions that read the value of a field from its message, and put it there."""

    read: Callable[[Any, str], Any]
    put: Callable[[Any, str, Any], None]


def one(parse: Callable[[Any], Any], serialize: Callable[[Any], Any]) -> Converter:
    """Return how a field that is a message is read and put."""
    return Converter(
        lambda message, field: parse(getattr(message, field)),
        lambda message, field, value: getattr(message, field).CopyFrom(serialize(value)),
    )


def optional(way: Converter) -> Converter:
    """Return the same for a field that may be absent: None."""

    def put(message: Any, field: str, value: Any) -> None:
        if value is not None:
            way.put(message, field, value)

    return Converter(
        lambda message, field: way.read(message, field) if message.HasField(field) else None, put
    )


def many(parse: Callable[[Any], Any], serialize: Callable[[Any], Any]) -> Converter:
    """Return how a repeated field is read and put."""
    return Converter(
        lambda message, field: tuple(map(parse, getattr(message, field))),
        lambda message, field, values: getattr(message, field).extend(map(serialize, values)),
    )


PLAIN = Converter(getattr, setattr)
"""A field of one number, text, bytes or truth value."""
