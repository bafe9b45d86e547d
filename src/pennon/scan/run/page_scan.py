"""A scan that reads pages of data files: read whole, batch by batch, counted, explained."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.cached_property import cached_property
from pennon.core.fast_dataclass import dataclass
from pennon.core.interpreter_end import check_imports_work
from pennon.index.row_set import RowSet
from pennon.scan.metrics import Meter, reporting
from pennon.scan.plan.query import (
    BoundQuery,
    ScanOptions,
    batch_rows,
    bind_query,
    lookup_of,
    plan_query,
)
from pennon.scan.read.batches import rebatch
from pennon.scan.read.execute import READ_AHEAD_BYTES
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import BATCH_ROWS_VARIABLE
from pennon.scan.run.explain import analyze, explain
from pennon.scan.run.filter import count_query, read_query, read_query_batches
from pennon.scan.run.sort import read_in_order
from pennon.scan.snapshot import Key, Snapshot
from pennon.table.fragment import Fragment

STORED_ROWS: Final[Key[_Stored]] = Key("stored rows")


class PageScan:
    """A scan of pages, bound to a version; every method starts it anew."""

    def __init__(self, snapshot: Snapshot, options: ScanOptions) -> None:
        """Bind a scan.  Raises ArgumentError for what the table does not have."""
        self._options = options
        self.query: BoundQuery = bind_query(snapshot, options)

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of what comes out."""
        return self.query.schema

    def read(self) -> pa.Table:
        """Return the rows; where there is a limit, chunks may be slices of larger ones."""
        query, report = self._planned(self.query)
        with report:
            return read_in_order(query) if query.orderings else read_query(query)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows in batches; some may be slices of larger ones."""
        query, report = self._planned(self.query)
        rows = batch_rows(query, self._options)
        batches = self._batches(query, rows)
        found = rebatch(batches, rows) if self._options.strict_batch_size else batches
        return found if self._options.report is None else _within(report, found)

    def _batches(self, query: BoundQuery, rows: int) -> Iterator[pa.RecordBatch]:
        options = self._options
        if query.orderings:
            return iter(read_in_order(query).to_batches(max_chunksize=rows))
        ahead = options.io_buffer_size or READ_AHEAD_BYTES
        may_cut = options.batch_size is None and BATCH_ROWS_VARIABLE not in os.environ
        return read_query_batches(query, rows, ahead, may_cut=may_cut)

    def count(self) -> int:
        """Return how many rows come out; without a condition no column is read."""
        if self._options.report is None:
            return count_rows(self._unordered, self._options.fragments)
        query, report = self._planned(self._unordered)
        with report:
            return count_query(query)

    def fragment_ids(self) -> set[int]:
        """Return the ids of the fragments in which rows may pass the condition."""
        query = plan_query(self.query, self._options.fragments)
        return {task.fragment.id for task in query.scan.tasks}

    def explain(self, uri: str, *, verbose: bool) -> str:
        """Return the plan as text; ``verbose`` with how pages are read."""
        query = plan_query(self.query, self._options.fragments)
        return str(explain(uri, query, verbose=verbose))

    def analyze(self, uri: str, *, counts: bool) -> str:
        """Run the scan, and return the plan with what was read and how long it took; ``counts``: rows are counted."""
        options = self._options

        def run(query: BoundQuery) -> int:
            if counts:
                return count_query(query)
            return sum(batch.num_rows for batch in self._batches(query, batch_rows(query, options)))

        query = self._unordered.counting() if counts else self.query
        return analyze(uri, query, options.fragments, run)

    @cached_property
    def _unordered(self) -> BoundQuery:
        return replace(self.query, orderings=()) if self.query.orderings else self.query

    def _planned(self, query: BoundQuery) -> tuple[BoundQuery, AbstractContextManager[None]]:
        """Return a query with its tasks, and the block to run it in: see `measured`."""
        snapshot, report = measured(query.snapshot, self._options)
        return plan_query(query.reading(snapshot), self._options.fragments), report


def measured(
    snapshot: Snapshot, options: ScanOptions
) -> tuple[Snapshot, AbstractContextManager[None]]:
    """Return the snapshot that a scan reads, and the block to run it in, which tells the callback what was read.

    Without a callback this is the snapshot that was given, and a block that does nothing.
    """
    if options.report is None:
        return snapshot, nullcontext()
    meter = Meter(snapshot.store.limits, remembers=True)
    return snapshot.metered(meter), reporting(meter, options.report)


def _within(
    block: AbstractContextManager[None], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield batches in a block."""
    with block:
        yield from batches


# --- counting -------------------------------------------------------------------------------------


def count_rows(query: BoundQuery, fragments: Sequence[Fragment] | None = None) -> int:
    """Return how many rows of a query without tasks come out, in the fragments given, by default all.

    Where indices know of every row whether it passes, none is planned or read.
    """
    check_imports_work()
    lookup = lookup_of(query) if fragments is None else None
    if lookup is None:
        return count_query(plan_query(query, fragments))
    found = lookup.ask(query.snapshot)
    if not found.is_exact:
        return count_query(plan_query(query, found=found))
    rows = _count_alive(query.snapshot, found.may)
    return max((rows if query.most is None else min(rows, query.most)) - query.offset, 0)


@dataclass(frozen=True, slots=True, eq=False)
class _Stored:
    """The addresses of all rows of a version, and those fragments some of whose rows are deleted."""

    rows: RowSet
    thinned: tuple[Fragment, ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Stored:
        fragments = snapshot.manifest.fragments
        counts = [FragmentReader(snapshot, each).physical_rows() for each in fragments]
        rows = np.array(counts, np.uint64)
        starts = np.array([each.id for each in fragments], np.uint64)[rows > 0] << np.uint64(32)
        thinned = tuple(each for each in fragments if each.deletion_file is not None)
        return cls(RowSet.of_ranges(starts, starts + (rows[rows > 0] - np.uint64(1))), thinned)


def _count_alive(snapshot: Snapshot, rows: RowSet) -> int:
    """Return how many rows of a set of addresses are there, and not deleted."""
    stored = snapshot.remember(STORED_ROWS, lambda: _Stored.of(snapshot))
    count = rows.count_common(stored.rows)
    for fragment in stored.thinned:
        deleted = FragmentReader(snapshot, fragment).live_rows().deleted.astype(np.uint64)
        count -= int(rows.contains(deleted | np.uint64(fragment.id << 32)).sum())
    return count
