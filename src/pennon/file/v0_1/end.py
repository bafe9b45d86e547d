"""What stands behind the pages of a file of version 0.1, as bytes.

Source: `pennon.file.v0_1.metadata` draws it; the order and the manifest are the oracle's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
from google.protobuf.message import Message

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import FieldId
from pennon.encoding.v0_1.parts import lay_out, write_parts
from pennon.encoding.v0_1.values import encode_values
from pennon.errors import UnsupportedError
from pennon.file.v0_1.pages import Entry, Pages
from pennon.proto import file_pb2, table_pb2
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.field import Field, Schema
from pennon.schema.version import V0_1
from pennon.schema.wire import serialize_fields, serialize_metadata

FILE_NUMBERS: Final = (0, 2)

_FOOTER: Final = struct.Struct("<QHH4s")
_LENGTH: Final = struct.Struct("<I")


@dataclass(slots=True)
class PageTable:
    """Positions and lengths of all pages, by field id."""

    pages: dict[int, list[Int64Array]] = field(default_factory=dict)
    groups: int = 0

    def add(self, entries: Iterable[Entry], positions: Int64Array, groups: int) -> None:
        """Take the pages of some row groups; ``positions`` are those of their parts."""
        for entry in entries:
            places = np.stack([positions[entry.part], entry.lengths], axis=1)
            self.pages.setdefault(entry.field_id, []).append(places)
        self.groups += groups

    def serialize(self, first_id: int) -> bytes:
        """Return the table, whose first row is that of ``first_id``."""
        last_id = max(self.pages, default=first_id - 1)
        table = np.zeros((last_id + 1 - first_id, self.groups, 2), "<i8")
        for field_id, places in self.pages.items():
            table[field_id - first_id] = np.concatenate(places)
        return table.tobytes()


def serialize_end(
    position: int,
    schema: Schema,
    borders: Int64Array,
    table: PageTable,
    statistics: pa.RecordBatch | None,
    dictionaries: Mapping[FieldId, pa.Array],
) -> Iterator[bytes | pa.Buffer]:
    """Yield the parts behind the pages, which end at ``position``, in their order."""
    end = _End(position)
    first_id = min((each.id for each in schema.walk()), default=FieldId(0))
    metadata = file_pb2.Metadata(page_table_position=position)
    if len(borders) > 1:
        metadata.batch_offsets.extend(borders.tolist())
    yield end.took(table.serialize(first_id))
    if statistics is not None:
        yield from _statistics(end, statistics, metadata.statistics)
    fields = serialize_fields(schema)
    for message in fields:
        values = dictionaries.get(FieldId(message.id))
        if values is not None:
            data, message.dictionary.offset = encode_values(values, end.position)
            message.dictionary.length = len(values)
            yield end.took(data)
    metadata.manifest_position = end.position
    yield end.took(_message(_manifest(schema, fields)))
    footer = _FOOTER.pack(end.position, *FILE_NUMBERS, b"LANC")
    yield end.took(_message(metadata))
    yield footer


@dataclass(slots=True)
class _End:
    """How far the file is written."""

    position: int

    def took(self, data: bytes | pa.Buffer) -> bytes | pa.Buffer:
        """Count bytes that are written next."""
        self.position += data.size if isinstance(data, pa.Buffer) else len(data)
        return data


def _statistics(
    end: _End, batch: pa.RecordBatch, message: file_pb2.Metadata.StatisticsMetadata
) -> Iterator[bytes | pa.Buffer]:
    """Yield the pages of the statistics and their page table, and say where they are."""
    schema = schema_from_arrow(batch.schema)
    pages = Pages(_no_dictionaries, lambda *_: None)
    borders = np.array([0, batch.num_rows], np.int64)
    for top, array in zip(schema.fields, batch.columns, strict=True):
        pages.add(array, top, borders, top.name)
    positions = lay_out(pages.parts, end.position)
    table = PageTable()
    table.add(pages.entries, positions, 1)
    yield end.took(write_parts(pages.parts, positions))
    message.schema.extend(serialize_fields(schema))
    message.fields.extend(each.id for each in schema.walk())
    message.page_table_position = end.position
    yield end.took(table.serialize(0))


def _no_dictionaries(of: Field, _array: pa.DictionaryArray, _path: str) -> pa.Array:
    message = f"statistics of the dictionary {of.name!r}"
    raise UnsupportedError(message)


def _manifest(schema: Schema, fields: Sequence[file_pb2.Field]) -> table_pb2.Manifest:
    """Return the manifest that a data file holds of itself."""
    manifest = table_pb2.Manifest(fields=fields, version=1)
    for key, value in serialize_metadata(schema).items():
        manifest.schema_metadata[key] = value
    manifest.data_format.file_format = "lance"
    manifest.data_format.version = str(V0_1)
    return manifest


def _message(message: Message) -> bytes:
    data = message.SerializeToString(deterministic=True)
    return _LENGTH.pack(len(data)) + data
