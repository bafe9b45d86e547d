"""Who owns which bytes of a data file: a list of ranges that tile it from 0 to its end.

A small file of one column, as `inspect_file` lists it::

    0..12       page buffer       a, page 0, buffer 0: values (NoNulls(Flat(32)), 3 rows)
    12..64      padding
    64..148     global buffer     0: schema and number of rows
    ...
    204..220    column table      1 entry
    220..236    buffer table      1 entry
    236..276    footer            version 2.0

What no part of the file claims is padding if it is short and of one byte value, the values of blob
columns if the file has such columns, and unclaimed otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Final

import pyarrow as pa

from pennon.encoding.v2_0.encodings import ArrayEncoding, Blob, BufferRef, ColumnEncoding, ZoneIndex
from pennon.file.footer import FOOTER_BYTES
from pennon.file.reader import DataFile
from pennon.file.wire import (
    Column,
    Direct,
    EncodingBytes,
    Indirect,
    column_encoding_or_values,
    parse_array_encoding,
)
from pennon.io.store import ObjectReader
from pennon.ranges import ByteRequest, Extent
from pennon.schema.field import Field
from pennon.units import FieldId

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


def inspect_file(source: ObjectReader) -> list[NamedRange]:
    """Return every byte range of a data file, in order.

    The ranges of a sound file tile it: each starts where the one before it ended.  A range that
    overlaps another is listed all the same.

    Raises FormatError, UnsupportedError as `DataFile.open` does.
    """
    file = DataFile.open(source)
    claimed = sorted(_claims(file))
    gaps = list(_gaps(claimed, source.size_bytes))
    return sorted(claimed + _name_gaps(file, gaps))


def describe(encoding: object) -> str:
    """Return an encoding on one line, e.g. ``SomeNulls(Flat(1), Flat(64))``."""
    if not is_dataclass(encoding):
        return "..." if isinstance(encoding, bytes) and len(encoding) > 8 else repr(encoding)
    values = [getattr(encoding, each.name) for each in fields(encoding)]
    parts: list[str] = []
    for value in values:
        if isinstance(value, tuple):
            parts += [describe(each) for each in value]
        elif value is not None and not isinstance(value, BufferRef):
            parts.append(describe(value))
    name = type(encoding).__name__
    return f"{name}({', '.join(parts)})" if parts else name


def buffer_roles(encoding: object, path: str = "") -> Iterator[tuple[BufferRef, str]]:
    """Yield the buffers that an encoding names, each with its way through the encoding.

    The validity bitmap of a column with NULLs is ``validity``, the bytes of its strings
    ``values.bytes``.
    """
    if isinstance(encoding, BufferRef):
        yield encoding, path or "values"
    elif isinstance(encoding, tuple):
        for number, part in enumerate(encoding):
            yield from buffer_roles(part, f"{path}[{number}]")
    elif is_dataclass(encoding):
        for each in fields(encoding):
            step = "" if each.name in ("buffer", "inner") else each.name
            yield from buffer_roles(
                getattr(encoding, each.name), ".".join(filter(None, (path, step)))
            )


# --- what the file claims -------------------------------------------------------------------------


def _claims(file: DataFile) -> Iterator[NamedRange]:
    names = _column_names(file)
    for column, extent in zip(file.columns(), file.column_extents, strict=True):
        name = names.get(column.index, f"#{column.index}")
        yield _named(extent, "column metadata", f"{name}: {_count(len(column.pages), 'page')}")
        yield from _column_claims(file, column, name)
        yield from _page_claims(file, column, name)
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


def _column_claims(file: DataFile, column: Column, name: str) -> Iterator[NamedRange]:
    roles = dict(buffer_roles(_column_encoding(file, column)))
    for number, extent in enumerate(column.buffers):
        role = roles.get(BufferRef(number, "column"), "not named by the column's encoding")
        yield _named(extent, "column buffer", f"{name}, buffer {number}: {role}")
    if isinstance(column.encoding, Indirect):
        yield _named(column.encoding.extent, "encoding", name)


def _page_claims(file: DataFile, column: Column, name: str) -> Iterator[NamedRange]:
    for number, page in enumerate(column.pages):
        encoding = _array_encoding(file, page.encoding)
        roles = dict(buffer_roles(encoding))
        summary = f"{'no encoding' if encoding is None else describe(encoding)}, {_count(page.rows, 'row')}"
        for index, extent in enumerate(page.buffers):
            role = roles.get(BufferRef(index), "not named by the page's encoding")
            detail = f"{name}, page {number}, buffer {index}: {role} ({summary})"
            yield _named(extent, "page buffer", detail)
        if isinstance(page.encoding, Indirect):
            yield _named(page.encoding.extent, "encoding", f"{name}, page {number}")


def _column_names(file: DataFile) -> dict[int, str]:
    """Return the dotted name of the field that each column belongs to."""
    names = {key: name for top in file.schema.fields for key, name in _field_names(top, "")}
    return {column: names[key] for key, column in file.column_of.items() if key in names}


def _field_names(field: Field, above: str) -> Iterator[tuple[FieldId, str]]:
    name = f"{above}.{field.name}" if above else field.name
    yield field.id, name
    for child in field.children:
        yield from _field_names(child, name)


def _encoding_bytes(file: DataFile, encoding: EncodingBytes) -> bytes | None:
    if isinstance(encoding, Direct):
        return encoding.data
    if isinstance(encoding, Indirect):
        data: bytes = file.source.read([encoding.extent])[0].to_pybytes()
        return data
    return None


def _array_encoding(file: DataFile, encoding: EncodingBytes) -> ArrayEncoding | None:
    data = _encoding_bytes(file, encoding)
    return None if data is None else parse_array_encoding(data)


def _column_encoding(file: DataFile, column: Column) -> ColumnEncoding:
    return column_encoding_or_values(_encoding_bytes(file, column.encoding))


def _named(extent: Extent, kind: str, detail: str) -> NamedRange:
    return NamedRange(extent.position, extent.end, kind, detail)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# --- what it does not claim -----------------------------------------------------------------------


def _gaps(claimed: list[NamedRange], size_bytes: int) -> Iterator[Extent]:
    """Yield the bytes between sorted ranges."""
    done = 0
    for each in claimed:
        if each.start > done:
            yield Extent(done, each.start - done)
        done = max(done, each.end)
    if done < size_bytes:
        yield Extent(done, size_bytes - done)


def _name_gaps(file: DataFile, gaps: list[Extent]) -> list[NamedRange]:
    short: list[ByteRequest] = [gap for gap in gaps if gap.size_bytes <= MAX_PADDING]
    contents = iter(file.source.read(short) if short else [])
    other = "blob values" if _has_blobs(file) else "unclaimed"
    named = []
    for gap in gaps:
        is_padding = gap.size_bytes <= MAX_PADDING and _is_uniform(next(contents))
        named.append(_named(gap, "padding" if is_padding else other, ""))
    return named


def _is_uniform(data: pa.Buffer) -> bool:
    return len(set(data.to_pybytes())) == 1


def _has_blobs(file: DataFile) -> bool:
    return any(_is_blob(_column_encoding(file, column)) for column in file.columns())


def _is_blob(encoding: ColumnEncoding) -> bool:
    if isinstance(encoding, ZoneIndex):
        return _is_blob(encoding.inner)
    return isinstance(encoding, Blob)
