"""A map of the bytes of a file of version 0.1; see `pennon.file.inspect`."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import numpy as np

from pennon.core.byte_ranges import ByteRange
from pennon.encoding.read_protocol import run
from pennon.encoding.v0_1.pages import Pages
from pennon.encoding.v0_1.values import BINARY
from pennon.errors import LanceError
from pennon.file.container.page_report import FileReport, PageReport, Part
from pennon.file.v0_1.file import RowGroupFile
from pennon.file.v0_1.metadata import ENTRY_BYTES, FOOTER_BYTES, parse_pages
from pennon.file.v0_1.nodes import PlainNode
from pennon.file.v0_1.wire import StatisticsPlace
from pennon.schema.arrow import storage_field
from pennon.schema.field import Field, Schema
from pennon.schema.project import walk_paths
from pennon.schema.types import arrow_type

_POSITION: Final = struct.Struct("<q")
_LENGTH: Final = struct.Struct("<I")
_LISTS: Final = frozenset(("list", "list.struct", "large_list", "large_list.struct"))


def report_file(file: RowGroupFile) -> FileReport:
    """Return the pages of a file and all its other parts.  Raises FormatError."""
    return FileReport(list(_page_reports(file)), list(_other_parts(file)))


def _page_reports(file: RowGroupFile) -> Iterator[PageReport]:
    """Yield what is known of each page of the fields, field after field; damage does not raise."""
    for path, field in _paths(file.schema):
        (pages,) = run(file.read_pages([file.column_of[field.id]]), file.source.read)
        for number in range(len(pages.positions)):
            yield _report(file, path, field, pages, number)


def _other_parts(file: RowGroupFile) -> Iterator[Part]:
    """Yield the parts of a file that are no pages of its fields.  Raises FormatError."""
    metadata, size = file.metadata, file.source.size_bytes
    table = file.num_columns * metadata.num_groups * ENTRY_BYTES
    yield Part("page table", ByteRange(metadata.page_table, table), f"{file.num_columns} columns")
    if metadata.statistics is not None:
        yield from _statistics(file, metadata.statistics)
    for field in file.schema.walk():
        place = file.dictionaries.get(field.id)
        if place is not None:
            values = Pages(np.array([place.position]), np.array([place.length]), size)
            kind = str(arrow_type(field.logical_type).value_type)
            for part in _parts(file, Field(field.name, field.id, kind), values, 0):
                yield Part("dictionary", part.extent, f"{field.name}: {part.kind}")
    yield _message(file, "manifest", metadata.manifest)
    (position,) = _POSITION.unpack(file.tail.last(FOOTER_BYTES)[:8])
    yield _message(file, "metadata", position)
    yield Part(
        "footer", ByteRange(size - FOOTER_BYTES, FOOTER_BYTES), f"version 0.1 {file.numbers}"
    )


def _statistics(file: RowGroupFile, statistics: StatisticsPlace) -> Iterator[Part]:
    table, size = statistics.page_table, file.source.size_bytes
    schema = statistics.schema
    rows = max((each.id for each in schema.walk()), default=-1) + 1
    for path, field in _paths(schema):
        (entry,) = run(
            file.tail.read_extents([ByteRange(table + field.id * ENTRY_BYTES, ENTRY_BYTES)]),
            file.source.read,
        )
        pages = parse_pages(entry.to_pybytes(), size)
        for part in _parts(file, field, pages, 0):
            yield Part("statistics", part.extent, f"field {path}: {part.kind}")
    yield Part("statistics table", ByteRange(table, rows * ENTRY_BYTES), f"{rows} columns")


def _message(file: RowGroupFile, kind: str, position: int) -> Part:
    (data,) = run(file.tail.read_extents([ByteRange(position, _LENGTH.size)]), file.source.read)
    (size_bytes,) = _LENGTH.unpack(data.to_pybytes())
    return Part(kind, ByteRange(position, _LENGTH.size + size_bytes))


def _paths(schema: Schema) -> Iterator[tuple[str, Field]]:
    """Yield the fields that have pages, with their dotted names."""
    return ((path, field) for path, field in walk_paths(schema) if field.logical_type != "struct")


def _report(file: RowGroupFile, path: str, field: Field, pages: Pages, number: int) -> PageReport:
    rows = int(pages.lengths[number]) - (field.logical_type in _LISTS)
    try:
        parts = tuple(_parts(file, field, pages, number))
    except LanceError as error:
        return PageReport(path, number, rows, "unreadable", (("why", error.message),), (), ())
    kind = "offsets" if field.logical_type in _LISTS else parts[-1].kind if parts else "nothing"
    layout = {"positions": "binary", "nothing": "null"}.get(kind, kind)
    return PageReport(path, number, rows, layout, (), (), parts)


def _parts(file: RowGroupFile, field: Field, pages: Pages, number: int) -> Iterator[Part]:
    """Yield the parts of a page, in their order."""
    position, length = int(pages.positions[number]), int(pages.lengths[number])
    kind = field.logical_type
    if kind == "null":
        return
    if kind in _LISTS:
        width = 8 if kind.startswith("large") else 4
        yield Part("offsets", ByteRange(position, length * width))
        return
    stored = storage_field(field).type
    if stored in BINARY:
        (first,) = run(file.tail.read_extents([ByteRange(position, 8)]), file.source.read)
        (begin,) = _POSITION.unpack(first.to_pybytes())
        if 0 <= begin <= position:
            yield Part("bytes", ByteRange(begin, position - begin))
        yield Part("positions", ByteRange(position, (length + 1) * 8))
        return
    is_dictionary = kind.startswith("dict:")
    value = PlainNode.of(pages, stored.index_type if is_dictionary else stored, stored)
    size_bytes = (length * value.row_bits + 7) // 8
    yield Part("indices" if is_dictionary else "values", ByteRange(position, size_bytes))
