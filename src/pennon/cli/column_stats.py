"""``pennon stats``: bytes of each field, and NULLs, least and greatest values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click
import pyarrow as pa

from pennon.cli.arguments import as_json, at, parse_pairs, storage_option, uri
from pennon.cli.at import open_at
from pennon.cli.show import cell, print_table, say, say_json
from pennon.dataset.lance_dataset import LanceDataset
from pennon.display.cells import size
from pennon.display.plain import plain_values
from pennon.errors import ColumnTypeError
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field
from pennon.schema.project import walk_paths

_MEASURES: Final = ("null_count", "min", "max")


@click.command
@uri
@at
@click.option("--values", is_flag=True, help="Read the columns: NULLs, least and greatest values.")
@as_json
@storage_option
def stats(
    uri: str, at: str | None, values: bool, as_json: bool, storage_option: Sequence[str]
) -> None:
    """Show the bytes of each column; with --values also NULLs, least and greatest values."""
    found = column_stats(uri, open_at(uri, at, parse_pairs(storage_option)), with_values=values)
    if as_json:
        say_json(found)
        return
    for name in ("rows", "deleted_rows", "fragments", "small_fragments"):
        say(f"{found[name]:,}", label=f"{name.replace('_', ' '):<17}")
    rows = [
        (
            each["path"],
            each["type"],
            size(each["size_bytes"]),
            *([_cell(each.get(name)) for name in ("null_count", "min", "max")] if values else ()),
        )
        for each in found["columns"]
    ]
    heads = ("column", "type", "size", *(("nulls", "min", "max") if values else ()))
    print_table(heads, rows, (2, 3))


def column_stats(uri: str, snapshot: Snapshot, *, with_values: bool) -> dict[str, Any]:
    """Return what ``pennon stats`` shows; ``with_values`` reads the columns that have an order."""
    table = LanceDataset.of_snapshot(uri, snapshot)
    counted = table.stats.dataset_stats()
    sizes = {each.id: each.bytes_on_disk for each in table.stats.data_stats().fields}
    columns: list[dict[str, Any]] = []
    tops = {field.id for field in snapshot.manifest.schema.fields}
    for path, field in walk_paths(snapshot.manifest.schema):
        column = {
            "path": path,
            "id": field.id,
            "type": str(field_to_arrow(field).type),
            "size_bytes": sizes.get(field.id, 0),
        }
        if with_values and field.id in tops:
            column.update(_values(table, field))
        columns.append(column)
    return {
        "table": uri,
        "version": table.version,
        "rows": table.count_rows(),
        "deleted_rows": counted["num_deleted_rows"],
        "fragments": counted["num_fragments"],
        "small_fragments": counted["num_small_files"],
        "columns": columns,
    }


def _values(table: LanceDataset, field: Field) -> dict[str, Any]:
    """Return the NULLs, least and greatest value of a column; nothing if it has no order."""
    name = field.name
    try:
        found = table.aggregate({name: list(_MEASURES)})
    except ColumnTypeError:
        return {}
    kind = field_to_arrow(field).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    ends = [found[f"{each}({name})"] for each in ("min", "max")]
    least, greatest = plain_values(pa.array(ends, kind))
    return {"null_count": found[f"null_count({name})"], "min": least, "max": greatest}


def _cell(value: Any) -> str:
    return "" if value is None else cell(value)
