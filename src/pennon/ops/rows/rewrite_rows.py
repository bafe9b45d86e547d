"""Rows that are written anew: changed, into new fragments, the old ones being deleted.

What a row becomes is the business of a `Maker` (new values for an update, the source's rows for a
merge).  Here rows are read a piece at a time and written as they come, and in tables with stable row
ids each takes its id along.  Rows that are new come last: their ids are given at the commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.thread_pools import map_in_order
from pennon.core.units import MIB
from pennon.ops.blob_rows import RewrittenBlobs
from pennon.ops.convert import without_hidden_values
from pennon.ops.rows.find_rows import Rows
from pennon.ops.write import WriteMode, WriteTask, plan_write, write_fragments
from pennon.scan.plan.filter_columns import REMOTE_ROW_COST_BYTES, ROW_COST_BYTES
from pennon.scan.projection import Projection
from pennon.scan.read.batches import cut_batches, empty_batch
from pennon.scan.read.columns import show_columns
from pennon.scan.read.fragment_reader import FragmentReader, PreparedRead
from pennon.scan.read.late_materialization import Cover
from pennon.scan.read.tasks import bytes_per_row
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.blob import has_blobs_v2
from pennon.schema.version import V0_1, FileVersion
from pennon.table.fragment import Fragment
from pennon.table.row_ids import RowIds
from pennon.table.row_ids.encode_wire import encode_row_ids

PIECE_ROWS: Final = 1 << 16
PIECE_BYTES: Final = 4 * MIB
_AHEAD_BYTES: Final = 2 * PIECE_BYTES


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """Rows that go into new fragments.

    ``old``: where they were, None for rows that are new.  ``source``: their numbers in the data that
    they take values from, if there is any.
    """

    old: Rows | None
    source: Int64Array | None = None

    def __len__(self) -> int:
        if self.old is not None:
            return len(self.old)
        return 0 if self.source is None else len(self.source)

    def cut(self, rows: int) -> Iterator[Moved]:
        """Yield the rows in pieces of at most ``rows``."""
        for start in range(0, len(self), rows):
            part = slice(start, start + rows)
            old = None if self.old is None else replace(self.old, offsets=self.old.offsets[part])
            yield Moved(old, None if self.source is None else self.source[part])


class Maker(Protocol):
    """Says what moved rows become; it pickles."""

    @property
    def needs(self) -> Projection:
        """Return the columns of the old rows that it wants to see."""

    @property
    def row_bytes(self) -> int:
        """Return about how many bytes a row takes that does not come from the old rows."""

    def make(self, old: pa.RecordBatch, moved: Moved) -> pa.RecordBatch:
        """Return the rows as they are written; ``old`` has those columns, or none for new rows."""


@dataclass(frozen=True, slots=True)
class MoveTask:
    """Rows to write, in shares that become files; it pickles."""

    snapshot: Snapshot
    maker: Maker
    write: WriteTask
    shares: tuple[tuple[Moved, ...], ...]

    @property
    def count(self) -> int:
        """Return how many shares there are."""
        return len(self.shares)

    def run(self, number: int) -> list[Fragment]:
        """Write a share, and return its fragments, without ids yet."""
        share = self.shares[number]
        batches = self._batches(share)
        if self.write.version == V0_1:
            batches = map(without_hidden_values, batches)
        fragments = write_fragments(_turned(self.write, number), batches)
        if not self.snapshot.manifest.has_stable_row_ids:
            return fragments
        kept = [moved.old for moved in share if moved.old is not None]
        return with_ids(self.snapshot, fragments, kept) if kept else fragments

    def _batches(self, share: Sequence[Moved]) -> Iterator[pa.RecordBatch]:
        reader = OldRows(self.snapshot, self.maker.needs)

        def work(moved: Moved) -> list[pa.RecordBatch]:
            return list(reader.make(self.maker, moved))

        most = max(PIECE_BYTES // max(self.maker.row_bytes, 1), 1)
        sizes = ((moved, min(reader.rows_at_once(moved), most)) for moved in share)
        pieces = (piece for moved, rows in sizes for piece in moved.cut(rows))
        if reader.has_blobs:  # of which no more than a few are held at a time
            for piece in pieces:
                yield from reader.make(self.maker, piece)
            return
        pool_spec = self.snapshot.pool_spec
        with closing(
            map_in_order(work, pieces, lambda _: PIECE_BYTES, _AHEAD_BYTES, pool_spec)
        ) as made:
            for batches in made:
                yield from batches


def _turned(write: WriteTask, share: int) -> WriteTask:
    """Return the task of a share, whose first file goes to the base path behind that of the share before."""
    at = share % len(write.bases)
    return replace(write, bases=write.bases[at:] + write.bases[:at]) if at else write


def plan_move(
    snapshot: Snapshot,
    maker: Maker,
    moved: Sequence[Moved],
    version: FileVersion | None = None,
) -> MoveTask:
    """Plan to write rows as files of a version, by default the table's.

    ``moved``: rows that are new, if there are any, behind the others.

    Raises ArgumentError or UnsupportedError for a version whose files the table cannot have.
    """
    manifest = snapshot.manifest
    arrow = schema_to_arrow(manifest.schema)
    plan = plan_write(snapshot.store, arrow, WriteMode.APPEND, base=manifest, version=version)
    write = replace(plan.task, schema=manifest.schema)
    shares = tuple(_shares(moved, write.limits.max_rows))
    return MoveTask(snapshot, maker, write, shares)


def _shares(moved: Sequence[Moved], most: int) -> Iterator[tuple[Moved, ...]]:
    """Yield rows in shares of a file each, as far as whole pieces of old fragments fit."""
    share: list[Moved] = []
    rows = 0
    for each in (piece for one in moved for piece in one.cut(most)):
        if share and rows + len(each) > most:
            yield tuple(share)
            share, rows = [], 0
        share.append(each)
        rows += len(each)
    if share:
        yield tuple(share)


class OldRows:
    """Reads rows of fragments, one fragment after the other."""

    def __init__(self, snapshot: Snapshot, needs: Projection) -> None:
        """``needs`` are the columns to read."""
        self._snapshot = snapshot
        self.has_blobs = has_blobs_v2(needs.read)
        self._blobs = RewrittenBlobs(snapshot, needs)
        self._needs = self._blobs.described if self.has_blobs else needs
        self._schema = self._needs.arrow
        self._prepared: tuple[int, PreparedRead] | None = None

    @property
    def names(self) -> list[str]:
        """Return the names of the columns that are read."""
        return list(self._schema.names)

    def rows_at_once(self, moved: Moved) -> int:
        """Return how many rows make a piece."""
        if moved.old is None:
            return PIECE_ROWS
        return max(min(PIECE_ROWS, PIECE_BYTES // bytes_per_row(moved.old.fragment)), 1)

    def make(self, maker: Maker, moved: Moved) -> Iterator[pa.RecordBatch]:
        """Yield what the maker makes of rows."""
        start = 0
        for old in self.read(moved):
            rows = slice(start, start + old.num_rows)
            start += old.num_rows
            source = None if moved.source is None else moved.source[rows]
            yield maker.make(old, Moved(moved.old, source))

    def read(self, moved: Moved) -> Iterator[pa.RecordBatch]:
        """Yield the columns of old rows; of new ones there are none."""
        if moved.old is None:
            yield empty_batch(pa.schema([]), len(moved))
            return
        fields = self._needs.read.fields
        width = bytes_per_row(moved.old.fragment)
        cost = REMOTE_ROW_COST_BYTES if self._snapshot.is_remote else ROW_COST_BYTES
        cover = Cover.of(moved.old.offsets, width, cost * max(len(fields), 1))
        read = self._columns(moved.old.fragment).read(cover.rows)
        wanted = [cover.wanted.pick(chunks) for chunks in read]
        shown = show_columns(self._needs, wanted, None)
        batches = cut_batches(shown, [len(moved)], len(moved), self._schema)
        if not self.has_blobs:
            yield from batches
            return
        first = np.uint64(moved.old.fragment.id << 32)
        for batch in batches:
            yield from self._blobs.whole(batch, first + moved.old.offsets.astype(np.uint64))

    def _columns(self, fragment: Fragment) -> PreparedRead:
        """Return the columns of a fragment; threads may do the same at once."""
        known = self._prepared
        if known is None or known[0] != fragment.id:
            found = FragmentReader(self._snapshot, fragment).prepare(self._needs.read.fields)
            self._prepared = known = fragment.id, found
        return known[1]


def with_ids(
    snapshot: Snapshot, fragments: Sequence[Fragment], kept: Sequence[Rows]
) -> list[Fragment]:
    """Return fragments with the ids of the rows that were written into them, in that order."""
    ids = np.concatenate([_row_ids(snapshot, rows) for rows in kept])
    done, start = [], 0
    for fragment in fragments:
        mine = ids[start : start + (fragment.physical_rows or 0)]
        start += len(mine)
        done.append(replace(fragment, row_ids=encode_row_ids(mine) if len(mine) else None))
    return done


def _row_ids(snapshot: Snapshot, rows: Rows) -> RowIds:
    physical = FragmentReader(snapshot, rows.fragment).physical_rows()
    return snapshot.row_ids(rows.fragment, physical)[rows.offsets]
