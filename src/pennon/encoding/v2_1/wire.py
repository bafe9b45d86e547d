"""Layouts and encodings of file versions 2.1 and 2.2: protobuf messages to values and back.

Source: `protos/pennon/proto/encodings_v2_1.proto`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
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
    return _layout_from(message, 0)


@lru_cache(maxsize=64)
def serialize_page_layout(layout: Layout) -> bytes:
    """Return a ``PageLayout`` message."""
    return _layout_to(layout).SerializeToString(deterministic=True)


# --- messages to values ---------------------------------------------------------------------------


def _layout_from(message: pb.PageLayout, depth: int) -> Layout:
    arm = message.WhichOneof("layout")
    if arm == "mini_block_layout":
        return _mini_block_from(message.mini_block_layout)
    if arm == "full_zip_layout":
        return _full_zip_from(message.full_zip_layout)
    if arm == "constant_layout":
        return _constant_page_from(message.constant_layout)
    if arm == "blob_layout" and depth == 0:
        blob = message.blob_layout
        return BlobPage(_layout_from(blob.inner_layout, 1), _layers_from(blob.layers))
    if arm == "blob_layout":
        text = "a blob layout inside a blob layout"
        raise FormatError(text)
    raise _unknown_arm(message, "page layout")


def _mini_block_from(message: pb.MiniBlockLayout) -> MiniBlock:
    if message.num_buffers > MAX_BUFFERS:
        text = f"chunks of {message.num_buffers} buffers, more than {MAX_BUFFERS}"
        raise FormatError(text)
    return MiniBlock(
        _optional_from(message, "rep_compression"),
        _optional_from(message, "def_compression"),
        _encoding_from(message.value_compression),
        _optional_from(message, "dictionary"),
        message.num_dictionary_items,
        _layers_from(message.layers),
        message.num_buffers,
        message.repetition_index_depth,
        message.num_items,
        message.has_large_chunk,
    )


def _full_zip_from(message: pb.FullZipLayout) -> FullZip:
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
        _encoding_from(message.value_compression),
        _layers_from(message.layers),
    )


def _constant_page_from(message: pb.ConstantLayout) -> ConstantPage:
    return ConstantPage(
        message.inline_value if message.HasField("inline_value") else None,
        _optional_from(message, "rep_compression"),
        _optional_from(message, "def_compression"),
        message.num_rep_values,
        message.num_def_values,
        _layers_from(message.layers),
    )


def _layers_from(numbers: Iterable[int]) -> tuple[Layer, ...]:
    found = tuple(numbers)
    if not 0 < len(found) <= MAX_LAYERS:
        text = f"a page of {len(found)} layers"
        raise FormatError(text)
    try:
        return tuple(Layer(number) for number in found)
    except ValueError as error:
        text = f"unknown kind of layer among {found}"
        raise UnsupportedError(text) from error


def _optional_from(message: Message, name: str) -> e.Encoding | None:
    return _encoding_from(getattr(message, name)) if message.HasField(name) else None


def _encoding_from(message: pb.CompressiveEncoding, depth: int = 0) -> e.Encoding:
    arm = message.WhichOneof("compression")
    if arm is None:
        raise _unknown_arm(message, "encoding")
    if depth > MAX_DEPTH:
        text = f"encodings nest deeper than {MAX_DEPTH}"
        raise FormatError(text)
    return _PARSERS[arm](getattr(message, arm), depth + 1)


def _unknown_arm(message: Message, what: str) -> Exception:
    """Return the error for a oneof whose set arm is unknown."""
    unknown = UnknownFieldSet(message)
    if len(unknown) > 0:
        number = unknown[0].field_number
        return UnsupportedError(f"unknown {what} (number {number}); a later file version has it")
    return FormatError(f"{what} says nothing (no arm of the oneof is set)")


def _compression_from(message: pb.BufferCompression) -> e.BufferCompression:
    scheme = _SCHEMES.get(message.scheme)
    if scheme is None:
        text = f"unknown compression scheme {message.scheme}; Pennon reads lz4 and zstd"
        raise UnsupportedError(text)
    return e.BufferCompression(scheme, message.level if message.HasField("level") else None)


def _optional_compression_from(message: Message, name: str) -> e.BufferCompression | None:
    return _compression_from(getattr(message, name)) if message.HasField(name) else None


def _packed_field_from(message: pb.VariablePackedStruct.FieldEncoding, depth: int) -> e.PackedField:
    arm = message.WhichOneof("layout")
    return e.PackedField(
        _encoding_from(message.value, depth),
        message.bits_per_value if arm == "bits_per_value" else None,
        message.bits_per_length if arm == "bits_per_length" else None,
    )


_PARSERS: Final[Mapping[str, Callable[[Any, int], e.Encoding]]] = {
    "flat": lambda m, _: e.Flat(m.bits_per_value, _optional_compression_from(m, "data")),
    "variable": lambda m, d: e.Variable(
        _encoding_from(m.offsets, d), _optional_compression_from(m, "values")
    ),
    "constant": lambda m, _: e.Constant(m.value if m.HasField("value") else None),
    "out_of_line_bitpacking": lambda m, d: e.OutOfLineBitpacking(
        m.uncompressed_bits_per_value, _encoding_from(m.values, d)
    ),
    "inline_bitpacking": lambda m, _: e.InlineBitpacking(
        m.uncompressed_bits_per_value, _optional_compression_from(m, "values")
    ),
    "fsst": lambda m, d: e.Fsst(m.symbol_table, _encoding_from(m.values, d)),
    "dictionary": lambda m, d: e.Dictionary(
        _encoding_from(m.indices, d), _encoding_from(m.items, d), m.num_dictionary_items
    ),
    "rle": lambda m, d: e.Rle(_encoding_from(m.values, d), _encoding_from(m.run_lengths, d)),
    "byte_stream_split": lambda m, d: e.ByteStreamSplit(_encoding_from(m.values, d)),
    "general": lambda m, d: e.General(
        _compression_from(m.compression), _encoding_from(m.values, d)
    ),
    "fixed_size_list": lambda m, d: e.FixedSizeList(
        m.items_per_value, m.has_validity, _encoding_from(m.values, d)
    ),
    "packed_struct": lambda m, d: e.PackedStruct(
        tuple(m.bits_per_value), _encoding_from(m.values, d)
    ),
    "variable_packed_struct": lambda m, d: e.VariablePackedStruct(
        tuple(_packed_field_from(field, d) for field in m.fields)
    ),
}


# --- values to messages ---------------------------------------------------------------------------


_SCHEME_NUMBERS: Final = {
    "lz4": pb.COMPRESSION_ALGORITHM_LZ4,
    "zstd": pb.COMPRESSION_ALGORITHM_ZSTD,
}


def _layout_to(layout: Layout) -> pb.PageLayout:
    if isinstance(layout, MiniBlock):
        return pb.PageLayout(mini_block_layout=_mini_block_to(layout))
    if isinstance(layout, FullZip):
        return pb.PageLayout(full_zip_layout=_full_zip_to(layout))
    if isinstance(layout, ConstantPage):
        return pb.PageLayout(constant_layout=_constant_page_to(layout))
    blob = pb.BlobLayout(inner_layout=_layout_to(layout.inner), layers=_layers_to(layout))
    return pb.PageLayout(blob_layout=blob)


def _layers_to(layout: Layout) -> list[pb.RepDefLayer.ValueType]:
    return [pb.RepDefLayer.ValueType(layer) for layer in layout.layers]


def _mini_block_to(layout: MiniBlock) -> pb.MiniBlockLayout:
    return pb.MiniBlockLayout(
        rep_compression=_optional_to(layout.rep),
        def_compression=_optional_to(layout.definition),
        value_compression=_encoding_to(layout.values),
        dictionary=_optional_to(layout.dictionary),
        num_dictionary_items=layout.num_dictionary_items,
        layers=_layers_to(layout),
        num_buffers=layout.num_buffers,
        repetition_index_depth=layout.index_depth,
        num_items=layout.num_items,
        has_large_chunk=layout.is_large,
    )


def _full_zip_to(layout: FullZip) -> pb.FullZipLayout:
    message = pb.FullZipLayout(
        bits_rep=layout.bits_rep,
        bits_def=layout.bits_def,
        num_items=layout.num_items,
        num_visible_items=layout.num_visible_items,
        value_compression=_encoding_to(layout.values),
        layers=_layers_to(layout),
    )
    if layout.bits_per_value is not None:
        message.bits_per_value = layout.bits_per_value
    if layout.bits_per_offset is not None:
        message.bits_per_offset = layout.bits_per_offset
    return message


def _constant_page_to(layout: ConstantPage) -> pb.ConstantLayout:
    return pb.ConstantLayout(
        inline_value=layout.value,
        rep_compression=_optional_to(layout.rep),
        def_compression=_optional_to(layout.definition),
        num_rep_values=layout.num_rep,
        num_def_values=layout.num_def,
        layers=_layers_to(layout),
    )


def _optional_to(encoding: e.Encoding | None) -> pb.CompressiveEncoding | None:
    return None if encoding is None else _encoding_to(encoding)


def _encoding_to(encoding: e.Encoding) -> pb.CompressiveEncoding:
    make = _SERIALIZERS.get(type(encoding))
    if make is None:
        message = f"Pennon does not write the encoding {type(encoding).__name__}"
        raise UnsupportedError(message)
    return make(encoding)


def _general_to(encoding: e.General) -> pb.CompressiveEncoding:
    compression = pb.BufferCompression(
        scheme=_SCHEME_NUMBERS[encoding.compression.scheme], level=encoding.compression.level
    )
    inner = pb.General(compression=compression, values=_encoding_to(encoding.values))
    return pb.CompressiveEncoding(general=inner)


def _fixed_size_list_to(encoding: e.FixedSizeList) -> pb.CompressiveEncoding:
    inner = pb.FixedSizeList(
        items_per_value=encoding.dimension,
        has_validity=encoding.has_validity,
        values=_encoding_to(encoding.values),
    )
    return pb.CompressiveEncoding(fixed_size_list=inner)


def _out_of_line_to(encoding: e.OutOfLineBitpacking) -> pb.CompressiveEncoding:
    inner = pb.OutOfLineBitpacking(
        uncompressed_bits_per_value=encoding.bits_per_value, values=_encoding_to(encoding.values)
    )
    return pb.CompressiveEncoding(out_of_line_bitpacking=inner)


def _inline_to(encoding: e.InlineBitpacking) -> pb.CompressiveEncoding:
    inner = pb.InlineBitpacking(uncompressed_bits_per_value=encoding.bits_per_value)
    return pb.CompressiveEncoding(inline_bitpacking=inner)


def _rle_to(encoding: e.Rle) -> pb.CompressiveEncoding:
    inner = pb.Rle(
        values=_encoding_to(encoding.values), run_lengths=_encoding_to(encoding.run_lengths)
    )
    return pb.CompressiveEncoding(rle=inner)


def _packed_struct_to(encoding: e.PackedStruct) -> pb.CompressiveEncoding:
    inner = pb.PackedStruct(
        bits_per_value=encoding.bits_per_field, values=_encoding_to(encoding.values)
    )
    return pb.CompressiveEncoding(packed_struct=inner)


def _variable_packed_struct_to(encoding: e.VariablePackedStruct) -> pb.CompressiveEncoding:
    inner = pb.VariablePackedStruct(fields=[_packed_field_to(field) for field in encoding.fields])
    return pb.CompressiveEncoding(variable_packed_struct=inner)


def _packed_field_to(field: e.PackedField) -> pb.VariablePackedStruct.FieldEncoding:
    message = pb.VariablePackedStruct.FieldEncoding(value=_encoding_to(field.value))
    if field.bits_per_value is not None:
        message.bits_per_value = field.bits_per_value
    if field.bits_per_length is not None:
        message.bits_per_length = field.bits_per_length
    return message


def _constant_to(encoding: e.Constant) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(constant=pb.Constant(value=encoding.value))


_SERIALIZERS: Final[Mapping[type[Any], Callable[[Any], pb.CompressiveEncoding]]] = {
    e.Flat: lambda x: pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=x.bits_per_value)),
    e.Variable: lambda x: pb.CompressiveEncoding(
        variable=pb.Variable(offsets=_encoding_to(x.offsets))
    ),
    e.Constant: _constant_to,
    e.OutOfLineBitpacking: _out_of_line_to,
    e.InlineBitpacking: _inline_to,
    e.Fsst: lambda x: pb.CompressiveEncoding(
        fsst=pb.Fsst(symbol_table=x.symbol_table, values=_encoding_to(x.values))
    ),
    e.Rle: _rle_to,
    e.ByteStreamSplit: lambda x: pb.CompressiveEncoding(
        byte_stream_split=pb.ByteStreamSplit(values=_encoding_to(x.values))
    ),
    e.General: _general_to,
    e.FixedSizeList: _fixed_size_list_to,
    e.PackedStruct: _packed_struct_to,
    e.VariablePackedStruct: _variable_packed_struct_to,
}
