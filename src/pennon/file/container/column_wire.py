"""The metadata of a column as a message; `pennon.file.container.column_metadata` reads it.

Source: seed 001, "File Structure".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pennon.core.byte_ranges import ByteRange
from pennon.proto import file2_pb2

PageMessage: TypeAlias = file2_pb2.ColumnMetadata.Page


def page_message(rows: int, encoding: bytes, buffers: Sequence[ByteRange]) -> PageMessage:
    """Return the message of a page; ``buffers`` are where its buffers lie, in their order."""
    page = PageMessage(
        buffer_offsets=[buffer.position for buffer in buffers],
        buffer_sizes=[buffer.size_bytes for buffer in buffers],
        length=rows,
    )
    page.encoding.direct.encoding = encoding
    return page


def serialize_column(
    encoding: bytes, pages: Sequence[PageMessage], buffers: Sequence[ByteRange] = ()
) -> bytes:
    """Return the metadata of a column; ``buffers`` are where its own buffers lie."""
    message = file2_pb2.ColumnMetadata(
        pages=pages,
        buffer_offsets=[buffer.position for buffer in buffers],
        buffer_sizes=[buffer.size_bytes for buffer in buffers],
    )
    message.encoding.direct.encoding = encoding
    return message.SerializeToString(deterministic=True)
