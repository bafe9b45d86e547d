"""Layouts and encodings of file versions 2.1 and 2.2: protobuf messages to values.

Source: `protos/pennon/proto/encodings_v2_1.proto`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.layouts import BlobPage, ConstantPage, FullZip, Layer, Layout, MiniBlock
from pennon.errors import FormatError, UnsupportedError
from pennon.proto import encodings_v2_1_pb2 as pb

MAX_DEPTH: Final = 32
"""Encodings nested deeper than this are refused; real ones nest to five or six."""

MAX_LAYERS: Final = 256
"""Real columns have a handful of layers; the levels of each page are unravelled layer by layer."""

MAX_BUFFERS: Final = 64
"""Value buffers of a chunk; real ones have up to one for each layer of fixed-size lists."""

_SCHEMES: Final = {0: "none", 1: "lz4", 2: "zstd"}


def parse_page_layout(data: bytes) -> Layout:
    """Return the layout that ``data``, a serialized ``PageLayout``, describes.

    Raises FormatError if the bytes are no such message, UnsupportedError for layouts and encodings
    of later versions.
    """
    message = pb.PageLayout()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        text = f"not a valid PageLayout message: {error}"
        raise FormatError(text) from error
    return _layout(message, 0)


def _layout(message: pb.PageLayout, depth: int) -> Layout:
    arm = message.WhichOneof("layout")
    if arm == "mini_block_layout":
        return _mini_block(message.mini_block_layout)
    if arm == "full_zip_layout":
        return _full_zip(message.full_zip_layout)
    if arm == "constant_layout":
        return _constant(message.constant_layout)
    if arm == "blob_layout" and depth == 0:
        blob = message.blob_layout
        return BlobPage(_layout(blob.inner_layout, 1), _layers(blob.layers))
    if arm == "blob_layout":
        text = "a blob layout inside a blob layout"
        raise FormatError(text)
    raise _unknown_arm(message, "page layout")


def _mini_block(message: pb.MiniBlockLayout) -> MiniBlock:
    if message.num_buffers > MAX_BUFFERS:
        text = f"chunks of {message.num_buffers} buffers, more than {MAX_BUFFERS}"
        raise FormatError(text)
    return MiniBlock(
        _optional(message, "rep_compression"),
        _optional(message, "def_compression"),
        _encoding(message.value_compression),
        _optional(message, "dictionary"),
        message.num_dictionary_items,
        _layers(message.layers),
        message.num_buffers,
        message.repetition_index_depth,
        message.num_items,
        message.has_large_chunk,
    )


def _full_zip(message: pb.FullZipLayout) -> FullZip:
    details = message.WhichOneof("details")
    if details is None:
        text = "a full-zip layout without a width of values or sizes"
        raise FormatError(text)
    if message.bits_rep > 16 or message.bits_def > 16:
        text = f"levels of {message.bits_rep} and {message.bits_def} bits"
        raise FormatError(text)
    return FullZip(
        message.bits_rep,
        message.bits_def,
        message.bits_per_value if details == "bits_per_value" else None,
        message.bits_per_offset if details == "bits_per_offset" else None,
        message.num_items,
        message.num_visible_items,
        _encoding(message.value_compression),
        _layers(message.layers),
    )


def _constant(message: pb.ConstantLayout) -> ConstantPage:
    return ConstantPage(
        message.inline_value if message.HasField("inline_value") else None,
        _optional(message, "rep_compression"),
        _optional(message, "def_compression"),
        message.num_rep_values,
        message.num_def_values,
        _layers(message.layers),
    )


def _layers(numbers: Iterable[int]) -> tuple[Layer, ...]:
    found = tuple(numbers)
    if not 0 < len(found) <= MAX_LAYERS:
        text = f"a page of {len(found)} layers"
        raise FormatError(text)
    try:
        return tuple(Layer(number) for number in found)
    except ValueError as error:
        text = f"unknown kind of layer among {found}"
        raise UnsupportedError(text) from error


# --- encodings ------------------------------------------------------------------------------------


def _optional(message: Message, name: str) -> e.Encoding | None:
    return _encoding(getattr(message, name)) if message.HasField(name) else None


def _encoding(message: pb.CompressiveEncoding, depth: int = 0) -> e.Encoding:
    arm = message.WhichOneof("compression")
    if arm is None:
        raise _unknown_arm(message, "encoding")
    if depth > MAX_DEPTH:
        text = f"encodings nest deeper than {MAX_DEPTH}"
        raise FormatError(text)
    return _PARSERS[arm](getattr(message, arm), depth + 1)


def _unknown_arm(message: Message, what: str) -> Exception:
    """Return the error for a oneof of which no arm that we know is set."""
    unknown = UnknownFieldSet(message)
    if len(unknown) > 0:
        number = unknown[0].field_number
        return UnsupportedError(f"unknown {what} (number {number}); a later file version has it")
    return FormatError(f"{what} says nothing (no arm of the oneof is set)")


def _compression(message: pb.BufferCompression) -> e.BufferCompression:
    scheme = _SCHEMES.get(message.scheme)
    if scheme is None:
        text = f"unknown compression scheme {message.scheme}; Pennon reads lz4 and zstd"
        raise UnsupportedError(text)
    return e.BufferCompression(scheme, message.level if message.HasField("level") else None)


def _maybe(message: Message, name: str) -> e.BufferCompression | None:
    return _compression(getattr(message, name)) if message.HasField(name) else None


def _packed_field(message: pb.VariablePackedStruct.FieldEncoding, depth: int) -> e.PackedField:
    arm = message.WhichOneof("layout")
    return e.PackedField(
        _encoding(message.value, depth),
        message.bits_per_value if arm == "bits_per_value" else None,
        message.bits_per_length if arm == "bits_per_length" else None,
    )


_PARSERS: Final[Mapping[str, Callable[[Any, int], e.Encoding]]] = {
    "flat": lambda m, _: e.Flat(m.bits_per_value, _maybe(m, "data")),
    "variable": lambda m, d: e.Variable(_encoding(m.offsets, d), _maybe(m, "values")),
    "constant": lambda m, _: e.Constant(m.value if m.HasField("value") else None),
    "out_of_line_bitpacking": lambda m, d: e.OutOfLineBitpacking(
        m.uncompressed_bits_per_value, _encoding(m.values, d)
    ),
    "inline_bitpacking": lambda m, _: e.InlineBitpacking(
        m.uncompressed_bits_per_value, _maybe(m, "values")
    ),
    "fsst": lambda m, d: e.Fsst(m.symbol_table, _encoding(m.values, d)),
    "dictionary": lambda m, d: e.Dictionary(
        _encoding(m.indices, d), _encoding(m.items, d), m.num_dictionary_items
    ),
    "rle": lambda m, d: e.Rle(_encoding(m.values, d), _encoding(m.run_lengths, d)),
    "byte_stream_split": lambda m, d: e.ByteStreamSplit(_encoding(m.values, d)),
    "general": lambda m, d: e.General(_compression(m.compression), _encoding(m.values, d)),
    "fixed_size_list": lambda m, d: e.FixedSizeList(
        m.items_per_value, m.has_validity, _encoding(m.values, d)
    ),
    "packed_struct": lambda m, d: e.PackedStruct(tuple(m.bits_per_value), _encoding(m.values, d)),
    "variable_packed_struct": lambda m, d: e.VariablePackedStruct(
        tuple(_packed_field(field, d) for field in m.fields)
    ),
}
