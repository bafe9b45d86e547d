"""A map of a data file's bytes: ranges with their owners, which tile it from 0 to its end.

A small file of one column, as `inspect_file` lists it::

    0..6        chunk table       a, page 0 (mini-block, BitPacked(2 of 32, in line), 3 rows)
    6..64       padding
    64..200     chunks            a, page 0: values 132, headers and padding 4 (...)
    ...
    460..476    column table      1 entry
    476..492    buffer table      1 entry
    492..532    footer            version 2.1

What no part of the file claims is padding if it is short and of one byte value, the values of blob
columns where their descriptions say so (in files of 2.0: if there are such columns), and unclaimed
otherwise.

Damage behind the footer and its tables does not raise; what it hides is named as unreadable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId
from pennon.encoding.read_protocol import run
from pennon.encoding.v2_0.encodings import Blob, BufferRef, ColumnEncoding, ZoneIndex
from pennon.errors import LanceError
from pennon.file.container.column_encoding import column_encoding_or_values
from pennon.file.container.column_metadata import Column, Indirect
from pennon.file.container.file import DataFile
from pennon.file.container.footer import FOOTER_BYTES
from pennon.file.container.node import encoding_bytes
from pennon.file.container.opened_file import OpenedFile
from pennon.file.container.page_report import PageReport, Part, buffer_roles
from pennon.file.open import open_data_file, page_explainer, report_row_groups
from pennon.io.store import ObjectReader
from pennon.schema.field import Field

MAX_PADDING: Final = 4096
"""The largest alignment that a writer has reason to use (direct I/O)."""


@dataclass(frozen=True, slots=True, order=True)
class NamedRange:
    """Bytes ``start <= position < end`` of a file, what they are, and of what."""

    start: int
    end: int
    kind: str
    detail: str = ""

    @property
    def size_bytes(self) -> int:
        """Return the number of bytes."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Inspection:
    """All pages of a file, column by column, and all of its bytes."""

    version: str
    rows: int
    pages: list[PageReport]
    ranges: list[NamedRange]


def inspect_file(source: ObjectReader) -> list[NamedRange]:
    """Return every byte range of a data file, in order; see `inspect_pages`."""
    return inspect_pages(source).ranges


def inspect_pages(source: ObjectReader, *, chunks: bool = True) -> Inspection:
    """Return every page and every byte range of a data file, in order.

    The ranges of a sound file tile it: each starts where the one before it ended.  A range that
    overlaps another is listed all the same.  ``chunks``: read the chunks of mini-block pages, too,
    to tell their bytes apart.

    Raises FormatError, UnsupportedError as `open_data_file` does.
    """
    file = open_data_file(source)
    if not isinstance(file, DataFile):
        return _inspect_groups(file)
    columns = [_InspectedColumn.of(file, index, name, chunks) for index, name in _columns(file)]
    claimed = sorted([*_file_claims(file), *(each for c in columns for each in c.claims())])
    gaps = list(_gaps(claimed, source.size_bytes))
    ranges = sorted(claimed + _name_gaps(file, gaps, [each for each in columns if each.is_blob]))
    pages = [page for column in columns for page in column.pages]
    return Inspection(str(file.version), file.num_rows, pages, ranges)


def _inspect_groups(file: OpenedFile) -> Inspection:
    """Return the pages and ranges of a file of version 0.1."""
    report = report_row_groups(file)
    claimed = [_named(part.extent, part.kind, part.detail) for part in report.parts]
    for page in report.pages:
        of = f"{page.column}, row group {page.number}"
        claimed += [_named(part.extent, part.kind, of) for part in page.parts]
    claimed = sorted(each for each in claimed if each.size_bytes)
    gaps = [_named(gap, "unclaimed", "") for gap in _gaps(claimed, file.source.size_bytes)]
    return Inspection(str(file.version), file.num_rows, report.pages, sorted(claimed + gaps))


def explain_pages(file: DataFile, index: int, name: str, most: int) -> list[PageReport]:
    """Return reports about the first pages of one column, at most ``most``; chunks are not read.

    ``name`` is the name of the column in the reports.  An unreadable page has a report that says why.
    Raises FormatError if the metadata of the column is damaged.
    """
    (column,) = run(file.read_columns([index]), file.source.read)
    return [
        _explain_page(file, column, name, number, chunks=False)
        for number in range(min(len(column.pages), most))
    ]


def explain_row_groups(file: OpenedFile) -> list[PageReport]:
    """Return reports about all pages of a file of version 0.1."""
    return report_row_groups(file).pages


# --- what the file claims -------------------------------------------------------------------------


def _file_claims(file: DataFile) -> Iterator[NamedRange]:
    for number, extent in enumerate(file.global_buffers):
        detail = f"{number}: schema and number of rows" if number == 0 else str(number)
        yield _named(extent, "global buffer", detail)
    footer = file.footer
    yield _named(footer.column_table, "column table", _count(footer.num_columns, "column"))
    yield _named(footer.buffer_table, "buffer table", _count(footer.num_global_buffers, "buffer"))
    end = file.source.size_bytes
    major, minor = footer.numbers
    yield NamedRange(
        end - FOOTER_BYTES, end, "footer", f"version {footer.version} ({major}, {minor})"
    )


@dataclass(frozen=True, slots=True)
class _InspectedColumn:
    """A column; without ``column`` its metadata is damaged, and ``damage`` says how."""

    name: str
    extent: ByteRange
    column: Column | None
    damage: str
    encoding: ColumnEncoding | None
    pages: list[PageReport]

    @classmethod
    def of(cls, file: DataFile, index: int, name: str, chunks: bool) -> _InspectedColumn:
        """Read the metadata of a column, and look at its pages."""
        extent = file.column_extents[index]
        encoding, damage = None, ""
        try:
            (column,) = run(file.read_columns([index]), file.source.read)
        except LanceError as error:
            return cls(name, extent, None, error.message, None, [])
        try:
            data = run(encoding_bytes(column.encoding), file.source.read)
            encoding = column_encoding_or_values(data)
        except LanceError as error:
            damage = error.message
        pages = [
            _explain_page(file, column, name, number, chunks=chunks)
            for number in range(len(column.pages))
        ]
        return cls(name, extent, column, damage, encoding, pages)

    @property
    def is_blob(self) -> bool:
        """Tell whether the values of the column lie outside its pages."""
        return _is_blob(self.encoding) or any(page.is_blob for page in self.pages)

    def has_blobs_in(self, gap: ByteRange) -> bool:
        """Tell whether values lie, or may lie, in a part of the file that no page claims."""
        found = [page.blobs for page in self.pages if page.is_blob]
        if not found or None in found:
            return self.is_blob
        stretches = (stretch for blobs in found for stretch in blobs or ())
        return any(each.position < gap.end and gap.position < each.end for each in stretches)

    def claims(self) -> Iterator[NamedRange]:
        """Yield the ranges that belong to the column."""
        if self.column is None:
            yield _named(self.extent, "column metadata", f"{self.name}: unreadable: {self.damage}")
            return
        pages = _count(len(self.pages), "page") + f", encoding unreadable: {self.damage}" * bool(
            self.damage
        )
        yield _named(self.extent, "column metadata", f"{self.name}: {pages}")
        roles = dict(buffer_roles(self.encoding))
        for number, extent in enumerate(self.column.buffers):
            role = roles.get(BufferRef(number, "column"), "not named by the column's encoding")
            yield _named(extent, "column buffer", f"{self.name}, buffer {number}: {role}")
        if isinstance(self.column.encoding, Indirect):
            yield _named(self.column.encoding.extent, "encoding", self.name)
        for report, page in zip(self.pages, self.column.pages, strict=True):
            yield from _page_claims(report)
            if isinstance(page.encoding, Indirect):
                place = f"{self.name}, page {report.number}"
                yield _named(page.encoding.extent, "encoding", place)


def _explain_page(
    file: DataFile, column: Column, name: str, number: int, *, chunks: bool
) -> PageReport:
    """Return what is known of a page.  Damage does not raise: it is part of the report."""
    page = column.pages[number]
    try:
        data = run(encoding_bytes(page.encoding), file.source.read)
        if data is None:
            return _unreadable(column, name, number, "no encoding")
        explain = page_explainer(file.version)
        return explain(file.source, column, name, number, data, chunks)
    except LanceError as error:
        return _unreadable(column, name, number, error.message)


def _unreadable(column: Column, name: str, number: int, why: str) -> PageReport:
    page = column.pages[number]
    parts = tuple(Part("page buffer", extent, "of an unreadable page") for extent in page.buffers)
    return PageReport(name, number, page.rows, "", (("unreadable:", why),), (), parts)


def _page_claims(report: PageReport) -> Iterator[NamedRange]:
    for index, part in enumerate(report.parts):
        place = f"{report.column}, page {report.number}, buffer {index}"
        detail = f"{place}: {part.detail}" if part.detail else place
        yield _named(part.extent, part.kind, f"{detail} ({report.summary})")


def _columns(file: DataFile) -> Iterator[tuple[int, str]]:
    """Yield each column with the dotted name of its field, or its number if there is none."""
    names: dict[int, str] = {}
    try:
        known = {key: name for top in file.schema.fields for key, name in _field_names(top, "")}
        names = {column: known[key] for key, column in file.column_of.items() if key in known}
    except LanceError:
        pass  # of a damaged schema
    for index in range(file.num_columns):
        yield index, names.get(index, f"#{index}")


def _field_names(field: Field, above: str) -> Iterator[tuple[FieldId, str]]:
    name = f"{above}.{field.name}" if above else field.name
    yield field.id, name
    for child in field.children:
        yield from _field_names(child, name)


def _named(extent: ByteRange, kind: str, detail: str) -> NamedRange:
    return NamedRange(extent.position, extent.end, kind, detail)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# --- what it does not claim -----------------------------------------------------------------------


def _gaps(claimed: list[NamedRange], size_bytes: int) -> Iterator[ByteRange]:
    """Yield the bytes between sorted ranges."""
    done = 0
    for each in claimed:
        if each.start > done:
            yield ByteRange(done, each.start - done)
        done = max(done, each.end)
    if done < size_bytes:
        yield ByteRange(done, size_bytes - done)


def _name_gaps(
    file: DataFile, gaps: list[ByteRange], blobs: list[_InspectedColumn]
) -> list[NamedRange]:
    short: list[ByteRequest] = [gap for gap in gaps if gap.size_bytes <= MAX_PADDING]
    contents = iter(file.source.read(short) if short else [])
    named = []
    for gap in gaps:
        if gap.size_bytes <= MAX_PADDING and _is_uniform(next(contents)):
            named.append(_named(gap, "padding", ""))
        else:
            owners = [column.name for column in blobs if column.has_blobs_in(gap)]
            kind = "blob values" if owners else "unclaimed"
            named.append(_named(gap, kind, ", ".join(owners)))
    return named


def _is_uniform(data: pa.Buffer) -> bool:
    return len(set(data.to_pybytes())) == 1


def _is_blob(encoding: ColumnEncoding | None) -> bool:
    if isinstance(encoding, ZoneIndex):
        return _is_blob(encoding.inner)
    return isinstance(encoding, Blob)
