"""The parts of a data file that are not pages, as bytes.

Source: seed 001, "File Structure"; the two names inside ``Any`` are the oracle's bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from google.protobuf.any_pb2 import Any as AnyMessage

from pennon.core.byte_ranges import Extent
from pennon.encoding.v2_0 import wire
from pennon.encoding.v2_0.encodings import ArrayEncoding, ColumnEncoding
from pennon.encoding.v2_1.layouts import BlobPage, ConstantPage, FullZip, Layout, MiniBlock
from pennon.encoding.v2_1.wire import serialize_page_layout
from pennon.proto import file2_pb2, file_pb2
from pennon.schema.field import Schema
from pennon.schema.version import V2_0, FileVersion
from pennon.schema.wire import serialize_schema

_FOOTER_NUMBERS: Final = {V2_0: (0, 3)}
"""What the footer of a 2.0 file says: oldest and newest readers know it (measured)."""

_LAYOUTS: Final = (MiniBlock, FullZip, ConstantPage, BlobPage)
_FOOTER: Final = struct.Struct("<QQQIIHH4s")
_ENTRY: Final = struct.Struct("<QQ")


def page_message(
    rows: int, encoding: ArrayEncoding | Layout, buffers: Sequence[Extent]
) -> file2_pb2.ColumnMetadata.Page:
    """Return the message of one page; ``buffers`` are where its buffers lie, in their order."""
    page = file2_pb2.ColumnMetadata.Page(
        buffer_offsets=[buffer.position for buffer in buffers],
        buffer_sizes=[buffer.size_bytes for buffer in buffers],
        length=rows,
    )
    if isinstance(encoding, _LAYOUTS):
        described = _any("encodings21.PageLayout", serialize_page_layout(encoding))
    else:
        described = _any("encodings.ArrayEncoding", wire.serialize_array_encoding(encoding))
    page.encoding.direct.encoding = described
    return page


def serialize_column(
    encoding: ColumnEncoding,
    pages: Sequence[file2_pb2.ColumnMetadata.Page],
    buffers: Sequence[Extent] = (),
) -> bytes:
    """Return the metadata of one column; ``buffers`` are where its own buffers lie."""
    message = file2_pb2.ColumnMetadata(
        pages=pages,
        buffer_offsets=[buffer.position for buffer in buffers],
        buffer_sizes=[buffer.size_bytes for buffer in buffers],
    )
    data = wire.serialize_column_encoding(encoding)
    message.encoding.direct.encoding = _any("encodings.ColumnEncoding", data)
    return message.SerializeToString(deterministic=True)


def _any(name: str, data: bytes) -> bytes:
    message = AnyMessage(type_url=f"/lance.{name}", value=data)
    return message.SerializeToString(deterministic=True)


def serialize_file_descriptor(schema: Schema, num_rows: int) -> bytes:
    """Return global buffer 0."""
    message = file_pb2.FileDescriptor(schema=serialize_schema(schema), length=num_rows)
    return message.SerializeToString(deterministic=True)


def serialize_table(extents: Sequence[Extent]) -> bytes:
    """Return a table of (position, size), for columns or for global buffers."""
    return b"".join(_ENTRY.pack(extent.position, extent.size_bytes) for extent in extents)


def serialize_footer(
    first_column: int, column_table: Extent, buffer_table: Extent, version: FileVersion
) -> bytes:
    """Return the last 40 bytes of a file."""
    return _FOOTER.pack(
        first_column,
        column_table.position,
        buffer_table.position,
        buffer_table.size_bytes // _ENTRY.size,
        column_table.size_bytes // _ENTRY.size,
        *_FOOTER_NUMBERS.get(version, version.to_numbers()),
        b"LANC",
    )
