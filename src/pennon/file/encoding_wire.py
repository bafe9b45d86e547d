"""The message that describes a page, as the text that pylance shows, which is that of Rust's ``{:#?}``.

Programs look for words such as ``InlineBitpacking`` or ``MiniBlockLayout`` in it::

    PageLayout {
        layout: Some(
            MiniBlockLayout(
                MiniBlockLayout {
                    rep_compression: None,
                    ...

Fields of a message come in the order in which they are declared, choices (``oneof``) behind them.

Source: measured (pylance 14.0.2).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.message import Message

from pennon.errors import UnsupportedError
from pennon.file.container.wire import parse_message
from pennon.proto.encodings_v2_0_pb2 import ArrayEncoding
from pennon.proto.encodings_v2_1_pb2 import PageLayout

_INDENT: Final = "    "
_ESCAPES: Final = {0: "\\0", 9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 92: "\\\\"}


_MESSAGES: Final[Mapping[str, type[Message]]] = {
    "/lance.encodings.ArrayEncoding": ArrayEncoding,
    "/lance.encodings21.PageLayout": PageLayout,
}


def encoding_text(data: bytes) -> str:
    """Return the message in an ``Any`` as text of several lines.

    Raises UnsupportedError for messages of another kind, FormatError if it is no such message.
    """
    wrapped = AnyMessage()
    parse_message(wrapped, data)
    kind = _MESSAGES.get(wrapped.type_url)
    if kind is None:
        text = f"type_url={wrapped.type_url}"
        raise UnsupportedError(text)
    message = kind()
    parse_message(message, wrapped.value)
    return _text(message)


def _text(message: Message) -> str:
    fields = list(_fields(message))
    name = message.DESCRIPTOR.name
    return _block(f"{name} {{", fields, "}") if fields else name


def _block(head: str, parts: list[str], tail: str) -> str:
    lines = [_INDENT + line for part in parts for line in f"{part},".splitlines()]
    return "\n".join([head, *lines, tail])


def _some(value: str) -> str:
    return _block("Some(", [value], ")")


def _fields(message: Message) -> Iterator[str]:
    descriptor: Any = message.DESCRIPTOR  # of one of two classes, compiled or not
    for field in descriptor.fields:
        if field.containing_oneof is None or _is_optional(field):
            yield f"{field.name}: {_field(message, field)}"
    for choice in descriptor.oneofs:
        if not _is_optional(choice.fields[0]):
            yield f"{choice.name}: {_choice(message, choice)}"


def _is_optional(field: FieldDescriptor) -> bool:
    """Tell whether a field is ``optional``, which protobuf makes a choice of one."""
    choice = field.containing_oneof
    return choice is not None and choice.name == f"_{field.name}"


def _field(message: Message, field: FieldDescriptor) -> str:
    value = getattr(message, field.name)
    if field.is_repeated:
        parts = [_value(field, each) for each in value]
        return _block("[", parts, "]") if parts else "[]"
    if field.message_type is None and not _is_optional(field):
        return _value(field, value)
    return _some(_value(field, value)) if message.HasField(field.name) else "None"


def _choice(message: Message, choice: OneofDescriptor) -> str:
    arm = message.WhichOneof(choice.name)
    if arm is None:
        return "None"
    (field,) = (each for each in choice.fields if each.name == arm)
    value = _value(field, getattr(message, arm))
    return _some(_block(f"{_camel(arm)}(", [value], ")"))


def _value(field: FieldDescriptor, value: Any) -> str:
    if field.message_type is not None:
        return _text(value)
    if field.enum_type is not None:
        return _enum(field.enum_type, value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f'b"{"".join(map(_byte, value))}"'
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _enum(kind: EnumDescriptor, value: int) -> str:
    known = kind.values_by_number.get(value)
    return str(value) if known is None else _camel(known.name)


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.lower().split("_"))


def _byte(value: int) -> str:
    if value in _ESCAPES:
        return _ESCAPES[value]
    return chr(value) if 32 <= value < 127 else f"\\x{value:02x}"
