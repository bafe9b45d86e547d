"""The read plan of a field of version 2.0, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pennon.core.units import FieldId
from pennon.encoding.coalesce import describe_rows
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.file.container.column_metadata import Column
from pennon.file.container.generation import FileSource
from pennon.file.v2_0.layout import is_packed
from pennon.schema.field import Field


def describe(
    file: FileSource, field: Field, column_of: Mapping[FieldId, int], rows: Rows
) -> Steps[list[str]]:
    """Return the steps of `pennon.file.open.describe_read`."""
    places = [place for place in _places(field, field.name) if column_of.get(place[1], -1) >= 0]
    columns = yield from file.read_columns([column_of[field_id] for _, field_id, _ in places])
    return [
        f"{path}: " + ("the items of these lists" if is_item else _describe(column, rows))
        for (path, _, is_item), column in zip(places, columns, strict=True)
    ]


def _describe(column: Column, rows: Rows) -> str:
    touched, total = len(list(rows.split(column.first_rows))), len(column.pages)
    return describe_rows(rows.count, f"{touched} of {total} pages" if total > 1 else "1 page")


def _places(
    field: Field, path: str, *, is_item: bool = False
) -> Iterator[tuple[str, FieldId, bool]]:
    """Yield a field, and those below it, that have pages of their own, and which are within lists."""
    is_struct = field.logical_type == "struct" and not is_packed(field)
    if not is_struct:
        yield path, field.id, is_item
    for child in field.children:
        yield from _places(child, f"{path}.{child.name}", is_item=is_item or not is_struct)
