"""A scan that reads pages of data files: read whole, batch by batch, counted, explained."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from pennon.core.cached_property import cached_property
from pennon.scan.metrics import Meter, ScanReport
from pennon.scan.plan.query import BoundQuery, ScanOptions, batch_rows, bind_query, plan_query
from pennon.scan.read.batches import rebatch
from pennon.scan.read.execute import READ_AHEAD_BYTES
from pennon.scan.read.tasks import BATCH_ROWS_VARIABLE
from pennon.scan.run.counting import count_rows
from pennon.scan.run.explain import analyze, explain
from pennon.scan.run.filter import count_query, read_query, read_query_batches
from pennon.scan.run.sort import read_in_order
from pennon.scan.snapshot import Snapshot


class BoundScan(Protocol):
    """A scan of one version: of pages (`PageScan`), or of what a search finds (`pennon.scan.answer.Answer`)."""

    @property
    def query(self) -> BoundQuery:
        """Return what is read of stored columns, without tasks."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of what comes out."""
        ...

    def read(self) -> pa.Table:
        """Return the rows; where there is a limit, chunks may be slices of larger ones."""
        ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows in batches; some may be slices of larger ones."""
        ...

    def count(self) -> int:
        """Return how many rows come out."""
        ...

    def explain(self, uri: str, *, verbose: bool) -> str:
        """Return the plan as text; ``verbose`` with how pages are read."""
        ...

    def analyze(self, uri: str, *, counts: bool) -> str:
        """Run the scan, and return the plan with what was read and how long it took; ``counts``: rows are counted."""
        ...


class PageScan:
    """A scan of pages, bound to a version; every method starts it anew."""

    def __init__(self, snapshot: Snapshot, options: ScanOptions) -> None:
        """Bind a scan.  Raises ArgumentError for what the table does not have."""
        self._options = options
        self.query: BoundQuery = bind_query(snapshot, options)

    @property
    def schema(self) -> pa.Schema:
        """See `BoundScan.schema`."""
        return self.query.schema

    def read(self) -> pa.Table:
        """See `BoundScan.read`."""
        query, report = self._planned(self.query)
        with report:
            return read_in_order(query) if query.orderings else read_query(query)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """See `BoundScan.batches`."""
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
        """See `BoundScan.count`; without a condition no column is read."""
        if self._options.report is None:
            return count_rows(self._unordered, self._options.fragments)
        query, report = self._planned(self._unordered)
        with report:
            return count_query(query)

    def explain(self, uri: str, *, verbose: bool) -> str:
        """See `BoundScan.explain`."""
        query = plan_query(self.query, self._options.fragments)
        return str(explain(uri, query, verbose=verbose))

    def analyze(self, uri: str, *, counts: bool) -> str:
        """See `BoundScan.analyze`."""
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

    def _planned(self, query: BoundQuery) -> tuple[BoundQuery, AbstractContextManager[object]]:
        """Return a query with its tasks, and the block to run it in: see `measured`."""
        snapshot, report = measured(query.snapshot, self._options)
        return plan_query(query.reading(snapshot), self._options.fragments), report


def measured(
    snapshot: Snapshot, options: ScanOptions
) -> tuple[Snapshot, AbstractContextManager[object]]:
    """Return the snapshot that a scan reads, and the block to run it in, which tells the callback what was read.

    Without a callback this is the snapshot that was given, and a block that does nothing.
    """
    if options.report is None:
        return snapshot, nullcontext()
    meter = Meter(snapshot.store.limits, remembers=True)
    return snapshot.metered(meter), ScanReport(meter, options.report)


def _within(
    block: AbstractContextManager[object], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield batches in a block."""
    with block:
        yield from batches
