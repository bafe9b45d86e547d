"""Zone maps of columns of version 2.0: written beside the values, and read as bounds.

Floating-point columns have no upper bounds when they are read.  NaN is above all numbers, and a zone
map does not say whether its writer took that into account (this one does).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.byte_ranges import ByteRange, Int64Array
from pennon.core.units import FieldId
from pennon.encoding.read_protocol import Steps, together
from pennon.encoding.v2_0.encodings import BufferRef, ColumnEncoding, Values, ZoneIndex
from pennon.errors import ArgumentError, Breadcrumb, FormatError, LanceError
from pennon.file.container.arrays import check_array
from pennon.file.container.column_encoding import column_encoding_or_values
from pennon.file.container.column_metadata import Column
from pennon.file.container.column_writer import ColumnWriter, PageWork
from pennon.file.container.field_bounds import FieldBounds
from pennon.file.container.generation import FileSource
from pennon.file.container.node import encoding_bytes
from pennon.file.v2_0.column_writers import ValueColumn
from pennon.file.v2_0.zone_map import ZoneMap, parse_zone_map, serialize_zone_map
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field

MOST_ZONES: Final = 1 << 20
"""Zone maps of more zones are left alone: to judge them takes longer than they save."""
MOST_ROWS_PER_ZONE: Final = (1 << 32) - 1


def has_zones(of: Field) -> bool:
    """Tell whether a column can have a zone map: its values have an order, and are no items."""
    kind = field_to_arrow(of).type
    if isinstance(kind, pa.BaseExtensionType) or of.logical_type == "json":
        return False
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    is_text = kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    return is_number or is_text or pa.types.is_temporal(kind) or pa.types.is_boolean(kind)


# --- reading --------------------------------------------------------------------------------------


def read_bounds(
    file: FileSource, fields: Sequence[Field], column_of: Mapping[FieldId, int]
) -> Steps[list[FieldBounds | None]]:
    """Return the steps that read the bounds of fields, None for those that have none.

    Raises FormatError for a zone map that is damaged.
    """
    return together([_read(file, of, column_of.get(of.id, -1)) for of in fields])


def _read(file: FileSource, of: Field, index: int) -> Steps[FieldBounds | None]:
    if index < 0 or not has_zones(of):
        return None
    (column,) = yield from file.read_columns([index])
    encoding = column_encoding_or_values((yield from encoding_bytes(column.encoding)))
    if not isinstance(encoding, ZoneIndex):
        return None
    try:
        return (yield from _read_zones(file, of, column, encoding))
    except LanceError as error:
        place = Breadcrumb(file=file.source.path, column=of.name)
        raise error.located(place) from error.__cause__


def _read_zones(
    file: FileSource, of: Field, column: Column, index: ZoneIndex
) -> Steps[FieldBounds | None]:
    if not index.rows_per_zone or column.rows != file.num_rows:
        message = f"zones of {index.rows_per_zone} rows, {column.rows} of {file.num_rows} rows"
        raise FormatError(message)
    zones = -(-column.rows // index.rows_per_zone)
    if not 0 < zones <= MOST_ZONES:
        return None
    (data,) = yield [_place(file, column, index.zone_map)]
    try:
        found = parse_zone_map(data, field_to_arrow(of).type, zones)
    except LanceError as error:
        message = f"zone map: {error}"
        raise FormatError(message) from error
    borders = np.append(np.arange(zones, dtype=np.int64) * index.rows_per_zone, column.rows)
    return _bounds(borders, found)


def _place(file: FileSource, column: Column, ref: BufferRef) -> ByteRange:
    places = {"column": column.buffers, "file": file.global_buffers}.get(ref.place, ())
    if ref.index >= len(places):
        message = f"the zone map is buffer {ref.index} of the {ref.place}, which has {len(places)}"
        raise FormatError(message)
    return places[ref.index]


def _bounds(borders: Int64Array, found: ZoneMap) -> FieldBounds:
    if not pa.types.is_floating(found.low.type):
        return FieldBounds(borders, found.low, found.high, found.null_counts)
    is_number = pc.invert(pc.is_nan(found.low))
    low = pc.if_else(is_number, found.low, pa.scalar(None, found.low.type))
    return FieldBounds(borders, low, None, found.null_counts)


# --- writing --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Zones:
    """Bounds of a column that is being written, zone after zone."""

    data_type: pa.DataType
    rows: int
    """Rows of a zone."""
    _low: list[pa.Scalar[Any]] = field(default_factory=list)
    _high: list[pa.Scalar[Any]] = field(default_factory=list)
    _null_counts: list[int] = field(default_factory=list)
    _held: int = 0
    """Rows of the last zone so far; 0 if the next one opens a new zone."""

    def add(self, array: pa.Array[Any]) -> None:
        """Take rows that follow those before."""
        start = 0
        while start < len(array):
            count = min(len(array) - start, self.rows - self._held)
            self._take(array.slice(start, count))
            self._held = (self._held + count) % self.rows
            start += count

    def _take(self, part: pa.Array[Any]) -> None:
        """Take rows of one zone."""
        low, high = _extremes(part)
        if not self._held:
            self._low.append(low)
            self._high.append(high)
            self._null_counts.append(part.null_count)
            return
        self._low[-1] = _extremes(pa.array([self._low[-1], low], self.data_type))[0]
        self._high[-1] = _extremes(pa.array([self._high[-1], high], self.data_type))[1]
        self._null_counts[-1] += part.null_count

    def zone_map(self) -> ZoneMap:
        """Return what was found."""
        low = pa.array(self._low, self.data_type)
        high = pa.array(self._high, self.data_type)
        return ZoneMap(low, high, pa.array(self._null_counts, pa.uint32()))


def _extremes(values: pa.Array[Any]) -> tuple[pa.Scalar[Any], pa.Scalar[Any]]:
    """Return the least and the greatest value; NaN is above all numbers."""
    wide = values
    if pa.types.is_float16(values.type):  # Arrow compares neither these nor durations
        wide = values.cast(pa.float32())
    elif pa.types.is_duration(values.type):
        wide = values.view(pa.int64())
    found = pc.min_max(wide)
    low, high = found["min"], found["max"]
    if pa.types.is_floating(wide.type) and pc.any(pc.is_nan(wide)).as_py():
        high = pa.scalar(float("nan"), wide.type)
    return low.cast(values.type), high.cast(values.type)


@dataclass(slots=True)
class ZonedColumn(ColumnWriter):
    """A column of values with a zone map beside it."""

    column: int
    values: ValueColumn
    zones: Zones
    encoding: ColumnEncoding

    @classmethod
    def of(cls, values: ValueColumn, rows_per_zone: int) -> ZonedColumn:
        """Put a zone map beside a column."""
        zones = Zones(field_to_arrow(values.field).type, rows_per_zone)
        encoding = ZoneIndex(rows_per_zone, BufferRef(0, "column"), Values())
        return cls(values.column, values, zones, encoding)

    def buffers(self) -> list[pa.Buffer]:
        """Return the zone map, the column's one buffer."""
        return [pa.py_buffer(serialize_zone_map(self.zones.zone_map()))]

    def add(self, array: pa.Array[Any]) -> Iterator[PageWork]:
        """See `FieldWriter.add`."""
        array = check_array(array, self.values.field, self.values.path)
        self.zones.add(array)
        return self.values.gather(array)

    def flush(self) -> Iterator[PageWork]:
        """See `FieldWriter.flush`."""
        return self.values.flush()

    def own(self) -> None:
        """See `FieldWriter.own`."""
        self.values.own()


def check_rows_per_zone(rows: int) -> None:
    """Raise ArgumentError unless a zone can have so many rows."""
    if not 0 < rows <= MOST_ROWS_PER_ZONE:
        message = f"zones have 1 to {MOST_ROWS_PER_ZONE} rows, not {rows}"
        raise ArgumentError(message)
