"""Bytes of the answers of tasks that run on other machines: protobuf messages, which the driver checks.

A task that may run elsewhere gives ``run``, ``to_bytes`` and ``from_bytes``.  Answers that are just fragments go as
`pennon.table.fragment_wire` has them, changed rows as `pennon.ops.rows.changed_wire`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pennon.errors import FormatError
from pennon.proto import task_answers_pb2
from pennon.table.fragment import Fragment
from pennon.table.fragment_wire import parse_fragment, serialize_fragment
from pennon.table.indices import Index
from pennon.table.indices_wire import parse_index, serialize_index
from pennon.table.message_wire import parse_message, serialize_message

_NUMBER_BYTES: Final = 8


def serialize_numbered_fragments(
    number: int | None, fragments: Iterable[Fragment], text: str = ""
) -> bytes:
    """Return the message that `parse_numbered_fragments` takes."""
    message = task_answers_pb2.NumberedFragments(
        number=number, fragments=map(serialize_fragment, fragments), text=text
    )
    return serialize_message(message)


def parse_numbered_fragments(data: bytes) -> tuple[int | None, tuple[Fragment, ...], str]:
    """Return a number, which may be None, fragments and a text; raises FormatError."""
    message = parse_message(task_answers_pb2.NumberedFragments, data)
    number = message.number if message.HasField("number") else None
    return number, tuple(map(parse_fragment, message.fragments)), message.text


def serialize_numbered_index(answer: tuple[int, Index] | None) -> bytes:
    """Return the message that `parse_numbered_index` takes."""
    if answer is None:
        return b""
    number, index = answer
    message = task_answers_pb2.NumberedIndex(number=number, index=serialize_index(index))
    return serialize_message(message)


def parse_numbered_index(data: bytes) -> tuple[int, Index] | None:
    """Return a number and the entry of an index, None if there is none; raises FormatError."""
    message = parse_message(task_answers_pb2.NumberedIndex, data)
    return (message.number, parse_index(message.index)) if message.HasField("index") else None


def serialize_number(number: int) -> bytes:
    """Return the message that `parse_number` takes."""
    return number.to_bytes(_NUMBER_BYTES, "little")


def parse_number(data: bytes) -> int:
    """Return a whole number, which is not negative; raises FormatError."""
    if len(data) != _NUMBER_BYTES:
        message = f"a number of {len(data)} bytes came from a task; it has {_NUMBER_BYTES}"
        raise FormatError(message)
    return int.from_bytes(data, "little")
