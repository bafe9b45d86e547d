"""Writing columns of one fragment anew, with values of other data where that has a row's key.

The columns are written whole, into a file of their own, under the ids that they have; in the older
files they are dead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import FieldId
from pennon.errors import ArgumentError, NotFoundError, SchemaMismatchError
from pennon.ops.columns.alter import AlterTask
from pennon.ops.columns.column_file import ColumnFiles
from pennon.ops.columns.match import RightSide
from pennon.ops.columns.merge import ROW_NAMES, check_nulls, check_right_key, find_key
from pennon.ops.columns.names import check_written
from pennon.ops.columns.task import ColumnsTask, Place, rows_at_once
from pennon.ops.fit import fit_schema
from pennon.scan.projection import Projection, plan_scan_projection
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.field import Schema
from pennon.schema.version import V0_1, FileVersion
from pennon.table.fragment import Fragment
from pennon.table.roaring import serialize_roaring
from pennon.table.storage_version import storage_version


@dataclass(frozen=True, slots=True)
class UpdatedFragment:
    """A fragment with columns written anew, for an Update that is committed later.

    ``offsets`` are the physical offsets of the rows that the other data has, sorted.
    """

    fragment: Fragment
    fields_modified: tuple[FieldId, ...]
    offsets: Int64Array

    def serialize_offsets(self) -> bytes:
        """Return the offsets as a Roaring bitmap, as the Update holds them."""
        return serialize_roaring(self.offsets.astype(np.uint32))


@dataclass(frozen=True, slots=True)
class _UpdatedColumns:
    """Columns of the table, with the values of the other side where that has the key."""

    inputs: Projection
    key: str
    right: RightSide
    version: FileVersion
    in_order: bool = field(default=True, init=False)
    matched: list[Int64Array] = field(default_factory=list)
    """Live offsets of the rows found so far, batch by batch."""
    seen: list[int] = field(default_factory=list)

    def make(self, batch: pa.RecordBatch, _: Place) -> pa.RecordBatch:
        """Look up the keys; keep the values of rows whose key is not there."""
        places = self.right.find(batch.column(self.key))
        is_there: Any = pc.is_valid(places)
        self.matched.append(np.flatnonzero(np.asarray(is_there)) + sum(self.seen))
        self.seen.append(batch.num_rows)
        found = self.right.rows(places)
        check_nulls({n: c.filter(is_there) for n, c in found.items()}, self.version)
        columns = [_choose(is_there, new, batch.column(name)) for name, new in found.items()]
        return pa.RecordBatch.from_arrays(columns, names=list(found))


def _choose(is_new: Any, new: pa.Array[Any], old: pa.Array[Any]) -> pa.Array[Any]:
    """Return the new values where they are wanted, else the old ones; any type will do."""
    if old.type != new.type:
        old = old.cast(new.type)
    both: pa.Array[Any] = pa.concat_arrays([new, old])
    rows = np.arange(len(new))
    return both.take(pa.array(np.where(np.asarray(is_new), rows, rows + len(new))))


def update_columns(
    snapshot: Snapshot, number: int, reader: pa.RecordBatchReader, left_on: str, right_on: str
) -> UpdatedFragment:
    """Write columns of the fragment of that number anew; nothing is committed.

    Raises NotFoundError for a key or column that is not there, SchemaMismatchError for types.
    """
    schema, version = snapshot.manifest.schema, storage_version(snapshot.manifest)
    key_type = find_key(schema, left_on)
    check_right_key(reader.schema, right_on)
    written = _written(schema, reader.schema, right_on)
    if version == V0_1:  # its files have their fields in the order of the ids
        written = Schema(tuple(sorted(written.fields, key=lambda top: top.id)))
    check_written(written, version)
    right = RightSide.read(reader, right_on)
    right.check_keys(key_type, left_on)
    names = dict.fromkeys([*written.names, left_on])
    inputs = plan_scan_projection(schema, list(names))
    maker = _UpdatedColumns(inputs, left_on, right, version)
    rows = rows_at_once(inputs.arrow)
    columns = ColumnsTask(snapshot, ColumnFiles.of(snapshot, written, version), maker, rows)
    made = AlterTask(columns, schema).run(number)
    live = FragmentReader(snapshot, snapshot.manifest.fragments[number]).live_rows()
    matched = np.concatenate([np.empty(0, np.int64), *maker.matched])
    return UpdatedFragment(made, made.files[-1].field_ids, live.to_physical(matched))


def _written(schema: Schema, right: pa.Schema, right_on: str) -> Schema:
    """Return the table's fields that are written anew: all that the other side has but the key."""
    data = right.remove(right.get_field_index(right_on))
    for name in data.names:
        if name in ROW_NAMES:
            message = f"Column {name} is a reserved metadata column and cannot be updated"
            raise ArgumentError(message)
        if name not in schema.names:
            message = (
                f"Column {name} in right side fragment does not exist in left side fragment: "
                f"{schema.names}"
            )
            raise NotFoundError(message)
    by_name = {top.name: top for top in schema.fields}
    known = Schema(tuple(by_name[name] for name in data.names))
    fitted = {top.name: top for top in fit_schema(known, schema_from_arrow(data)).fields}
    for top in known.fields:
        if fitted[top.name] != top:
            message = (
                f"column {top.name!r} is updated as a whole, but some of its fields are missing"
            )
            raise SchemaMismatchError(message)
    return known
