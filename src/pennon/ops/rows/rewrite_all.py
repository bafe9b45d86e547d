"""All rows get new values in some columns: these are written anew, one file a fragment, beside the others.

An update of one column of fifty writes a fiftieth of the bytes then, and rows stay where they are.  What the
old files hold of the columns is dead until a compaction.  `columns_cost_less` decides between this and whole rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.units import KIB
from pennon.ops.columns.addressed import AddressedTask, completed
from pennon.ops.columns.column_file import ColumnFiles
from pennon.ops.file_limits import MAX_ROWS_PER_FILE
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.blob import has_blobs_v2
from pennon.schema.field import Schema
from pennon.schema.version import V0_1
from pennon.schema.width import has_width, row_bytes
from pennon.table.field_ids import in_newest_file
from pennon.table.fragment import Fragment
from pennon.table.fragment_wire import parse_fragments, serialize_fragments
from pennon.table.operations import Update, UpdateMode
from pennon.table.roaring import serialize_roaring
from pennon.table.storage_version import storage_version

FILE_BYTES: Final = 128 * KIB
"""What a file costs to write and to open, as so many bytes written."""
_UNKNOWN_BYTES: Final = 32
"""What a text or a list is taken for where all columns are compared; no manifest says what a column takes."""


def columns_cost_less(snapshot: Snapshot, names: Collection[str]) -> bool:
    """Return whether new values for all rows cost less as columns than as whole rows.

    What counts is the bytes written, and those that are dead then in the old files, as far as the sizes of files and
    the types of columns tell, and the number of files: many small fragments are better written anew as one.  Never in
    file version 0.1, nor for blobs.
    """
    manifest = snapshot.manifest
    schema = written_schema(snapshot, names)
    if storage_version(manifest) == V0_1 or has_blobs_v2(schema) or not manifest.fragments:
        return False
    rows = manifest.summary.physical_rows
    size_bytes = sum(f.size_bytes or 0 for each in manifest.fragments for f in each.files)
    share = _row_bytes(schema_to_arrow(schema)) / _row_bytes(schema_to_arrow(manifest.schema))
    as_columns = 2 * size_bytes * share + FILE_BYTES * len(manifest.fragments)
    as_rows = size_bytes + FILE_BYTES * -(-rows // MAX_ROWS_PER_FILE)
    return as_columns < as_rows


def _row_bytes(schema: pa.Schema) -> int:
    unknown = sum(not has_width(each.type) for each in schema)
    return max(row_bytes(schema) + _UNKNOWN_BYTES * unknown, 1)


def written_schema(snapshot: Snapshot, names: Collection[str]) -> Schema:
    """Return the table's columns of some names, in the table's order."""
    schema = snapshot.manifest.schema
    return replace(schema, fields=tuple(top for top in schema.fields if top.name in names))


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Writes columns of fragments anew, whose rows come with their addresses; it pickles."""

    to_bytes = staticmethod(serialize_fragments)
    from_bytes = staticmethod(parse_fragments)

    columns: AddressedTask

    @property
    def values(self) -> pa.Schema:
        """Return the columns."""
        return self.columns.values

    def run(self, batches: Iterable[pa.RecordBatch]) -> list[Fragment]:
        """Return fragments with their new files, and without files of no use; see `AddressedTask.run`."""
        known = frozenset(each.id for each in self.columns.snapshot.manifest.schema.walk())
        return [in_newest_file(fragment, known) for fragment in self.columns.run(batches)]


def plan_rewrite(snapshot: Snapshot, names: Collection[str]) -> RewriteTask:
    """Plan to write some columns of all rows anew."""
    schema, version = written_schema(snapshot, names), storage_version(snapshot.manifest)
    files = ColumnFiles.of(snapshot, schema, version)
    return RewriteTask(AddressedTask(snapshot, files, is_whole=True))


def rewrite_operation(task: RewriteTask, written: Iterable[Fragment]) -> Update:
    """Return what the commit will be.  Raises FormatError if a fragment with rows was not written."""
    old = {each.id: each for each in task.columns.snapshot.manifest.fragments}
    updated = tuple(f for f in completed(task.columns, written) if f != old[f.id])
    offsets = {}
    if task.columns.snapshot.manifest.has_stable_row_ids:  # rows know the version that changed them
        offsets = {each.id: _all_rows(each) for each in updated}
    return Update(
        (),
        updated,
        (),
        fields_modified=tuple(each.id for each in task.columns.files.schema.walk()),
        mode=UpdateMode.REWRITE_COLUMNS,
        updated_offsets=offsets,
    )


def _all_rows(fragment: Fragment) -> bytes:
    return serialize_roaring(
        np.arange(fragment.physical_rows or 0, dtype=np.uint32), with_runs=True
    )
