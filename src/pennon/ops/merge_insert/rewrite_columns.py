"""Columns of fragments written anew, beside the others, where rows of them change.

The new file has all rows of its fragment; in the old files the columns are dead.  Rows stay where
they are, and what is not changed is neither read nor written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.selection import take
from pennon.ops.blob_rows import to_rewrite
from pennon.ops.columns.column_file import ColumnFiles
from pennon.ops.merge_insert.match import FragmentMatches
from pennon.ops.merge_insert.source import Source, quoted
from pennon.scan.projection import plan_take_projection
from pennon.scan.read.execute import Scan, read_batches
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import DEFAULT_BATCH_BYTES, DEFAULT_BATCH_ROWS, plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Schema
from pennon.table.fragment import Fragment
from pennon.table.storage_version import storage_version


@dataclass(frozen=True, slots=True)
class PatchTask:
    """The fragments whose rows change, and the rows of the data that they take; it pickles."""

    snapshot: Snapshot
    source: Source
    found: tuple[FragmentMatches, ...]

    @property
    def count(self) -> int:
        """Return how many fragments there are."""
        return len(self.found)

    @property
    def modified(self) -> Schema:
        """Return the columns that change: those of the data, without the key."""
        fields = tuple(f for f in self.source.fields if f.name not in self.source.on)
        return Schema(fields, self.snapshot.manifest.schema.metadata)

    def run(self, number: int) -> Fragment:
        """Write the columns of a fragment; return it with one file more."""
        found = self.found[number]
        fragment, schema = found.updated.fragment, self.modified
        reader = FragmentReader(self.snapshot, fragment)
        files = ColumnFiles.of(self.snapshot, schema, storage_version(self.snapshot.manifest))
        ref = files.write(reader, self._batches(reader, found, schema))
        gone = {field.id for field in schema.walk()}
        old = tuple(file.without(gone) for file in fragment.files)
        return replace(fragment, files=(*old, ref), physical_rows=reader.physical_rows())

    def _batches(
        self, reader: FragmentReader, found: FragmentMatches, schema: Schema
    ) -> Iterator[pa.RecordBatch]:
        """Yield the living rows of the columns, those that change with their new values."""
        fragment = found.updated.fragment
        changed = reader.live_rows().to_live(found.updated.offsets)
        changing = plan_take_projection(schema, [quoted(name) for name in schema.names])
        shown, whole = to_rewrite(self.snapshot, changing)
        tasks = tuple(plan_tasks(self.snapshot, [fragment]))
        start = 0
        most = max(DEFAULT_BATCH_BYTES // max(self.source.row_bytes, 1), 1)
        scan = Scan(self.snapshot, shown, tasks)
        for batch in whole(read_batches(scan, min(DEFAULT_BATCH_ROWS, most), may_cut=True)):
            low, high = np.searchsorted(changed, [start, start + batch.num_rows])
            rows = self.source.take(found.source[low:high], schema.names)
            yield _patched(batch, changed[low:high] - start, rows)
            start += batch.num_rows


def _patched(batch: pa.RecordBatch, at: Int64Array, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with other rows in some places."""
    if not len(at):
        return batch
    order = np.arange(batch.num_rows)
    order[at] = batch.num_rows + np.arange(len(at))
    chosen = pa.array(order)
    arrays = [
        take(pa.concat_arrays([mine, theirs]), chosen)
        for mine, theirs in zip(batch.columns, rows.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
