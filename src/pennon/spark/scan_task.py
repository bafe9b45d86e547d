"""What one Spark task reads: the same scan as everywhere, of a part of one fragment.

The driver opens the table and pins its version.  What travels is the table's store and schema
(without the list of fragments) and, with each task, its fragment, so an executor reads no manifest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa

from pennon.errors import ArgumentError
from pennon.io import open_store
from pennon.scan.execute import Scan, read_batches
from pennon.scan.plan import ScanTask, bytes_per_row, check_batch_rows, plan_tasks
from pennon.scan.projection import plan_take_projection
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.width import row_bytes
from pennon.spark.convert import convert_batch
from pennon.spark.types import SYSTEM_COLUMNS
from pennon.table.versions import read_manifest, version_as_of
from pennon.units import MIB

MAX_BATCH_ROWS = 16_384
MAX_BATCH_BYTES = 16 * MIB


def open_snapshot(
    uri: str,
    storage_options: Mapping[str, str],
    version: int | None = None,
    asof: datetime | None = None,
) -> Snapshot:
    """Open one version of a table, the newest by default.

    Raises NotFoundError when there is no table or no such version, ArgumentError for both pins.
    """
    if version is not None and asof is not None:
        message = "give version or asof, not both"
        raise ArgumentError(message)
    store = open_store(uri, dict(storage_options) or None)
    if asof is not None:
        version = version_as_of(store, asof)
    return Snapshot(store, read_manifest(store, version))


def arrow_schema_of(snapshot: Snapshot) -> pa.Schema:
    """Return the table's Arrow schema."""
    return schema_to_arrow(snapshot.manifest.schema)


@dataclass(frozen=True, slots=True)
class TableScan:
    """A scan of one pinned version into Spark's Arrow types; it pickles.

    ``batch_rows`` None: as many as fit `MAX_BATCH_BYTES`, at most `MAX_BATCH_ROWS`.  Small batches
    let the first row of a limited query come soon.
    """

    scan: Scan
    schema: pa.Schema
    batch_rows: int | None = None

    def read(self, task: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task in order, as batches of ``schema``."""
        rows = self.batch_rows
        if rows is None:
            least = row_bytes(self.scan.projection.arrow)
            fitting = MAX_BATCH_BYTES // max(bytes_per_row(task.fragment), least)
            rows = min(MAX_BATCH_ROWS, max(64, fitting))
        for batch in read_batches(replace(self.scan, tasks=(task,)), rows):
            yield convert_batch(batch, self.schema)


def plan_table_scan(snapshot: Snapshot, schema: pa.Schema, batch_rows: int | None) -> TableScan:
    """Plan a scan of the columns of ``schema``, by name; a part of a struct reads only that part.

    Raises ArgumentError that lists what the table has when a column is not there.
    """
    names = requested_columns(schema, arrow_schema_of(snapshot))
    projection = plan_take_projection(snapshot.manifest.schema, names)
    bare = replace(snapshot, manifest=replace(snapshot.manifest, fragments=()))
    checked = None if batch_rows is None else check_batch_rows(batch_rows)
    return TableScan(Scan(bare, projection, ()), schema, checked)


def split_tasks(snapshot: Snapshot, max_partition_bytes: int) -> list[ScanTask]:
    """Return one task a fragment, in order; a large fragment is split into even runs of its rows."""
    return [piece for task in plan_tasks(snapshot) for piece in _split(task, max_partition_bytes)]


def _split(task: ScanTask, max_partition_bytes: int) -> Iterator[ScanTask]:
    size_bytes = task.rows * bytes_per_row(task.fragment)
    pieces = min(task.rows, -(-size_bytes // max_partition_bytes))
    step = -(-task.rows // pieces)
    for start in range(task.start, task.end, step):
        yield replace(task, start=start, end=min(start + step, task.end))


def requested_columns(wanted: pa.Schema, table: pa.Schema) -> list[str]:
    """Name the columns to read, dotted where only a part of a struct is wanted."""
    names: list[str] = []
    for column in wanted:
        if column.name in SYSTEM_COLUMNS:
            names.append(column.name)
            continue
        index = table.get_field_index(column.name)
        if index < 0:
            message = f"no column {column.name!r}; there are {', '.join(table.names)}"
            raise ArgumentError(message)
        names += _parts(column, table.field(index), column.name)
    return names


def _parts(wanted: pa.Field, stored: pa.Field, path: str) -> list[str]:
    if not pa.types.is_struct(wanted.type) or not pa.types.is_struct(stored.type):
        return [path]
    children = {child.name: child for child in stored.type}
    missing = [child.name for child in wanted.type if child.name not in children]
    if missing:
        message = f"{path!r} has no field {', '.join(missing)}; it has {', '.join(children)}"
        raise ArgumentError(message)
    parts = [_parts(c, children[c.name], f"{path}.{c.name}") for c in wanted.type]
    whole = [[f"{path}.{name}"] for name in children]
    if sorted(parts) == sorted(whole):
        return [path]
    return [name for group in parts for name in group]
