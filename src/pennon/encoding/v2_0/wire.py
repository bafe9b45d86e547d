"""Encodings of file version 2.0: protobuf messages to values and back.

Source: seed 004 (encodings.proto of early 2.0), `protos/pennon/proto/encodings_v2_0.proto`.

The one proto package grew into 2.1; its later arms (in-line bit-packing and so on) are known by name
here only, to say what a file needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from pennon.encoding.v2_0 import encodings as e
from pennon.errors import FormatError, UnsupportedError
from pennon.proto import encodings_v2_0_pb2 as pb

MAX_DEPTH: Final = 32
"""Encodings nested deeper than this are refused; real ones nest to five or six."""

_PLACES: Final[tuple[e.Place, ...]] = ("page", "column", "file")


def parse_array_encoding(data: bytes) -> e.ArrayEncoding:
    """Return the array encoding that ``data``, a serialized ``ArrayEncoding``, describes.

    Raises FormatError if the bytes are no such message, UnsupportedError for encodings of others.
    """
    message = pb.ArrayEncoding()
    _parse(message, data)
    return array_encoding_from(message)


def parse_column_encoding(data: bytes) -> e.ColumnEncoding:
    """Return the column encoding that ``data``, a serialized ``ColumnEncoding``, describes."""
    message = pb.ColumnEncoding()
    _parse(message, data)
    return column_encoding_from(message)


def serialize_array_encoding(encoding: e.ArrayEncoding) -> bytes:
    """Return the bytes of an ``ArrayEncoding`` message, the same for the same encoding always."""
    data: bytes = array_encoding_to(encoding).SerializeToString(deterministic=True)
    return data


def serialize_column_encoding(encoding: e.ColumnEncoding) -> bytes:
    """Return the bytes of a ``ColumnEncoding`` message."""
    data: bytes = column_encoding_to(encoding).SerializeToString(deterministic=True)
    return data


def _parse(message: pb.ArrayEncoding | pb.ColumnEncoding, data: bytes) -> None:
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        text = f"not a valid {type(message).__name__} message: {error}"
        raise FormatError(text) from error


# --- messages to values ---------------------------------------------------------------------------


def array_encoding_from(message: pb.ArrayEncoding, depth: int = 0) -> e.ArrayEncoding:
    """Return the value of an ``ArrayEncoding`` message at nesting ``depth``."""
    arm = message.WhichOneof("array_encoding")
    if arm is None:
        raise _unknown_arm(message, "array encoding")
    if depth > MAX_DEPTH:
        text = f"array encodings nest deeper than {MAX_DEPTH}"
        raise FormatError(text)
    parse = _PARSERS.get(arm)
    if parse is None:
        text = f"array encoding {arm!r} belongs to file version 2.1 and cannot stand in a 2.0 file"
        raise UnsupportedError(text)
    return parse(getattr(message, arm), depth)


def column_encoding_from(message: pb.ColumnEncoding, depth: int = 0) -> e.ColumnEncoding:
    """Return the value of a ``ColumnEncoding`` message at nesting ``depth``."""
    if depth > MAX_DEPTH:
        text = f"column encodings nest deeper than {MAX_DEPTH}"
        raise FormatError(text)
    arm = message.WhichOneof("column_encoding")
    if arm == "values":
        return e.Values()
    if arm == "blob":
        return e.Blob(column_encoding_from(message.blob.inner, depth + 1))
    if arm == "zone_index":
        zone = message.zone_index
        inner = column_encoding_from(zone.inner, depth + 1)
        return e.ZoneIndex(zone.rows_per_zone, _buffer_from(zone.zone_map_buffer), inner)
    raise _unknown_arm(message, "column encoding")


def _unknown_arm(message: pb.ArrayEncoding | pb.ColumnEncoding, what: str) -> Exception:
    """Return the error for a oneof whose set arm is unknown."""
    unknown = UnknownFieldSet(message)
    if len(unknown) > 0:
        return UnsupportedError(f"unknown {what} (field {unknown[0].field_number} of the oneof)")
    return FormatError(f"{what} says nothing (no arm of the oneof is set)")


def _buffer_from(message: pb.Buffer) -> e.BufferRef:
    if not 0 <= message.buffer_type < len(_PLACES):
        text = f"unknown buffer type {message.buffer_type}"
        raise UnsupportedError(text)
    return e.BufferRef(message.buffer_index, _PLACES[message.buffer_type])


def _flat_from(message: pb.Flat, _depth: int) -> e.ArrayEncoding:
    compression = None
    if message.HasField("compression"):
        level = message.compression.level if message.compression.HasField("level") else None
        compression = e.Compression(message.compression.scheme, level)
    return e.Flat(message.bits_per_value, _buffer_from(message.buffer), compression)


def _nullable_from(message: pb.Nullable, depth: int) -> e.ArrayEncoding:
    arm = message.WhichOneof("nullability")
    if arm == "no_nulls":
        return e.NoNulls(array_encoding_from(message.no_nulls.values, depth + 1))
    if arm == "some_nulls":
        validity = array_encoding_from(message.some_nulls.validity, depth + 1)
        return e.SomeNulls(validity, array_encoding_from(message.some_nulls.values, depth + 1))
    if arm == "all_nulls":
        return e.AllNulls()
    text = "nullable encoding says nothing (no arm of the oneof is set)"
    raise FormatError(text)


def _fixed_size_list_from(message: pb.FixedSizeList, depth: int) -> e.ArrayEncoding:
    items = array_encoding_from(message.items, depth + 1)
    return e.FixedSizeList(message.dimension, items, message.has_validity)


def _list_from(message: pb.List, depth: int) -> e.ArrayEncoding:
    offsets = array_encoding_from(message.offsets, depth + 1)
    return e.List(offsets, message.null_offset_adjustment, message.num_items)


def _struct_from(_message: pb.SimpleStruct, _depth: int) -> e.ArrayEncoding:
    return e.SimpleStruct()


def _binary_from(message: pb.Binary, depth: int) -> e.ArrayEncoding:
    indices = array_encoding_from(message.indices, depth + 1)
    data = array_encoding_from(message.bytes, depth + 1)
    return e.Binary(indices, data, message.null_adjustment)


def _dictionary_from(message: pb.Dictionary, depth: int) -> e.ArrayEncoding:
    indices = array_encoding_from(message.indices, depth + 1)
    items = array_encoding_from(message.items, depth + 1)
    return e.Dictionary(indices, items, message.num_dictionary_items)


def _fsst_from(message: pb.Fsst, depth: int) -> e.ArrayEncoding:
    return e.Fsst(array_encoding_from(message.binary, depth + 1), message.symbol_table)


def _packed_struct_from(message: pb.PackedStruct, depth: int) -> e.ArrayEncoding:
    inner = tuple(array_encoding_from(field, depth + 1) for field in message.inner)
    return e.PackedStruct(inner, _buffer_from(message.buffer))


def _bitpacked_from(message: pb.Bitpacked, _depth: int) -> e.ArrayEncoding:
    return e.Bitpacked(
        message.compressed_bits_per_value,
        message.uncompressed_bits_per_value,
        _buffer_from(message.buffer),
        message.signed,
    )


def _bitpacked_for_non_neg_from(message: pb.BitpackedForNonNeg, _depth: int) -> e.ArrayEncoding:
    return e.BitpackedForNonNeg(
        message.compressed_bits_per_value,
        message.uncompressed_bits_per_value,
        _buffer_from(message.buffer),
    )


def _fixed_size_binary_from(message: pb.FixedSizeBinary, depth: int) -> e.ArrayEncoding:
    return e.FixedSizeBinary(array_encoding_from(message.bytes, depth + 1), message.byte_width)


def _constant_from(message: pb.Constant, _depth: int) -> e.ArrayEncoding:
    return e.Constant(message.value)


_PARSERS: Final[Mapping[str, Callable[[Any, int], e.ArrayEncoding]]] = {
    "flat": _flat_from,
    "nullable": _nullable_from,
    "fixed_size_list": _fixed_size_list_from,
    "list": _list_from,
    "struct": _struct_from,
    "binary": _binary_from,
    "dictionary": _dictionary_from,
    "fsst": _fsst_from,
    "packed_struct": _packed_struct_from,
    "bitpacked": _bitpacked_from,
    "fixed_size_binary": _fixed_size_binary_from,
    "bitpacked_for_non_neg": _bitpacked_for_non_neg_from,
    "constant": _constant_from,
}


# --- values to messages ---------------------------------------------------------------------------


_PLACE_NUMBERS: Final = {"page": pb.Buffer.page, "column": pb.Buffer.column, "file": pb.Buffer.file}


def _buffer_to(ref: e.BufferRef) -> pb.Buffer:
    return pb.Buffer(buffer_index=ref.index, buffer_type=_PLACE_NUMBERS[ref.place])


def column_encoding_to(encoding: e.ColumnEncoding) -> pb.ColumnEncoding:
    """Return the message of a column encoding."""
    message = pb.ColumnEncoding()
    match encoding:
        case e.Values():
            message.values.SetInParent()
        case e.Blob(inner):
            message.blob.inner.CopyFrom(column_encoding_to(inner))
        case e.ZoneIndex(rows_per_zone, zone_map, inner):
            message.zone_index.rows_per_zone = rows_per_zone
            message.zone_index.zone_map_buffer.CopyFrom(_buffer_to(zone_map))
            message.zone_index.inner.CopyFrom(column_encoding_to(inner))
    return message


def array_encoding_to(encoding: e.ArrayEncoding) -> pb.ArrayEncoding:
    """Return the message of an array encoding."""
    return _SERIALIZERS[type(encoding)](encoding)


def _flat_to(flat: e.Flat) -> pb.ArrayEncoding:
    message = pb.Flat(bits_per_value=flat.bits_per_value, buffer=_buffer_to(flat.buffer))
    if flat.compression is not None:
        message.compression.scheme = flat.compression.scheme
        if flat.compression.level is not None:
            message.compression.level = flat.compression.level
    return pb.ArrayEncoding(flat=message)


def _no_nulls_to(encoding: e.NoNulls) -> pb.ArrayEncoding:
    arm = pb.Nullable.NoNull(values=array_encoding_to(encoding.values))
    return pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=arm))


def _some_nulls_to(encoding: e.SomeNulls) -> pb.ArrayEncoding:
    arm = pb.Nullable.SomeNull(
        validity=array_encoding_to(encoding.validity), values=array_encoding_to(encoding.values)
    )
    return pb.ArrayEncoding(nullable=pb.Nullable(some_nulls=arm))


def _all_nulls_to(_encoding: e.AllNulls) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))


def _fixed_size_list_to(encoding: e.FixedSizeList) -> pb.ArrayEncoding:
    arm = pb.FixedSizeList(
        dimension=encoding.dimension,
        has_validity=encoding.has_validity,
        items=array_encoding_to(encoding.items),
    )
    return pb.ArrayEncoding(fixed_size_list=arm)


def _list_to(encoding: e.List) -> pb.ArrayEncoding:
    arm = pb.List(
        offsets=array_encoding_to(encoding.offsets),
        null_offset_adjustment=encoding.null_offset_adjustment,
        num_items=encoding.num_items,
    )
    return pb.ArrayEncoding(list=arm)


def _struct_to(_encoding: e.SimpleStruct) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(struct=pb.SimpleStruct())


def _binary_to(encoding: e.Binary) -> pb.ArrayEncoding:
    arm = pb.Binary(
        indices=array_encoding_to(encoding.indices),
        bytes=array_encoding_to(encoding.bytes),
        null_adjustment=encoding.null_adjustment,
    )
    return pb.ArrayEncoding(binary=arm)


def _dictionary_to(encoding: e.Dictionary) -> pb.ArrayEncoding:
    arm = pb.Dictionary(
        indices=array_encoding_to(encoding.indices),
        items=array_encoding_to(encoding.items),
        num_dictionary_items=encoding.num_dictionary_items,
    )
    return pb.ArrayEncoding(dictionary=arm)


def _fsst_to(encoding: e.Fsst) -> pb.ArrayEncoding:
    arm = pb.Fsst(binary=array_encoding_to(encoding.binary), symbol_table=encoding.symbol_table)
    return pb.ArrayEncoding(fsst=arm)


def _packed_struct_to(encoding: e.PackedStruct) -> pb.ArrayEncoding:
    inner = [array_encoding_to(field) for field in encoding.inner]
    arm = pb.PackedStruct(inner=inner, buffer=_buffer_to(encoding.buffer))
    return pb.ArrayEncoding(packed_struct=arm)


def _bitpacked_to(encoding: e.Bitpacked) -> pb.ArrayEncoding:
    arm = pb.Bitpacked(
        compressed_bits_per_value=encoding.compressed_bits_per_value,
        uncompressed_bits_per_value=encoding.uncompressed_bits_per_value,
        buffer=_buffer_to(encoding.buffer),
        signed=encoding.signed,
    )
    return pb.ArrayEncoding(bitpacked=arm)


def _bitpacked_for_non_neg_to(encoding: e.BitpackedForNonNeg) -> pb.ArrayEncoding:
    arm = pb.BitpackedForNonNeg(
        compressed_bits_per_value=encoding.compressed_bits_per_value,
        uncompressed_bits_per_value=encoding.uncompressed_bits_per_value,
        buffer=_buffer_to(encoding.buffer),
    )
    return pb.ArrayEncoding(bitpacked_for_non_neg=arm)


def _fixed_size_binary_to(encoding: e.FixedSizeBinary) -> pb.ArrayEncoding:
    data = array_encoding_to(encoding.bytes)
    arm = pb.FixedSizeBinary(bytes=data, byte_width=encoding.byte_width)
    return pb.ArrayEncoding(fixed_size_binary=arm)


def _constant_to(encoding: e.Constant) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(constant=pb.Constant(value=encoding.value))


_SERIALIZERS: Final[Mapping[type[Any], Callable[[Any], pb.ArrayEncoding]]] = {
    e.Flat: _flat_to,
    e.NoNulls: _no_nulls_to,
    e.SomeNulls: _some_nulls_to,
    e.AllNulls: _all_nulls_to,
    e.FixedSizeList: _fixed_size_list_to,
    e.List: _list_to,
    e.SimpleStruct: _struct_to,
    e.Binary: _binary_to,
    e.Dictionary: _dictionary_to,
    e.Fsst: _fsst_to,
    e.PackedStruct: _packed_struct_to,
    e.Bitpacked: _bitpacked_to,
    e.BitpackedForNonNeg: _bitpacked_for_non_neg_to,
    e.FixedSizeBinary: _fixed_size_binary_to,
    e.Constant: _constant_to,
}
