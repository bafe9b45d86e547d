"""Columns of other data, joined to the rows of a table by a key.

Every row of the table stays, and none is added.  New columns are NULL where the other data has no
such key (`plan_merge`); columns that the table has keep their values there (`update_columns`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pennon.errors import Breadcrumb, InvalidSchemaError, NotFoundError, UnsupportedError
from pennon.ops.columns.add import AddPlan, plan_columns
from pennon.ops.columns.match import RightSide
from pennon.ops.columns.names import find_column
from pennon.ops.columns.task import Place
from pennon.scan.projection import MetaColumn, Projection, plan_scan_projection
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Schema
from pennon.schema.version import V0_1, FileVersion
from pennon.table.storage_version import storage_version

ROW_NAMES = frozenset((MetaColumn.ROW_ID.value, MetaColumn.ROW_ADDRESS.value))


@dataclass(frozen=True, slots=True)
class JoinedColumns:
    """New columns: those of the row that has the same key, or NULL."""

    inputs: Projection
    right: RightSide
    version: FileVersion
    in_order: bool = field(default=False, init=False)

    def make(self, batch: pa.RecordBatch, _: Place) -> pa.RecordBatch:
        """Look up the keys, which are the only column."""
        found = self.right.rows(self.right.find(batch.column(0)))
        check_nulls(found, self.version)
        return pa.RecordBatch.from_arrays(list(found.values()), names=list(found))


def check_nulls(columns: Mapping[str, pa.Array[Any]], version: FileVersion) -> None:
    """Raise UnsupportedError for a NULL that the file version would turn into a value."""
    for name, column in columns.items():
        kind = column.type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if version != V0_1 or is_text or pa.types.is_binary(kind) or not column.null_count:
            continue
        message = f"{column.null_count} rows get a NULL, which file version 0.1 does not keep"
        raise UnsupportedError(message, where=Breadcrumb(column=name))


def find_key(schema: Schema, left_on: str) -> pa.DataType:
    """Return the type of the table's key column; raises NotFoundError if it is not there."""
    if left_on not in ROW_NAMES:
        find_column(schema, left_on)
    return plan_scan_projection(schema, [left_on]).arrow.field(0).type


def check_right_key(right: pa.Schema, right_on: str) -> None:
    """Raise NotFoundError unless the other data has the key column, once."""
    if right.names.count(right_on) != 1:
        message = f"Column {right_on} does not exist in the right side dataset: {right.names}"
        raise NotFoundError(message)


def plan_merge(
    snapshot: Snapshot, reader: pa.RecordBatchReader, left_on: str, right_on: str
) -> AddPlan:
    """Read the other data, and plan to add its columns, all but the key.

    Raises NotFoundError for a key that is not there, InvalidSchemaError for names that the table
    has, SchemaMismatchError for keys of another type, NoDataError if there is nothing to merge.
    """
    key_type = find_key(snapshot.manifest.schema, left_on)
    check_right_key(reader.schema, right_on)
    for name in reader.schema.names:
        if name != right_on and name in snapshot.manifest.schema.names:
            message = f"Column {name} exists in both sides of the dataset"
            raise InvalidSchemaError(message)
    arrow = reader.schema.remove(reader.schema.get_field_index(right_on))
    right = RightSide.read(reader, right_on)
    right.check_keys(key_type, left_on)
    inputs = plan_scan_projection(snapshot.manifest.schema, [left_on])
    maker = JoinedColumns(inputs, right, storage_version(snapshot.manifest))
    return plan_columns(snapshot, arrow.remove_metadata(), maker, right.keys_at_once)
