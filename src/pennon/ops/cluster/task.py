"""Putting rows in order: a sample, a shuffle of blocks of rows, files.  The tasks pickle.

::

    sample      keys of some rows                          -> points that cut the order into slices
    split       rows of the table, in the order of storage -> (slice, block): rows of one slice
    gather      all blocks of a slice, slice after slice   -> data files, in order

A file is a run of slices, and a slice is what is sorted in memory; so it takes a slice's rows to write a
file of any size.  A block has its rows as Arrow, whatever their types, with the address of each, and in tables
with stable row ids also the id and the versions of each; blobs are read when a file is written.  Whoever runs
the tasks carries blocks from one to the other.

Rows go to slices by their keys and addresses alone: a task that runs twice sends the same rows to the same
slices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import MIB
from pennon.encoding.selection import take
from pennon.errors import FormatError
from pennon.ops.blob_rows import RewrittenBlobs
from pennon.ops.cluster.order import ADDRESS, RowOrder, count_below, cut_points, order_of
from pennon.ops.convert import without_hidden_values
from pennon.ops.row_history import RowHistory
from pennon.ops.task_wire import parse_numbered_fragments, serialize_numbered_fragments
from pennon.ops.write import WriteTask, write_fragments
from pennon.scan.projection import MetaColumn, OutputColumn, Projection, plan_take_projection
from pennon.scan.read.arrays import int64_array
from pennon.scan.read.execute import READ_AHEAD_BYTES, Scan, read_batches
from pennon.scan.read.tasks import ScanTask, default_batch_rows
from pennon.scan.snapshot import Snapshot
from pennon.schema.blob import has_blobs_v2
from pennon.schema.project import quoted
from pennon.schema.version import V0_1
from pennon.schema.width import row_bytes
from pennon.table.fragment import Fragment
from pennon.table.row_ids import RowIds

SLICE_BYTES: Final = 32 * MIB
"""Of rows that are sorted in memory at a time."""
HELD_BYTES: Final = 16 * MIB
"""Of rows that a task gathers before it sends them on as blocks."""
_SAMPLED_OF_SLICE: Final = 400
"""Rows that are looked at: slices are then within a tenth of each other."""
_LEAST_SAMPLED: Final = 20_000
_MOST_SAMPLED: Final = 400_000
_HISTORY: Final = {
    "\0id": MetaColumn.ROW_ID,
    "\0created": MetaColumn.CREATED_AT,
    "\0updated": MetaColumn.UPDATED_AT,
}
_EXTRA: Final = frozenset([ADDRESS, *_HISTORY])

Share: TypeAlias = tuple[ScanTask, ...]
"""Rows that one task reads."""


@dataclass(frozen=True, slots=True)
class SampleTask:
    """Takes some rows of each share: the values that they are ordered by, and their addresses."""

    snapshot: Snapshot
    order: RowOrder
    shares: tuple[Share, ...]
    fraction: float

    def run(self, number: int) -> pa.Table:
        """Return rows of a share, chosen at random, as `RowOrder.values` has them."""
        names = [".".join(map(quoted, column.path)) for column in self.order.columns]
        inputs = plan_take_projection(self.snapshot.manifest.schema, list(dict.fromkeys(names)))
        random = np.random.default_rng(number)
        projection = _with(inputs, {ADDRESS: MetaColumn.ROW_ADDRESS})
        found = []
        for batch in _batches(self.snapshot, projection, self.shares[number]):
            at = np.flatnonzero(random.random(batch.num_rows) < self.fraction)
            found.append(self.order.values(_rows(batch, at)))
        return pa.concat_tables(found)

    def to_bytes(self, answer: pa.Table) -> bytes:
        """Return an answer as an Arrow stream."""
        return _serialized(answer)

    def from_bytes(self, message: bytes) -> pa.Table:
        """Return the answer of a message; raises FormatError."""
        return _parsed(message)


@dataclass(frozen=True, slots=True)
class SplitTask:
    """Reads rows, and cuts them into blocks by the slices that they belong to."""

    snapshot: Snapshot
    order: RowOrder
    points: pa.Table
    shares: tuple[Share, ...]

    def run(self, number: int) -> Iterator[tuple[int, bytes]]:
        """Yield the rows of a share: the number of a slice, and rows of it."""
        held: list[pa.RecordBatch] = []
        size_bytes = 0
        for batch in self._read(self.shares[number]):
            held.append(batch)
            size_bytes += batch.nbytes
            if size_bytes >= HELD_BYTES:
                yield from self._cut(_joined(held))
                held, size_bytes = [], 0
        if held:
            yield from self._cut(_joined(held))

    def _read(self, share: Share) -> Iterator[pa.RecordBatch]:
        """Yield whole rows, blobs as their descriptions, each row with what it takes along."""
        schema = self.snapshot.manifest.schema
        whole = plan_take_projection(schema, None)
        if has_blobs_v2(schema):
            whole = RewrittenBlobs(self.snapshot, whole).described
        extra = {ADDRESS: MetaColumn.ROW_ADDRESS}
        if self.snapshot.manifest.has_stable_row_ids:
            extra |= _HISTORY
        return _batches(self.snapshot, _with(whole, extra), share)

    def _cut(self, rows: pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
        slices = count_below(self.order.keys(self.order.values(rows)), self.points)
        by_slice = np.argsort(slices, kind="stable")
        placed, numbers = _rows(rows, by_slice), slices[by_slice]
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        ends = np.append(starts[1:], len(numbers))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            block = placed.slice(start, end - start)
            yield int(numbers[start]), _serialized(pa.Table.from_batches([block]))


@dataclass(frozen=True, slots=True)
class Gathered:
    """The fragments of a file, and the smallest number of a slice in it: answers are put in the order of these."""

    first_slice: int | None
    fragments: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class GatherTask:
    """Writes the rows of blocks, in order, to new data files."""

    snapshot: Snapshot
    order: RowOrder
    write: WriteTask

    def run(self, blocks: Iterable[tuple[int, bytes]]) -> Gathered:
        """Write blocks that come slice by slice; return the fragments, without ids yet."""
        coming = iter(blocks)
        first = next(coming, None)
        histories: list[RowHistory] = []
        rows = self._in_order(coming if first is None else chain([first], coming), histories)
        if self.write.version == V0_1:
            rows = map(without_hidden_values, rows)
        new = write_fragments(self.write, rows)
        new = RowHistory.joined(histories).given_to(new) if histories else new
        return Gathered(None if first is None else first[0], tuple(new))

    def to_bytes(self, answer: Gathered) -> bytes:
        """Return an answer as a message."""
        return serialize_numbered_fragments(answer.first_slice, answer.fragments)

    def from_bytes(self, message: bytes) -> Gathered:
        """Return the answer of a message; raises FormatError."""
        first_slice, fragments, _ = parse_numbered_fragments(message)
        return Gathered(first_slice, fragments)

    def _in_order(
        self, blocks: Iterable[tuple[int, bytes]], histories: list[RowHistory]
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows as a writer takes them; what they take along is put aside."""
        schema = self.snapshot.manifest.schema
        blobs = RewrittenBlobs(self.snapshot, plan_take_projection(schema, None))
        has_blobs = has_blobs_v2(schema)
        for _, each in groupby(blocks, key=lambda block: block[0]):
            rows = _joined([batch for _, block in each for batch in _parsed(block).to_batches()])
            ordered = _rows(rows, order_of(self.order.keys(self.order.values(rows))))
            if self.snapshot.manifest.has_stable_row_ids:
                histories.append(RowHistory(*(_uint64(ordered.column(n)) for n in _HISTORY)))
            own = ordered.select([name for name in ordered.schema.names if name not in _EXTRA])
            if has_blobs:
                yield from blobs.whole(own, _uint64(ordered.column(ADDRESS)))
            else:
                yield own


@dataclass(frozen=True, slots=True)
class Clustering:
    """The clustering of some fragments of a version, and the number of slices of their rows.

    ``files`` are made of the slices, each of as many.
    """

    snapshot: Snapshot
    order: RowOrder
    write: WriteTask
    fragments: tuple[Fragment, ...]
    rows: int
    files: int
    slices_per_file: int
    curved: bool

    def sample(self, shares: Sequence[Share]) -> SampleTask:
        """Return what looks at enough rows to cut them evenly."""
        wanted = max(_SAMPLED_OF_SLICE * self.files * self.slices_per_file, _LEAST_SAMPLED)
        fraction = min(min(wanted, _MOST_SAMPLED) / max(self.rows, 1), 1.0)
        return SampleTask(self.snapshot, self.order, tuple(shares), fraction)

    def split(self, shares: Sequence[Share], sampled: Iterable[pa.Table]) -> SplitTask:
        """Return what cuts the rows into blocks, given what `sample` saw."""
        values = pa.concat_tables(sampled)
        order = self.order.curved(values) if self.curved else self.order
        points = cut_points(order.keys(values), self.files * self.slices_per_file)
        return SplitTask(self.snapshot, order, points, tuple(shares))

    def gather(self, split: SplitTask) -> GatherTask:
        """Return what writes the blocks of `split`."""
        return GatherTask(self.snapshot, split.order, self.write)

    def check(self, new: Iterable[Fragment]) -> None:
        """Raise FormatError unless the new fragments have all rows."""
        written = sum(fragment.physical_rows or 0 for fragment in new)
        if written != self.rows:
            message = f"fragments of {self.rows} live rows were put in order as {written}"
            raise FormatError(message)


def _with(projection: Projection, extra: Mapping[str, MetaColumn]) -> Projection:
    """Return a projection with computed columns under names that no column of a table has."""
    metas = [OutputColumn(pa.field(name, pa.uint64()), meta) for name, meta in extra.items()]
    return Projection(projection.read, (*projection.columns, *metas))


def _batches(snapshot: Snapshot, projection: Projection, share: Share) -> Iterator[pa.RecordBatch]:
    rows = default_batch_rows(row_bytes(projection.arrow))
    scan = Scan(snapshot, projection, share)
    return read_batches(scan, rows, READ_AHEAD_BYTES, may_cut=True)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of batches in one, without dictionaries: those of two files are two."""
    plain = [_without_dictionaries(batch) for batch in batches]
    first = plain[0]
    if len(plain) == 1:
        return first
    columns = [
        pa.concat_arrays([each.column(n) for each in plain]) for n in range(first.num_columns)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=first.schema)


def _without_dictionaries(batch: pa.RecordBatch) -> pa.RecordBatch:
    arrays = [
        array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array
        for array in batch.columns
    ]
    pairs = zip(batch.schema, arrays, strict=True)
    schema = pa.schema([each.with_type(array.type) for each, array in pairs])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _rows(batch: pa.RecordBatch, numbers: Int64Array) -> pa.RecordBatch:
    at = int64_array(numbers)
    arrays = [take(array, at) for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _uint64(array: pa.Array[Any]) -> RowIds:
    return np.asarray(array, np.uint64)


def _serialized(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _parsed(data: bytes) -> pa.Table:
    try:
        with pa.ipc.open_stream(data) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        message = f"these {len(data)} bytes are no rows of a task: {error}"
        raise FormatError(message) from error
    return table
