"""From a schema to its column writers, and which column each field got."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import pyarrow as pa

from pennon.file.container.column_writer import ColumnTree, ColumnWriter
from pennon.file.container.write_limits import PageLimits
from pennon.file.v2_0.column_writers import BlobColumn, ListColumn, StructColumn, ValueColumn
from pennon.file.v2_0.layout import fields_with_columns
from pennon.file.v2_0.zones import ZonedColumn, check_rows_per_zone, has_zones
from pennon.schema.check import is_blob, is_packed
from pennon.schema.field import Field, Schema
from pennon.schema.version import FileVersion


def plan_columns(
    schema: Schema,
    limits: PageLimits,
    write_value: Callable[[pa.Buffer], int],
    _version: FileVersion,
) -> ColumnTree:
    """Give every field its column, in the order of the fields, depth first.

    ``write_value`` puts a blob into the file and returns its position.  Raises ArgumentError for zones
    of no rows.
    """
    if limits.rows_per_zone is not None:
        check_rows_per_zone(limits.rows_per_zone)
    planner = _Planner(limits, write_value, count())
    writers = [planner.plan(top, top.name) for top in schema.fields]
    stored = [field for top in schema.fields for field in fields_with_columns(top)]
    return ColumnTree(writers, tuple(field.id for field in stored), tuple(range(len(stored))))


@dataclass(slots=True)
class _Planner:
    limits: PageLimits
    write_value: Callable[[pa.Buffer], int]
    numbers: Iterator[int]

    def plan(self, field: Field, path: str, *, in_list: bool = False) -> ColumnWriter:
        """Return the writer of a field and of all below it; numbers go out depth first."""
        column = next(self.numbers)
        if is_blob(field):
            descriptions = ValueColumn(column, self.limits, field, path)
            return BlobColumn(column, field, path, descriptions, self.write_value)
        if field.logical_type == "struct" and not is_packed(field):
            children = [
                self.plan(below, f"{path}.{below.name}", in_list=in_list)
                for below in field.children
            ]
            return StructColumn(column, field, path, children)
        if field.logical_type.split(".")[0] in ("list", "large_list"):
            (item,) = field.children
            items = self.plan(item, f"{path}.{item.name}", in_list=True)
            return ListColumn(column, field, path, self.limits, items)
        values = ValueColumn(column, self.limits, field, path)
        if self.limits.rows_per_zone is None or in_list or not has_zones(field):
            return values
        return ZonedColumn.of(values, self.limits.rows_per_zone)
