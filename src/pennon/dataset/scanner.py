"""A scan that is described but not yet run: pylance's ``LanceScanner``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from pennon.blob.columns import BytesOfBlobs
from pennon.blob.pandas import blob_paths, check_blob_mode, frame_with_files
from pennon.compat.arguments import row_numbers
from pennon.compat.arrow_bases import ArrowScanner
from pennon.compat.option_types import BlobMode, PandasOptions
from pennon.core.cached_property import cached_property
from pennon.core.extras import not_installed
from pennon.core.telemetry import TELEMETRY, begin_scan, end_scan, measured_rows
from pennon.encoding.exact_batches import exact_batches, exact_table
from pennon.errors import ArgumentError, OutOfRangeError
from pennon.scan.plan.query import ScanOptions as ScanOptions
from pennon.scan.projection import MetaColumn
from pennon.scan.run.page_scan import PageScan
from pennon.scan.snapshot import Snapshot
from pennon.schema.check import is_blob_v2

if TYPE_CHECKING:
    from pennon.dataset.base import DatasetBase
    from pennon.scan.answer import Answer


class LanceScanner(ArrowScanner):
    """Reads rows of one version of a table; every method starts the scan anew.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> scan = ds.scanner(columns=["id"], filter="id > 1")
    >>> scan.to_table()["id"].to_pylist(), scan.count_rows()
    ([2, 3], 2)
    """

    def __init__(self, dataset: DatasetBase, snapshot: Snapshot, options: ScanOptions) -> None:
        """Describe the scan; nothing is read yet."""
        self._ds = dataset
        self._snapshot = snapshot
        self._options = options
        self._scan  # noqa: B018 - wrong columns are found now, not at the first batch

    def __reduce__(
        self,
    ) -> tuple[type[LanceScanner], tuple[DatasetBase, Snapshot, ScanOptions]]:
        """Pickle the description; the other side starts the scan anew."""
        return LanceScanner, (self._ds, self._snapshot, self._options)

    @cached_property
    def _scan(self) -> PageScan | Answer[Any]:
        """Return the scan of pages, or of what a search finds."""
        if self._options.search is None:
            return PageScan(self._snapshot, self._options)
        from pennon.scan.answer import answer_search  # noqa: PLC0415 - saves what searches: most scans do not

        return answer_search(self._snapshot, self._options)

    @cached_property
    def projected_schema(self) -> pa.Schema:
        """Return the schema of the rows that come out.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.scanner(columns={"half": "id / 2"}).projected_schema.names
        ['half']
        """
        blobs = self._bytes_of_blobs
        return self._scan.schema if blobs is None else blobs.schema

    @cached_property
    def _bytes_of_blobs(self) -> BytesOfBlobs | None:
        """Return what fetches blobs, where a scan of data files cannot: for those of version 2."""
        if not self._options.blobs_as_bytes:
            return None
        query = self._scan.query
        read = [query.scan.projection, *query.inputs]
        fields = chain.from_iterable(each.read.walk() for each in read)
        if not any(map(is_blob_v2, fields)):
            return None
        columns = self._options.columns
        sources = columns if isinstance(columns, Mapping) else {}
        shown = self._with(blobs_as_bytes=False).projected_schema
        return BytesOfBlobs(self._snapshot, shown, sources)

    @property
    def dataset_schema(self) -> pa.Schema:
        """Return the schema of the table.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.scanner(columns={"half": "id / 2"}).dataset_schema.names
        ['id']
        """
        return self._ds.schema

    def to_table(self) -> pa.Table:
        """Read all rows into a table.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.scanner(filter="id > 1").to_table()["id"].to_pylist()
        [2, 3]
        """
        found = self._read_table() if not TELEMETRY.is_on else self._measured_table()
        is_cut = self._options.limit is not None or self._options.offset > 0
        return exact_table(found) if is_cut else found

    def _measured_table(self) -> pa.Table:
        work = begin_scan(self._snapshot.store.uri)
        try:
            found = self._read_table()
        except BaseException as error:
            end_scan(work, 0, error)
            raise
        end_scan(work, found.num_rows)
        return found

    def _read_table(self) -> pa.Table:
        """Return the rows; where there is a limit, chunks may be slices of larger ones."""
        if self._bytes_of_blobs is not None:
            return pa.Table.from_batches(self.to_batches(), self.projected_schema)
        return self._scan.read()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows batch by batch; closing the iterator early stops the work.

        Each batch begins at offset 0, in buffers of its own size.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> [batch.num_rows for batch in ds.scanner(batch_size=2).to_batches()]
        [2, 1]
        """
        batches = exact_batches(self._cut_batches())
        if not TELEMETRY.is_on:
            return batches
        return measured_rows(batches, begin_scan(self._snapshot.store.uri))

    def _cut_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches; some are slices of larger ones."""
        if self._bytes_of_blobs is not None:
            described = self._with(blobs_as_bytes=False, with_row_address=True)
            return self._bytes_of_blobs.convert(described.to_batches())
        return self._scan.batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a `pyarrow.RecordBatchReader` of the rows.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.scanner().to_reader().read_next_batch().num_rows
        3
        """
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows as an Arrow C stream."""
        reader: Any = self.to_reader()
        return reader.__arrow_c_stream__(requested_schema)

    def to_pandas(self, *, blob_mode: BlobMode = "lazy", **kwargs: Unpack[PandasOptions]) -> Any:
        """Read all rows into a pandas frame; ``kwargs`` go to `pyarrow.Table.to_pandas`.

        ``blob_mode``: blobs are files that read when they are asked (``lazy``), ``bytes``, or
        ``descriptions`` of where they lie.  Raises ModuleNotFoundError if pandas is not installed.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> len(ds.scanner(filter="id > 1").to_pandas())
        2
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
        """Return the number of rows of the scan; without a condition no column is read.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.scanner(filter="id > 1").count_rows()
        2
        """
        return self._scan.count()

    def fragment_ids(self) -> set[int]:
        """Return the ids of the fragments that the scan reads: in those rows may pass its filter.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.scanner(filter="_rowaddr < 2").fragment_ids()
        {0}
        """
        if isinstance(self._scan, PageScan):
            return self._scan.fragment_ids()
        message = "a search asks indices for rows, not fragments"
        raise ArgumentError(message)

    def head(self, num_rows: int) -> pa.Table:
        """Return the first ``num_rows`` rows as a table.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.scanner(filter="id > 1").head(1)["id"].to_pylist()
        [2]
        """
        limit = num_rows if self._options.limit is None else min(num_rows, self._options.limit)
        return self._with(limit=limit).to_table()

    def scan_batches(self) -> list[pa.RecordBatch]:
        """Return all batches.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> [batch.num_rows for batch in ds.scanner(batch_size=2).scan_batches()]
        [2, 1]
        """
        return list(self.to_batches())

    def take(self, indices: Any) -> pa.Table:
        """Return rows of the scan by their number, in the order given; batches behind the last are not read.

        `LanceDataset.take` finds rows of the table without reading others.  Raises OutOfRangeError for a number
        that the scan does not reach.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.scanner(filter="id > 1").take([1, 0])["id"].to_pylist()
        [3, 2]
        """
        rows = row_numbers(indices)
        wanted = int(rows.max()) + 1 if len(rows) else 0
        limit = wanted if self._options.limit is None else min(wanted, self._options.limit)
        found = self._with(limit=limit).to_table()
        if found.num_rows < wanted:
            message = f"the scan has {found.num_rows} rows, and no row {wanted - 1}"
            raise OutOfRangeError(message)
        return found.take(pa.array(rows))

    def explain_plan(self, verbose: bool = False) -> str:
        """Return the plan as text: what is read, and what is done with it.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> print(ds.scanner(filter="id > 1").explain_plan())
        LanceRead: uri=memory://..., projection=[id], fragments=1 of 1, rows=3 of 3, full_filter=id > 1
        """
        return self._scan.explain(self._ds.uri, verbose=verbose)

    def analyze_plan(self, count_rows: bool = False) -> str:
        """Run the scan, drop its rows, and return the plan with what was read and how long it took.

        ``count_rows``: count the rows instead.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> print(ds.scanner(filter="id > 1").analyze_plan())
        Scanned: rows=2, elapsed=...ms
        LanceRead: uri=memory://..., full_filter=id > 1, metrics=[output_rows=2, ..., rows_scanned=3]
        """
        return self._scan.analyze(self._ds.uri, counts=count_rows)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the plan, and the columns that come out; nothing is read."""
        from pennon.dataset.notebook import scanner_html  # noqa: PLC0415 - saves HTML where no notebook is

        return scanner_html(self, self._ds.uri)

    @staticmethod
    def from_dataset(dataset: Any, **options: Any) -> Any:
        """Return the scan of a dataset: its method ``scanner`` with these options.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> pennon.LanceScanner.from_dataset(ds, filter="id > 2").count_rows()
        1
        """
        return dataset.scanner(**options)

    @staticmethod
    def from_fragment(fragment: Any, *, schema: pa.Schema | None = None, **options: Any) -> Any:
        """Return the scan of one fragment: its method ``scanner`` with these options.

        ``schema``: pyarrow's fragments are given one; those of Pennon have the table's.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> pennon.LanceScanner.from_fragment(ds.get_fragments()[0], columns=["id"]).count_rows()
        3
        """
        return fragment.scanner(**options)

    @staticmethod
    def from_batches(
        source: Any, *, schema: pa.Schema | None = None, **options: Any
    ) -> pa.dataset.Scanner:
        """Return pyarrow's scan of batches that are no table's: an iterator with its schema, or a reader.

        >>> rows = pa.table({"id": [1, 2, 3]})
        >>> pennon.LanceScanner.from_batches(rows.to_batches(), schema=rows.schema).count_rows()
        3
        """
        theirs: Any = ArrowScanner
        return theirs.from_batches(source, schema=schema, **options)
