"""A zone map: the least and the greatest value of every so many rows of a column, and the NULLs.

::

    rows_per_zone = 3     values      5 4 NULL | 7 7 7 | 9

                          min         4   7   9
                          max         5   7   9
                          null_count  1   0   0

As bytes it is a small data file of version 2.0 by itself, of three columns, a row for each zone.  It
has no global buffers, so neither schema nor number of rows; both follow from the column.  It stands
in a buffer of the column, whose encoding (`ZoneIndex`) says in which.

Source: seed 004 (ZoneIndex); rust/lance-encoding-datafusion/src/zone.rs of release 0.19.2, where
writer and reader of zone maps were written, but no release connected them (ledger F-205).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import ColumnIndex
from pennon.encoding.rows import Rows
from pennon.encoding.search_cache import SearchCache
from pennon.encoding.v2_0.choose import encode_page
from pennon.encoding.v2_0.encodings import Values
from pennon.errors import FormatError
from pennon.file.container.column_encoding import wrap_column_encoding
from pennon.file.container.column_wire import page_message, serialize_column
from pennon.file.container.file import DataFile
from pennon.file.container.footer import (
    FOOTER_BYTES,
    parse_footer,
    parse_table,
    serialize_footer,
    serialize_table,
)
from pennon.file.container.tail import Tail
from pennon.file.container.wire import serialize_file_descriptor
from pennon.file.v2_0.page_encoding import serialize_page_encoding
from pennon.file.v2_0.reader import COLUMNS
from pennon.io.mapped import MappedReader
from pennon.io.memory import MemoryStore
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V2_0

ALIGNMENT: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class ZoneMap:
    """Bounds of zones; where all values of one are NULL, so are its bounds."""

    low: pa.Array[Any]
    high: pa.Array[Any]
    null_counts: pa.Array[Any]


def _schema(data_type: pa.DataType) -> pa.Schema:
    counts = pa.field("null_count", pa.uint32(), nullable=False)
    return pa.schema([pa.field("min", data_type), pa.field("max", data_type), counts])


def parse_zone_map(data: pa.Buffer, data_type: pa.DataType, zones: int) -> ZoneMap:
    """Return the zone map of a column of ``data_type`` that has so many zones.

    Raises FormatError if it is damaged, or has another number of zones.
    """
    source = MappedReader(MemoryStore(), "zone map", data)
    tail = Tail(0, data)
    footer = parse_footer(tail.last(FOOTER_BYTES), data.size)
    table = footer.column_table
    extents = parse_table(
        "column metadata", data.slice(table.position, table.size_bytes).to_pybytes(), data.size
    )
    if len(extents) != 3:
        message = f"a zone map of {len(extents)} columns, not least, greatest, and NULLs"
        raise FormatError(message)
    schema = schema_from_arrow(_schema(data_type))
    descriptor = serialize_file_descriptor(schema, zones)
    file = DataFile(source, footer, tail, extents, (), descriptor, COLUMNS, SearchCache())
    column_of = {field.id: ColumnIndex(at) for at, field in enumerate(schema.fields)}
    chunks = file.read_rows(schema.fields, column_of, Rows.between(0, zones))
    return ZoneMap(*(pa.concat_arrays(parts) for parts in chunks))


def serialize_zone_map(zones: ZoneMap) -> bytes:
    """Return a zone map as bytes."""
    data = bytearray()
    metadata = list(_columns([zones.low, zones.high, zones.null_counts], data))
    first = len(data)
    extents = [_append(data, column) for column in metadata]
    column_table = _append(data, serialize_table(extents))
    data += serialize_footer(first, column_table, ByteRange(len(data), 0), V2_0)
    return bytes(data)


def _columns(arrays: list[pa.Array[Any]], data: bytearray) -> Iterator[bytes]:
    """Put the pages of columns, one each, behind ``data``, and yield the columns' metadata."""
    for array in arrays:
        page = encode_page(array, {})
        extents = []
        for buffer in page.buffers:
            extents.append(_append(data, buffer))
            data += bytes(-len(data) % ALIGNMENT)
        message = page_message(len(array), serialize_page_encoding(page.encoding), extents)
        yield serialize_column(wrap_column_encoding(Values()), [message])


def _append(data: bytearray, part: bytes | pa.Buffer) -> ByteRange:
    extent = ByteRange(len(data), part.size if isinstance(part, pa.Buffer) else len(part))
    data += memoryview(part)
    return extent
