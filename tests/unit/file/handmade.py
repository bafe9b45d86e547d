"""Data files put together by hand, for layouts that no current writer makes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage

from pennon.encoding.v2_0 import wire
from pennon.encoding.v2_0.encodings import ArrayEncoding, ColumnEncoding, Values
from pennon.file.container.file import DataFile
from pennon.file.open import open_container_file
from pennon.proto import file2_pb2, file_pb2
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.wire import serialize_fields
from pennon.testing import CountingStore, MemoryStore


@dataclass(slots=True)
class HandPage:
    rows: int
    encoding: ArrayEncoding | None
    buffers: Sequence[bytes] = ()


@dataclass(slots=True)
class HandColumn:
    pages: Sequence[HandPage]
    encoding: ColumnEncoding | None = field(default_factory=Values)
    buffers: Sequence[bytes] = ()


class HandFile:
    """``indirect``: encodings lie in the data part, the metadata only points at them."""

    def __init__(
        self,
        schema: pa.Schema,
        rows: int,
        columns: Sequence[HandColumn],
        *,
        version: tuple[int, int] = (2, 0),
        indirect: bool = False,
        global_buffers: Sequence[bytes] = (),
        padding: int = 5,
    ) -> None:
        self.data = bytearray()
        self.indirect = indirect
        self.padding = padding
        messages = [self._column(column) for column in columns]
        buffers = [self._append(self._descriptor(schema, rows))]
        buffers += [self._append(buffer) for buffer in global_buffers]
        places = [self._append(message.SerializeToString()) for message in messages]
        column_table = self._append(b"".join(struct.pack("<QQ", *place) for place in places))
        buffer_table = self._append(b"".join(struct.pack("<QQ", *place) for place in buffers))
        self.data += struct.pack(
            "<QQQIIHH4s",
            places[0][0] if places else column_table[0],
            column_table[0],
            buffer_table[0],
            len(buffers),
            len(columns),
            *version,
            b"LANC",
        )

    def _append(self, data: bytes) -> tuple[int, int]:
        self.data += bytes([0x48] * self.padding)
        position = len(self.data)
        self.data += data
        return position, len(data)

    @staticmethod
    def _descriptor(schema: pa.Schema, rows: int) -> bytes:
        message = file_pb2.FileDescriptor(length=rows)
        message.schema.fields.extend(serialize_fields(schema_from_arrow(schema)))
        return message.SerializeToString()

    def _encoding(self, name: str, data: bytes) -> file2_pb2.Encoding:
        message = AnyMessage(type_url=f"/lance.encodings.{name}", value=data).SerializeToString()
        if not self.indirect:
            return file2_pb2.Encoding(direct=file2_pb2.DirectEncoding(encoding=message))
        position, size = self._append(message)
        place = file2_pb2.DeferredEncoding(buffer_location=position, buffer_length=size)
        return file2_pb2.Encoding(indirect=place)

    def _column(self, column: HandColumn) -> file2_pb2.ColumnMetadata:
        message = file2_pb2.ColumnMetadata()
        if column.encoding is not None:
            data = wire.serialize_column_encoding(column.encoding)
            message.encoding.CopyFrom(self._encoding("ColumnEncoding", data))
        for place in map(self._append, column.buffers):
            message.buffer_offsets.append(place[0])
            message.buffer_sizes.append(place[1])
        for page in column.pages:
            self._page(message.pages.add(), page)
        return message

    def _page(self, message: file2_pb2.ColumnMetadata.Page, page: HandPage) -> None:
        message.length = page.rows
        for place in map(self._append, page.buffers):
            message.buffer_offsets.append(place[0])
            message.buffer_sizes.append(place[1])
        if page.encoding is not None:
            data = wire.serialize_array_encoding(page.encoding)
            message.encoding.CopyFrom(self._encoding("ArrayEncoding", data))

    def open(self) -> DataFile:
        return open_bytes(bytes(self.data))


def open_bytes(data: bytes) -> DataFile:
    return open_counted(data)[0]


def open_counted(data: bytes) -> tuple[DataFile, CountingStore]:
    store = CountingStore(MemoryStore("handmade"))
    store.put("data/x.lance", data)
    return open_container_file(store.open("data/x.lance")), store
