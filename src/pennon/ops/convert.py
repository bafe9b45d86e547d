"""Rewriting a table's data files in another file version.

Each fragment becomes one or more new fragments with the same live rows in the same order, so deleted
rows are gone.  Field ids, metadata and configuration stay, and so do older versions of the table, the
stable ids of rows, and the versions that these were made and changed in.  Maps become marked lists in
files that have no maps, and the marked lists become maps in files that have them.  Columns of storage class
blob, whose values lie in a nested table, become columns of the table's own files.

The plan and the task inside it pickle; one commit makes all of it a version.

The commit is strict: if anybody committed meanwhile, it fails, for rows that came since would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from pennon.io.store import Store
from pennon.ops.blob_rows import to_rewrite
from pennon.ops.commit import commit_transaction
from pennon.ops.row_history import with_history
from pennon.ops.write import FileLimits, WriteTask, as_version_holds, limits_for, write_fragments
from pennon.scan.projection import plan_scan_projection
from pennon.scan.read.execute import Scan, read_batches
from pennon.scan.read.tasks import DEFAULT_BATCH_ROWS, plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.check import check_writable
from pennon.schema.field import Schema
from pennon.schema.maps import converted_maps, with_maps_of
from pennon.schema.version import V0_1, FileVersion, check_is_written
from pennon.table.blob_table import blob_version, stored_here
from pennon.table.commit.options import CommitPolicy
from pennon.table.field_ids import highest_field_id
from pennon.table.fragment import Fragment
from pennon.table.fragment_wire import parse_fragments, serialize_fragments
from pennon.table.manifest import Manifest
from pennon.table.operations import Overwrite
from pennon.table.transaction import Transaction
from pennon.table.versions import read_manifest


@dataclass(frozen=True, slots=True)
class ConvertTask:
    """A task that rewrites the fragments of a version; it pickles."""

    to_bytes = staticmethod(serialize_fragments)
    from_bytes = staticmethod(parse_fragments)

    snapshot: Snapshot
    write: WriteTask

    @property
    def count(self) -> int:
        """Return how many fragments there are to rewrite."""
        return len(self.snapshot.manifest.fragments)

    def run(self, number: int) -> list[Fragment]:
        """Rewrite the fragment of that number, and return the new ones, without ids yet."""
        snapshot = self.snapshot
        fragment = snapshot.manifest.fragments[number]
        everything = plan_scan_projection(snapshot.manifest.schema, None)
        projection, whole = to_rewrite(snapshot, everything)
        scan = Scan(snapshot, projection, tuple(plan_tasks(snapshot, [fragment])))
        batches = whole(read_batches(scan, DEFAULT_BATCH_ROWS))
        batches = with_maps(batches, snapshot.manifest.schema, self.write.version)
        if self.write.version == V0_1:
            batches = map(without_hidden_values, batches)
        return write_fragments(self.write, batches)


def with_maps(
    batches: Iterable[pa.RecordBatch], schema: Schema, version: FileVersion
) -> Iterator[pa.RecordBatch]:
    """Yield rows of a schema with maps as a file version has them: as such, or as lists of entries."""
    shown = schema_to_arrow(with_maps_of(schema, version))
    changed = [
        field for field, old in zip(shown, schema_to_arrow(schema), strict=True) if field != old
    ]
    for batch in batches:
        converted = batch
        for field in changed:
            number = batch.schema.get_field_index(field.name)
            array = converted_maps(batch.column(number), field.type)
            converted = converted.set_column(number, field, array)
        yield converted


def without_hidden_values(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same rows with zeros under NULLs, for version 0.1 shows what lies there.

    Other versions leave anything under a NULL when they are read.
    """
    if not any(array.null_count or pa.types.is_nested(array.type) for array in batch.columns):
        return batch
    return batch.take(pa.array(np.arange(batch.num_rows)))


def plan_convert(
    store: Store, version: FileVersion, *, limits: FileLimits | None = None
) -> ConvertTask:
    """Plan to rewrite the newest version of a table as files of another version.

    Raises UnsupportedError for a file version that is not written, and types that it cannot hold.
    """
    check_is_written(version)
    manifest = read_manifest(store)
    schema = as_version_holds(manifest.schema, version, highest_field_id(manifest) + 1)
    schema = with_maps_of(schema, version)
    if blob_version(manifest):
        schema = replace(schema, fields=tuple(map(stored_here, schema.fields)))
    check_writable(schema, version)
    limits = limits_for(version, limits or FileLimits())
    return ConvertTask(Snapshot(store, manifest), WriteTask(store, schema, version, limits))


def commit_convert(task: ConvertTask, fragments: Iterable[Iterable[Fragment]]) -> Manifest:
    """Make what all tasks wrote, in the order of their numbers, a version of the table.

    Raises RetryableConflict if the table has a newer version than was planned on.
    """
    manifest, store = task.snapshot.manifest, task.write.store
    pairs = zip(manifest.fragments, fragments, strict=True)
    new = tuple(
        each for old, several in pairs for each in with_history(task.snapshot, [old], list(several))
    )
    transaction = Transaction(manifest.version, Overwrite(new, task.write.schema))
    strict = CommitPolicy(max_retries=0)
    version = task.write.version
    return commit_transaction(store, transaction, strict, file_version=version, keeps_rows=True)


def convert(task: ConvertTask) -> Manifest:
    """Rewrite all fragments, one after the other, and commit."""
    return commit_convert(task, map(task.run, range(task.count)))
