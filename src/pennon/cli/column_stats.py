"""The numbers of ``pennon stats``: bytes of each field, and NULLs, least and greatest values."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from pennon.dataset.lance_dataset import LanceDataset
from pennon.display.plain import plain_values
from pennon.errors import ColumnTypeError
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field
from pennon.schema.project import walk_paths

_MEASURES: Final = ("null_count", "min", "max")


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
