"""The task of all operations that write new columns: fragment by fragment, batch by batch.

What the columns are made of differs: expressions, a function, a join, a cast, rows that the caller
has.  Each of these is a `Maker`, which says what it needs of the table and turns batches of that
into batches of the new columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

import pyarrow as pa

from pennon.core.thread_places import processors
from pennon.core.thread_pools import PoolSpec, map_in_order
from pennon.core.units import KIB, MIB, FragmentId
from pennon.encoding.exact_batches import exact_batches
from pennon.errors import SchemaMismatchError
from pennon.ops.blob_rows import to_rewrite
from pennon.ops.columns.column_file import ColumnFiles
from pennon.scan.projection import Projection
from pennon.scan.read.execute import READ_AHEAD_BYTES, Scan, read_batches
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import DEFAULT_BATCH_BYTES, plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.blob import has_blobs_v2
from pennon.schema.field import Schema
from pennon.schema.width import row_bytes
from pennon.table.fragment import Fragment

MOST_ROWS_AT_ONCE: Final = 1 << 16
"""Rows of which columns are made at once, unless the caller says so: what a batch costs is shared."""

LARGE_BYTES: Final = 16 * MIB
"""Fragments of more bytes are worked on one after the other."""
LOCAL_AHEAD_BYTES: Final = 8 * MIB
LEAST_THREADS: Final = 8
MADE_AHEAD_BYTES: Final = 8 * MIB
FEW_ROWS: Final = 8192
SMALL_BYTES: Final = 256 * KIB
"""Batches of fewer rows and bytes are put together: a batch costs, however small it is."""


@dataclass(frozen=True, slots=True)
class Place:
    """The number of a batch in its fragment, counted from 0."""

    fragment: FragmentId
    batch: int


class Maker(Protocol):
    """Makes new columns for rows of the table."""

    @property
    def inputs(self) -> Projection:
        """Return what it needs of the table."""

    @property
    def in_order(self) -> bool:
        """Tell whether it must be given all batches one after the other."""

    def make(self, batch: pa.RecordBatch, place: Place) -> pa.RecordBatch:
        """Return the new columns of the rows of a batch."""


@dataclass(frozen=True, slots=True)
class ColumnsTask:
    """Writes new columns for each fragment of a version; it pickles if its maker does.

    ``with_blobs``: the maker gets blobs of version 2 with their bytes, as a writer takes them.
    """

    snapshot: Snapshot
    files: ColumnFiles
    maker: Maker
    batch_rows: int
    with_blobs: bool = False

    @property
    def count(self) -> int:
        """Return how many fragments there are."""
        return len(self.snapshot.manifest.fragments)

    def run(self, number: int) -> Fragment:
        """Write the columns of the fragment of that number; return it with one file more."""
        fragment = self.snapshot.manifest.fragments[number]
        reader = FragmentReader(self.snapshot, fragment)
        ref = self.files.write(reader, _gathered(self._made(fragment)))
        return replace(fragment, files=(*fragment.files, ref), physical_rows=reader.physical_rows())

    @property
    def threads(self) -> int:
        """Return how many fragments are worked on at once.

        A large one is enough to do for all processors: its pages are decoded and encoded, and its
        columns made, on threads; several would take more memory, and no less time.  Of small ones
        most of the time goes by until the disk, or the store, has the new file.
        """
        fragments = self.snapshot.manifest.fragments
        is_large = any(self._is_large(fragment) for fragment in fragments)
        return 1 if self.maker.in_order or is_large else max(processors(), LEAST_THREADS)

    def _is_large(self, fragment: Fragment) -> bool:
        """Tell whether a fragment has many bytes, on a disk of this machine."""
        stored = sum(file.size_bytes or 0 for file in fragment.files)
        return stored > LARGE_BYTES and not self.snapshot.is_remote

    def _made(self, fragment: Fragment) -> Iterator[pa.RecordBatch]:
        """Yield the new columns of the live rows."""
        moves_blobs = has_blobs_v2(self.files.schema) or self.with_blobs
        read = read_inputs(
            self.snapshot, fragment, self.maker.inputs, self.batch_rows, with_blobs=moves_blobs
        )
        batches = enumerate(read)
        work = partial(self._make, fragment)
        if self.maker.in_order or not self._is_large(fragment):
            return map(work, batches)
        return map_in_order(work, batches, _bytes, MADE_AHEAD_BYTES, PoolSpec("makers"))

    def _make(self, fragment: Fragment, numbered: tuple[int, pa.RecordBatch]) -> pa.RecordBatch:
        number, batch = numbered
        made = self.maker.make(batch, Place(fragment.id, number))
        check_made(made, self.files.schema, batch.num_rows)
        return made


def read_inputs(
    snapshot: Snapshot,
    fragment: Fragment,
    inputs: Projection,
    batch_rows: int,
    *,
    with_blobs: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield columns of the live rows of a fragment; ``with_blobs``: those of version 2 with their bytes, as a writer takes them."""
    tasks = tuple(plan_tasks(snapshot, [fragment]))
    whole = None
    if with_blobs:
        inputs, whole = to_rewrite(snapshot, inputs)
    scan = Scan(snapshot, inputs, tasks)
    ahead = READ_AHEAD_BYTES if scan.is_remote else LOCAL_AHEAD_BYTES
    read = exact_batches(read_batches(scan, batch_rows, ahead))
    return iter(read if whole is None else whole(read))


def _bytes(numbered: tuple[int, pa.RecordBatch]) -> int:
    return int(numbered[1].nbytes)


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in fewer batches where they are very small."""
    waiting: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size_bytes += batch.nbytes
        if rows >= FEW_ROWS or size_bytes >= SMALL_BYTES:
            yield pa.concat_batches(waiting) if len(waiting) > 1 else batch
            waiting, rows, size_bytes = [], 0, 0
    if waiting:
        yield pa.concat_batches(waiting)


def check_made(made: pa.RecordBatch, schema: Schema, rows: int) -> None:
    """Raise SchemaMismatchError unless new columns are those announced, with so many rows."""
    if made.num_rows != rows:
        message = f"new columns need a row for each of {rows} rows, but they have {made.num_rows}"
        raise SchemaMismatchError(message)
    if set(made.schema.names) != set(schema.names):
        message = f"columns {schema.names} were announced, but there are {made.schema.names}"
        raise SchemaMismatchError(message)


def rows_at_once(inputs: pa.Schema) -> int:
    """Return how many rows with these columns columns are made of at once."""
    by_width = DEFAULT_BATCH_BYTES // max(row_bytes(inputs), 1)
    return max(min(by_width, MOST_ROWS_AT_ONCE), 1)
