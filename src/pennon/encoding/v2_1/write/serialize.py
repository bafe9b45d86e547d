"""Layouts and encodings of file version 2.1: values to protobuf messages.

The other direction is `pennon.encoding.v2_1.wire`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.layouts import ConstantPage, FullZip, Layout, MiniBlock
from pennon.errors import UnsupportedError
from pennon.proto import encodings_v2_1_pb2 as pb

_SCHEMES: Final = {"lz4": pb.COMPRESSION_ALGORITHM_LZ4, "zstd": pb.COMPRESSION_ALGORITHM_ZSTD}


def serialize_page_layout(layout: Layout) -> bytes:
    """Return a ``PageLayout`` message."""
    return _layout(layout).SerializeToString(deterministic=True)


def _layout(layout: Layout) -> pb.PageLayout:
    if isinstance(layout, MiniBlock):
        return pb.PageLayout(mini_block_layout=_mini_block(layout))
    if isinstance(layout, FullZip):
        return pb.PageLayout(full_zip_layout=_full_zip(layout))
    if isinstance(layout, ConstantPage):
        return pb.PageLayout(constant_layout=_constant(layout))
    blob = pb.BlobLayout(inner_layout=_layout(layout.inner), layers=_layers(layout))
    return pb.PageLayout(blob_layout=blob)


def _layers(layout: Layout) -> list[pb.RepDefLayer.ValueType]:
    return [pb.RepDefLayer.ValueType(layer) for layer in layout.layers]


def _mini_block(layout: MiniBlock) -> pb.MiniBlockLayout:
    return pb.MiniBlockLayout(
        rep_compression=_optional(layout.rep),
        def_compression=_optional(layout.definition),
        value_compression=_encoding(layout.values),
        dictionary=_optional(layout.dictionary),
        num_dictionary_items=layout.num_dictionary_items,
        layers=_layers(layout),
        num_buffers=layout.num_buffers,
        repetition_index_depth=layout.index_depth,
        num_items=layout.num_items,
    )


def _full_zip(layout: FullZip) -> pb.FullZipLayout:
    message = pb.FullZipLayout(
        bits_rep=layout.bits_rep,
        bits_def=layout.bits_def,
        num_items=layout.num_items,
        num_visible_items=layout.num_visible_items,
        value_compression=_encoding(layout.values),
        layers=_layers(layout),
    )
    if layout.bits_per_value is not None:
        message.bits_per_value = layout.bits_per_value
    if layout.bits_per_offset is not None:
        message.bits_per_offset = layout.bits_per_offset
    return message


def _constant(layout: ConstantPage) -> pb.ConstantLayout:
    if layout.value is not None or layout.rep is not None or layout.definition is not None:
        message = "constant values and encoded levels of a page without values belong to 2.2"
        raise UnsupportedError(message)
    return pb.ConstantLayout(layers=_layers(layout))


def _optional(encoding: e.Encoding | None) -> pb.CompressiveEncoding | None:
    return None if encoding is None else _encoding(encoding)


def _encoding(encoding: e.Encoding) -> pb.CompressiveEncoding:
    make = _MAKERS.get(type(encoding))
    if make is None:
        message = f"Pennon does not write the encoding {type(encoding).__name__}"
        raise UnsupportedError(message)
    return make(encoding)


def _general(encoding: e.General) -> pb.CompressiveEncoding:
    compression = pb.BufferCompression(
        scheme=_SCHEMES[encoding.compression.scheme], level=encoding.compression.level
    )
    inner = pb.General(compression=compression, values=_encoding(encoding.values))
    return pb.CompressiveEncoding(general=inner)


def _list(encoding: e.FixedSizeList) -> pb.CompressiveEncoding:
    inner = pb.FixedSizeList(
        items_per_value=encoding.dimension,
        has_validity=encoding.has_validity,
        values=_encoding(encoding.values),
    )
    return pb.CompressiveEncoding(fixed_size_list=inner)


def _packed(encoding: e.OutOfLineBitpacking) -> pb.CompressiveEncoding:
    inner = pb.OutOfLineBitpacking(
        uncompressed_bits_per_value=encoding.bits_per_value, values=_encoding(encoding.values)
    )
    return pb.CompressiveEncoding(out_of_line_bitpacking=inner)


def _inline(encoding: e.InlineBitpacking) -> pb.CompressiveEncoding:
    inner = pb.InlineBitpacking(uncompressed_bits_per_value=encoding.bits_per_value)
    return pb.CompressiveEncoding(inline_bitpacking=inner)


def _runs(encoding: e.Rle) -> pb.CompressiveEncoding:
    inner = pb.Rle(values=_encoding(encoding.values), run_lengths=_encoding(encoding.run_lengths))
    return pb.CompressiveEncoding(rle=inner)


def _rows(encoding: e.PackedStruct) -> pb.CompressiveEncoding:
    inner = pb.PackedStruct(
        bits_per_value=encoding.bits_per_field, values=_encoding(encoding.values)
    )
    return pb.CompressiveEncoding(packed_struct=inner)


def _null(encoding: e.Constant) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(constant=pb.Constant(value=encoding.value))


_MAKERS: Final[Mapping[type[Any], Callable[[Any], pb.CompressiveEncoding]]] = {
    e.Flat: lambda x: pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=x.bits_per_value)),
    e.Variable: lambda x: pb.CompressiveEncoding(
        variable=pb.Variable(offsets=_encoding(x.offsets))
    ),
    e.Constant: _null,
    e.OutOfLineBitpacking: _packed,
    e.InlineBitpacking: _inline,
    e.Fsst: lambda x: pb.CompressiveEncoding(
        fsst=pb.Fsst(symbol_table=x.symbol_table, values=_encoding(x.values))
    ),
    e.Rle: _runs,
    e.ByteStreamSplit: lambda x: pb.CompressiveEncoding(
        byte_stream_split=pb.ByteStreamSplit(values=_encoding(x.values))
    ),
    e.General: _general,
    e.FixedSizeList: _list,
    e.PackedStruct: _rows,
}
