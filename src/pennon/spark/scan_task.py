"""What one Spark task reads: the same scan as everywhere, of a part of the table.

The driver opens the table and pins its version.  What travels is the table's store and schema
(without the list of fragments) and, with each task, its fragments, so an executor reads no manifest.
A filter travels as it was bound; what statistics rule out, the executor finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.core.units import MIB
from pennon.errors import ArgumentError
from pennon.io import open_store
from pennon.scan.execute import Scan, read_batches
from pennon.scan.plan import ScanTask, bytes_per_row, check_batch_rows
from pennon.scan.projection import plan_take_projection
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.width import has_width, row_bytes
from pennon.spark.arrow_convert import convert_batch
from pennon.spark.types import SYSTEM_COLUMNS
from pennon.table.versions import read_manifest, version_as_of

if TYPE_CHECKING:
    from pennon.scan.compute import Condition

MIN_BATCH_ROWS = 64
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
    let the first row of a limited query come soon, and larger ones bring nothing: Spark takes them
    apart row by row.
    """

    scan: Scan
    schema: pa.Schema
    batch_rows: int | None = None
    condition: Condition | None = None

    def read(self, tasks: Sequence[ScanTask]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the tasks in order, as batches of ``schema``."""
        scan = replace(self.scan, tasks=tuple(tasks))
        rows = self.batch_rows or _fitting_rows(scan)
        for batch in self._batches(scan, rows):
            for piece in _pieces(batch) if self.batch_rows is None else [batch]:
                yield convert_batch(piece, self.schema)

    def _batches(self, scan: Scan, rows: int) -> Iterator[pa.RecordBatch]:
        if self.condition is None:
            return read_batches(scan, rows)
        from pennon.spark.where import read_where

        return read_where(scan, self.condition, rows)


def _fitting_rows(scan: Scan) -> int:
    """Return how many rows to decode for a batch.

    Where all columns have a width, rows have that of the columns that are read.  Where one has not,
    they are taken to be as wide as in the data files, which tell nothing of a single column.
    """
    schema = scan.projection.arrow
    width = max(row_bytes(schema), 1)
    if not all(has_width(field.type) for field in schema):
        width = max(width, *(bytes_per_row(task.fragment) for task in scan.tasks))
    return min(MAX_BATCH_ROWS, max(MIN_BATCH_ROWS, MAX_BATCH_BYTES // width))


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch whose values turned out larger than they are in the file."""
    pieces = min(-(-batch.nbytes // MAX_BATCH_BYTES), batch.num_rows)
    step = -(-batch.num_rows // max(pieces, 1))
    for start in range(0, batch.num_rows, max(step, 1)):
        yield batch.slice(start, step)


def plan_table_scan(snapshot: Snapshot, schema: pa.Schema, batch_rows: int | None) -> TableScan:
    """Plan a scan of the columns of ``schema``, by name; a part of a struct reads only that part.

    Raises ArgumentError that lists what the table has when a column is not there.
    """
    names = requested_columns(schema, arrow_schema_of(snapshot))
    projection = plan_take_projection(snapshot.manifest.schema, names)
    bare = replace(snapshot, manifest=replace(snapshot.manifest, fragments=()))
    checked = None if batch_rows is None else check_batch_rows(batch_rows)
    return TableScan(Scan(bare, projection, ()), schema, checked)


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
