"""The parts behind the pages of a file of version 0.1, as bytes.

Source: `pennon.file.v0_1.metadata` draws it; the order is pylance's.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import FieldId
from pennon.encoding.v0_1.parts import lay_out, write_parts
from pennon.encoding.v0_1.values import DictionaryPlace, encode_values
from pennon.errors import UnsupportedError
from pennon.file.v0_1.pages import Entry, Pages
from pennon.file.v0_1.wire import (
    Metadata,
    StatisticsPlace,
    place_statistics,
    serialize_file_manifest,
    serialize_file_metadata,
)
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.field import Field, Schema

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
    yield end.took(table.serialize(first_id))
    place = None
    if statistics is not None:
        place = yield from _statistics(end, statistics)
    places: dict[FieldId, DictionaryPlace] = {}
    for each in schema.walk():
        values = dictionaries.get(each.id)
        if values is not None:
            data, start = encode_values(values, end.position)
            places[each.id] = DictionaryPlace(start, len(values))
            yield end.took(data)
    metadata = Metadata(borders, position, end.position, place)
    yield end.took(_with_length(serialize_file_manifest(schema, places)))
    footer = _FOOTER.pack(end.position, *FILE_NUMBERS, b"LANC")
    yield end.took(_with_length(serialize_file_metadata(metadata)))
    yield footer


@dataclass(slots=True)
class _End:
    """The position up to which the file is written."""

    position: int

    def took(self, data: bytes | pa.Buffer) -> bytes | pa.Buffer:
        """Count bytes that are written next."""
        self.position += data.size if isinstance(data, pa.Buffer) else len(data)
        return data


def _statistics(
    end: _End, batch: pa.RecordBatch
) -> Generator[bytes | pa.Buffer, None, StatisticsPlace]:
    """Yield the pages of the statistics and their page table, and return where they are."""
    schema = schema_from_arrow(batch.schema)
    pages = Pages(_no_dictionaries, lambda *_: None)
    borders = np.array([0, batch.num_rows], np.int64)
    for top, array in zip(schema.fields, batch.columns, strict=True):
        pages.add(array, top, borders, top.name)
    positions = lay_out(pages.parts, end.position)
    table = PageTable()
    table.add(pages.entries, positions, 1)
    yield end.took(write_parts(pages.parts, positions))
    place = place_statistics(schema, end.position)
    yield end.took(table.serialize(0))
    return place


def _no_dictionaries(of: Field, _array: pa.DictionaryArray, _path: str) -> pa.Array:
    message = f"statistics of the dictionary {of.name!r}"
    raise UnsupportedError(message)


def _with_length(message: bytes) -> bytes:
    return _LENGTH.pack(len(message)) + message
