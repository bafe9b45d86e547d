"""The read plan of a field of version 0.1, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pennon.core.units import FieldId
from pennon.encoding.coalesce import describe_rows
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.file.v0_1.file import RowGroupFile
from pennon.file.v0_1.nodes import LONGEST_HULL
from pennon.schema.field import Field


def describe(
    file: RowGroupFile,
    field: Field,
    column_of: Mapping[FieldId, int],  # noqa: ARG001 - as in other versions
    rows: Rows,
) -> Steps[list[str]]:
    """Return the steps of `pennon.file.open.describe_read`; there is nothing to be read for it."""
    yield from ()
    total = file.metadata.num_groups
    touched = len(list(rows.split(file.metadata.borders)))
    pages = f"{touched} of {total} row groups" if total > 1 else "1 row group"
    if field.children and rows.count:
        how = describe_rows(rows.count, pages, LONGEST_HULL)
    else:
        how = f"just the rows, of all row groups at once ({pages}): values that no list holds"
    return [
        f"{path}: " + ("the items of these lists" if is_item else how)
        for path, is_item in _places(field, field.name)
    ]


def _places(field: Field, path: str, *, is_item: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield a field, and those below it, that have pages, and which are within lists."""
    is_struct = field.logical_type == "struct"
    if not is_struct:
        yield path, is_item
    for child in field.children:
        yield from _places(child, f"{path}.{child.name}", is_item=is_item or not is_struct)
