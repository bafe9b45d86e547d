"""A scan that is described but not yet run: pylance's ``LanceScanner``."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pennon.blob.columns import BytesOfBlobs
from pennon.blob.pandas import blob_paths, check_blob_mode, frame_with_files
from pennon.compat.arrow_bases import ArrowScanner
from pennon.core.cached_property import cached_property
from pennon.core.extras import not_installed
from pennon.encoding.exact_batches import exact_batches, exact_table
from pennon.encoding.large_columns import combined
from pennon.errors import ArgumentError, UnsupportedError
from pennon.index.files import watched
from pennon.scan.metrics import Meter, ScanReport
from pennon.scan.plan.query import BoundQuery, TextSearch, batch_rows, bind_query, plan_query
from pennon.scan.plan.query import ScanOptions as ScanOptions
from pennon.scan.projection import MetaColumn
from pennon.scan.read.batches import rebatch
from pennon.scan.read.execute import READ_AHEAD_BYTES
from pennon.scan.read.tasks import BATCH_ROWS_VARIABLE
from pennon.scan.run.counting import count_rows
from pennon.scan.run.explain import analyze, explain, index_metrics, metrics, text_of_lines
from pennon.scan.run.filter import count_query, read_query, read_query_batches
from pennon.scan.run.sort import read_in_order
from pennon.scan.snapshot import Snapshot
from pennon.schema.check import is_blob_v2

if TYPE_CHECKING:
    from pennon.dataset.base import DatasetBase
    from pennon.scan.search.full_text import TextScan
    from pennon.scan.search.nearest import NearestScan


class LanceScanner(ArrowScanner):
    """Reads rows of one version of a table; every method starts the scan anew."""

    def __init__(self, dataset: DatasetBase, snapshot: Snapshot, options: ScanOptions) -> None:
        """Describe the scan; nothing is read yet."""
        self._ds = dataset
        self._snapshot = snapshot
        self._options = options
        self._query  # noqa: B018 - wrong columns are found now, not at the first batch

    def __reduce__(
        self,
    ) -> tuple[type[LanceScanner], tuple[DatasetBase, Snapshot, ScanOptions]]:
        """Pickle the description; the other side starts the scan anew."""
        return LanceScanner, (self._ds, self._snapshot, self._options)

    @cached_property
    def _query(self) -> BoundQuery:
        """Return the query without tasks."""
        search = self._search
        return bind_query(self._snapshot, self._options) if search is None else search.query

    @cached_property
    def _search(self) -> TextScan | NearestScan | None:
        """Return the search in texts, or for near vectors, if the scan is one."""
        return None if self._options.search is None else self._search_in(self._snapshot)

    def _search_in(self, snapshot: Snapshot) -> TextScan | NearestScan:
        """Return the search of a version, whose reads may be counted."""
        search = self._options.search
        if search is None:
            message = "this scan searches nothing"
            raise ArgumentError(message)
        if isinstance(search, TextSearch):
            from pennon.scan.search.full_text import TextScan  # noqa: PLC0415 - saves what searches: most scans do not

            return TextScan.of(snapshot, self._options)
        from pennon.scan.search.nearest import NearestScan  # noqa: PLC0415 - as above

        return NearestScan(snapshot, self._options, search)

    def _reporting(
        self, search: TextScan | NearestScan
    ) -> tuple[TextScan | NearestScan, ScanReport | None]:
        """Return the search, and what tells the callback, if there is one, what it read."""
        if self._options.report is None:
            return search, None
        meter = Meter(self._snapshot.store.limits, remembers=True)
        metered = self._search_in(self._snapshot.metered(meter))
        return metered, ScanReport(meter, self._options.report)

    @cached_property
    def projected_schema(self) -> pa.Schema:
        """Return the schema of the rows that come out."""
        if self._bytes_of_blobs is not None:
            return self._bytes_of_blobs.schema
        return self._query.schema if self._search is None else self._search.schema

    @cached_property
    def _bytes_of_blobs(self) -> BytesOfBlobs | None:
        """Return what fetches blobs, where a scan of data files cannot: for those of version 2."""
        if not self._options.blobs_as_bytes:
            return None
        read = [self._query.scan.projection, *self._query.inputs]
        fields = chain.from_iterable(each.read.walk() for each in read)
        if not any(map(is_blob_v2, fields)):
            return None
        columns = self._options.columns
        sources = columns if isinstance(columns, Mapping) else {}
        shown = self._with(blobs_as_bytes=False).projected_schema
        return BytesOfBlobs(self._snapshot, shown, sources)

    @property
    def dataset_schema(self) -> pa.Schema:
        """Return the schema of the table."""
        return self._ds.schema

    def to_table(self) -> pa.Table:
        """Read all rows."""
        found = self._read_table()
        is_cut = self._options.limit is not None or self._options.offset > 0
        return exact_table(found) if is_cut else found

    def _read_table(self) -> pa.Table:
        """Return the rows; where there is a limit, chunks may be slices of larger ones."""
        if self._bytes_of_blobs is not None:
            return pa.Table.from_batches(self.to_batches(), self.projected_schema)
        if self._search is not None:
            search, report = self._reporting(self._search)
            if report is None:
                return search.read()
            with report.of_search():
                return search.read()
        query, report = self._planned(self._query)
        with report or nullcontext():
            return read_in_order(query) if query.orderings else read_query(query)

    def _planned(self, query: BoundQuery) -> tuple[BoundQuery, ScanReport | None]:
        """Return a query with its tasks, and what tells the callback, if there is one, what it read."""
        options = self._options
        if options.report is None:
            return plan_query(query, options.fragments), None
        meter = Meter(self._snapshot.store.limits, remembers=True)
        return plan_query(query.metered(meter), options.fragments), ScanReport(
            meter, options.report
        )

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows batch by batch; closing the iterator early stops the work.

        Each batch begins at offset 0, in buffers of its own size.
        """
        return exact_batches(self._cut_batches())

    def _cut_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches; some are slices of larger ones."""
        options = self._options
        if self._bytes_of_blobs is not None:
            described = self._with(blobs_as_bytes=False, with_row_address=True)
            return self._bytes_of_blobs.convert(described.to_batches())
        if self._search is not None:
            rows = batch_rows(self._query, options)
            return iter(combined(self.to_table()).to_batches(max_chunksize=rows))
        query, report = self._planned(self._query)
        rows = batch_rows(query, options)
        batches = self._batches(query, rows)
        found = rebatch(batches, rows) if options.strict_batch_size else batches
        return found if report is None else _reported(found, report)

    def _batches(self, query: BoundQuery, rows: int) -> Iterator[pa.RecordBatch]:
        options = self._options
        if query.orderings:
            return iter(read_in_order(query).to_batches(max_chunksize=rows))
        ahead = options.io_buffer_size or READ_AHEAD_BYTES
        may_cut = options.batch_size is None and BATCH_ROWS_VARIABLE not in os.environ
        return read_query_batches(query, rows, ahead, may_cut=may_cut)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows as an Arrow C stream."""
        reader: Any = self.to_reader()
        return reader.__arrow_c_stream__(requested_schema)

    def to_pandas(self, *, blob_mode: str = "lazy", **kwargs: Any) -> Any:
        """Read all rows into a pandas frame; ``kwargs`` go to `pyarrow.Table.to_pandas`.

        ``blob_mode``: blobs are files that read when they are asked (``lazy``), ``bytes``, or
        ``descriptions`` of where they lie.  Raises ModuleNotFoundError if pandas is not installed.
        """
        if find_spec("pandas") is None:
            raise not_installed("pandas", "to_pandas")
        check_blob_mode(blob_mode)
        if blob_mode == "descriptions" or not blob_paths(self.projected_schema):
            return self.to_table().to_pandas(**kwargs)
        if blob_mode == "bytes":
            return self._with(blobs_as_bytes=True).to_table().to_pandas(**kwargs)
        table = self._with(with_row_address=True).to_table()
        addresses = table.column(MetaColumn.ROW_ADDRESS.value).to_pylist()
        columns = self._options.columns
        sources = columns if isinstance(columns, Mapping) else {}
        shown = table.select(self.projected_schema.names)
        return frame_with_files(self._snapshot, sources, shown, addresses, kwargs)

    def _with(self, **changes: Any) -> LanceScanner:
        """Return the scan with other options."""
        return LanceScanner(self._ds, self._snapshot, replace(self._options, **changes))

    def count_rows(self) -> int:
        """Return how many rows come out; without a condition no column is read."""
        if self._search is not None:
            search, report = self._reporting(self._search)
            with nullcontext() if report is None else report.of_search():
                return search.count()
        if self._options.report is None:
            return count_rows(self._unordered, self._options.fragments)
        query, report = self._planned(self._unordered)
        with report or nullcontext():
            return count_query(query)

    @property
    def _unordered(self) -> BoundQuery:
        return replace(self._query, orderings=()) if self._query.orderings else self._query

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows."""
        limit = num_rows if self._options.limit is None else min(num_rows, self._options.limit)
        return self._with(limit=limit).to_table()

    def scan_batches(self) -> list[pa.RecordBatch]:
        """Return all batches."""
        return list(self.to_batches())

    def take(self, indices: Any) -> pa.Table:
        """Refuse; `LanceDataset.take` does it."""
        message = "a scanner takes no single rows; LanceDataset.take does"
        raise UnsupportedError(message)

    def explain_plan(self, verbose: bool = False) -> str:
        """Return the plan as text: what is read, and what is done with it."""
        if self._search is not None:
            return text_of_lines(self._search.lines(self._ds.uri))
        query = plan_query(self._query, self._options.fragments)
        return explain(self._ds.uri, query, verbose=verbose)

    def analyze_plan(self, count_rows: bool = False) -> str:
        """Run the scan, drop its rows, and return the plan with what was read and how long it took.

        ``count_rows``: count the rows instead.
        """
        options = self._options
        if self._search is not None:
            meter = Meter(self._snapshot.store.limits)
            began = time.perf_counter()
            with watched(meter):
                search = self._search_in(self._snapshot.metered(meter))
                rows = search.count() if count_rows else search.read().num_rows
            elapsed = (time.perf_counter() - began) * 1000
            first, *rest = self._search.lines(self._ds.uri)
            lines = [
                f"Scanned: rows={rows}, elapsed={elapsed:.3f}ms",
                first + metrics(meter),
                *rest,
            ]
            lines[-1] += index_metrics(meter)
            return text_of_lines(lines)

        def run(query: BoundQuery) -> int:
            if count_rows:
                return count_query(query)
            return sum(batch.num_rows for batch in self._batches(query, batch_rows(query, options)))

        query = self._unordered.counting() if count_rows else self._query
        return analyze(self._ds.uri, query, options.fragments, run)

    @staticmethod
    def from_dataset(*_: Any, **__: Any) -> LanceScanner:
        """Refuse; `LanceDataset.scanner` makes scanners."""
        message = "use LanceDataset.scanner"
        raise UnsupportedError(message)

    from_fragment = from_dataset
    from_batches = from_dataset


def _reported(batches: Iterable[pa.RecordBatch], report: ScanReport) -> Iterator[pa.RecordBatch]:
    """Yield batches, and report behind the last one."""
    with report:
        yield from batches
