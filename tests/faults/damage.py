"""Mutants of 2.1 and 2.2 files: bytes changed in a part that has a name, and messages rewritten.

Every mutant is made by its number: the same file, seed and number give the same bytes again.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from pennon.file.container.footer import FOOTER_BYTES
from pennon.proto import encodings_v2_1_pb2 as pb
from pennon.proto import file2_pb2
from tests.faults.structure import Parts, Region, layout_bytes, parts_of, regions_of

MESSAGES: Final = ("layout", "layout", "column", "descriptor", "rows")
"""What is rewritten, each as often as a part of the file is hit; layouts twice."""

ROWS: Final = (0, 1, 2, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 40, 1 << 61)


@dataclass(frozen=True, slots=True)
class Damaged:
    """The bytes of a mutant, which part was hit, and how."""

    part: str
    how: str
    data: bytes


class Damager:
    """Makes the mutants of one file."""

    def __init__(self, name: str, data: bytes, seed: int) -> None:
        self._name = name
        self._data = data
        self._seed = seed
        self._parts = parts_of(data)
        self._by_name: dict[str, list[Region]] = {}
        for region in regions_of(data):
            self._by_name.setdefault(region.name, []).append(region)
        self._targets = [*self._by_name, *MESSAGES]
        random.Random(f"{name}:{seed}").shuffle(self._targets)

    def mutant(self, number: int) -> Damaged:
        """Return mutant ``number``; neighbours hit different parts."""
        rng = random.Random(f"{self._name}:{self._seed}:{number}")
        target = self._targets[number % len(self._targets)]
        if target in self._by_name:
            region = rng.choice(self._by_name[target])
            how, data = hit(self._data, region, rng)
            return Damaged(target, how, data)
        return Damaged(target, "message", _rewrite(self._data, self._parts, target, rng))


# --- bytes ----------------------------------------------------------------------------------------


def hit(data: bytes, region: Region, rng: random.Random) -> tuple[str, bytes]:
    """Return how bytes of a part were changed, and the file with them."""
    how = rng.choice(_WEIGHED)
    part = bytearray(data[region.start : region.end])
    if how == "cut":
        return how, data[: rng.randrange(region.start, region.end)]
    _EDITS[how](part, region.width, rng)
    return how, data[: region.start] + bytes(part) + data[region.end :]


def _flip(part: bytearray, _width: int, rng: random.Random) -> None:
    part[rng.randrange(len(part))] ^= 1 << rng.randrange(8)


def _number(part: bytearray, width: int, rng: random.Random) -> None:
    """Change one number, or two, to what is just beside it or far away."""
    for _ in range(rng.choice((1, 1, 2))):
        size = width if width <= len(part) else 1
        at = rng.randrange(len(part) // size) * size
        old = int.from_bytes(part[at : at + size], "little")
        part[at : at + size] = near(old, 8 * size, rng).to_bytes(size, "little")


def _run(part: bytearray, _width: int, rng: random.Random) -> None:
    at = rng.randrange(len(part))
    size = min(rng.choice((2, 4, 8, 64)), len(part) - at)
    part[at : at + size] = bytes([rng.choice((0, 0xFF, 0x7F, 0x80))]) * size


def _noise(part: bytearray, _width: int, rng: random.Random) -> None:
    for _ in range(rng.randrange(2, 12)):
        part[rng.randrange(len(part))] = rng.randrange(256)


def _swap(part: bytearray, width: int, rng: random.Random) -> None:
    size = min(width * rng.choice((1, 1, 2, 8)), len(part))
    one, other = (rng.randrange(len(part) // size) * size for _ in range(2))
    part[one : one + size], part[other : other + size] = (
        part[other : other + size],
        part[one : one + size],
    )


def _shift(part: bytearray, _width: int, rng: random.Random) -> None:
    """Take a byte out, and let the last one stand twice."""
    at = rng.randrange(len(part))
    part[at:] = part[at + 1 :] + part[-1:]


_EDITS: Final[dict[str, Callable[[bytearray, int, random.Random], None]]] = {
    "flip": _flip,
    "number": _number,
    "run": _run,
    "noise": _noise,
    "swap": _swap,
    "shift": _shift,
}
_WEIGHED: Final = ["cut", "flip", "flip", *["number"] * 4, "run", "noise", "swap", "shift"]


def near(old: int, bits: int, rng: random.Random) -> int:
    """Return another number of ``bits`` bits: beside ``old``, a power of two, the least, the most."""
    most = (1 << bits) - 1
    found = rng.choice(
        (
            old + 1,
            old - 1,
            old + 8,
            old * 2,
            old // 2,
            0,
            1,
            most,
            most >> 1,
            (most >> 1) + 1,
            1 << rng.randrange(bits),
            old ^ (1 << rng.randrange(bits)),
            rng.randrange(most + 1),
        )
    )
    return found & most


# --- messages -------------------------------------------------------------------------------------


def _rewrite(data: bytes, parts: Parts, target: str, rng: random.Random) -> bytes:
    columns = [file2_pb2.ColumnMetadata.FromString(c.SerializeToString()) for c in parts.columns]
    descriptor = type(parts.descriptor).FromString(parts.descriptor.SerializeToString())
    if target == "descriptor":
        change(descriptor, rng)
    elif target == "column":
        change(rng.choice(columns), rng)
    elif target == "rows":
        _other_rows(descriptor, columns, rng)
    else:
        pages = [page for column in columns for page in column.pages]
        _change_layout(rng.choice(pages), lambda layout: change(layout, rng))
    return with_metadata(
        data, parts, descriptor.SerializeToString(), [c.SerializeToString() for c in columns]
    )


def with_metadata(data: bytes, parts: Parts, descriptor: bytes, columns: list[bytes]) -> bytes:
    """Return a file with the same pages, and other metadata behind them."""
    found = bytearray(data[:-FOOTER_BYTES])
    extents = []
    for each in [descriptor, *columns]:
        extents.append((len(found), len(each)))
        found += each
    buffers = [extents[0], *parts.buffer_extents[1:]]
    columns_at = len(found)
    found += b"".join(struct.pack("<QQ", *extent) for extent in extents[1:])
    buffers_at = len(found)
    found += b"".join(struct.pack("<QQ", *extent) for extent in buffers)
    first = extents[1][0] if columns else columns_at
    found += struct.pack(
        "<QQQIIHH4s",
        first,
        columns_at,
        buffers_at,
        len(buffers),
        len(columns),
        *parts.version,
        b"LANC",
    )
    return bytes(found)


def _other_rows(
    descriptor: Any, columns: list[file2_pb2.ColumnMetadata], rng: random.Random
) -> None:
    """Let the file and each column's last page agree on another number of rows, and some layouts."""
    rows = rng.choice((*ROWS, descriptor.length - 1, descriptor.length + 1, descriptor.length * 2))
    deep = rng.random() < 0.7
    for column in columns:
        before = sum(page.length for page in column.pages) - column.pages[-1].length
        last = column.pages[-1]
        last.length = max(rows - before, 0)
        if deep:
            _change_layout(last, partial(_claim_items, last.length))
    descriptor.length = rows


def _claim_items(items: int, layout: pb.PageLayout) -> None:
    if layout.HasField("mini_block_layout"):
        layout.mini_block_layout.num_items = items
    if layout.HasField("full_zip_layout"):
        layout.full_zip_layout.num_items = items & 0xFFFFFFFF
        layout.full_zip_layout.num_visible_items = items & 0xFFFFFFFF
    if layout.HasField("constant_layout"):
        layout.constant_layout.num_def_values = items
        layout.constant_layout.num_rep_values = items


def _change_layout(
    page: file2_pb2.ColumnMetadata.Page, edit: Callable[[pb.PageLayout], None]
) -> None:
    layout = pb.PageLayout.FromString(layout_bytes(page))
    edit(layout)
    wrapped = AnyMessage.FromString(page.encoding.direct.encoding)
    wrapped.value = layout.SerializeToString()
    page.encoding.direct.encoding = wrapped.SerializeToString()


def change(message: Message, rng: random.Random) -> None:
    """Change one or two things in a message, however deep they are."""
    for _ in range(rng.choice((1, 1, 1, 2))):
        places = list(_places(message))
        if places:
            _change_place(*rng.choice(places), rng)


def _places(message: Message) -> Iterator[tuple[Message, FieldDescriptor]]:
    """Yield each field that is set, of the message and of those inside."""
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        yield message, field
        if field.message_type is not None:
            for each in value if field.is_repeated else [value]:
                yield from _places(each)


def _change_place(message: Message, field: FieldDescriptor, rng: random.Random) -> None:
    if field.is_repeated:
        _change_list(message, field, rng)
    elif field.message_type is None:
        setattr(message, field.name, _other(field, getattr(message, field.name), rng))
    elif isinstance(getattr(message, field.name), pb.CompressiveEncoding) and rng.random() < 0.7:
        getattr(message, field.name).CopyFrom(_any_encoding(rng))
    else:
        message.ClearField(field.name)


def _change_list(message: Message, field: FieldDescriptor, rng: random.Random) -> None:
    values = getattr(message, field.name)
    at = rng.randrange(len(values))
    how = rng.choice(("drop", "twice", "many", "change", "change"))
    if how == "drop":
        del values[at]
    elif how in ("twice", "many"):
        values.extend([values[at]] * (1 if how == "twice" else rng.choice((8, 300))))
    elif field.message_type is None:
        values[at] = _other(field, values[at], rng)
    else:
        values[at].Clear()


_BITS: Final = {
    FieldDescriptor.CPPTYPE_INT32: 31,
    FieldDescriptor.CPPTYPE_INT64: 63,
    FieldDescriptor.CPPTYPE_UINT32: 32,
    FieldDescriptor.CPPTYPE_UINT64: 64,
}


def _other(field: FieldDescriptor, old: Any, rng: random.Random) -> Any:
    """Return another value of a field that is no message."""
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return not old
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return rng.choice((*range(8), 99))
    if isinstance(old, bytes):
        part = bytearray(old or b"\0")
        rng.choice(list(_EDITS.values()))(part, rng.choice((1, 2, 8)), rng)
        return bytes(part[: rng.choice((len(part), len(part), rng.randrange(len(part) + 1)))])
    if isinstance(old, str):
        return old[: rng.randrange(len(old) + 1)] + rng.choice(("", "x", ":7", "\0"))
    bits = _BITS.get(field.cpp_type)
    return old if bits is None else near(old, bits, rng)


def _any_encoding(rng: random.Random, depth: int = 0) -> pb.CompressiveEncoding:
    """Return an encoding that nobody wrote here."""
    bits = rng.choice((0, 1, 3, 8, 16, 32, 64, 128, 1 << 20, 1 << 40, (1 << 64) - 1))
    found = pb.CompressiveEncoding()
    kind = rng.choice([f.name for f in found.DESCRIPTOR.fields])
    arm = getattr(found, kind)
    arm.SetInParent()
    for field in arm.DESCRIPTOR.fields:
        if isinstance(getattr(arm, field.name), pb.CompressiveEncoding):
            if depth < 4:
                getattr(arm, field.name).CopyFrom(_any_encoding(rng, depth + 1))
        elif field.message_type is None and not field.is_repeated and field.cpp_type in _BITS:
            setattr(arm, field.name, bits & ((1 << _BITS[field.cpp_type]) - 1))
    if kind == "general":
        arm.compression.scheme = rng.choice((0, 1, 2, 9))
    if kind == "packed_struct":
        arm.bits_per_value.extend([8, bits])
    if kind == "constant" and rng.random() < 0.7:
        arm.value = bytes(rng.randrange(17))
    return found
