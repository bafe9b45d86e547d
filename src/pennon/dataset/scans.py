"""Reads of a table's rows: the scan, and what a scan becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

import pyarrow as pa

from pennon.compat.arguments import check_arrow_options
from pennon.compat.option_types import (
    ArrowOptions,
    BlobHandling,
    BlobMode,
    Columns,
    Filter,
    HeadKeywords,
    ScanToPandasOptions,
    SomeScanOptions,
)
from pennon.dataset.base import DatasetBase
from pennon.dataset.fragment import LanceFragment
from pennon.dataset.scanner import LanceScanner as LanceScanner
from pennon.dataset.scanner_builder import AllOf, ColumnOrdering
from pennon.dataset.scanner_builder import ScannerBuilder as ScannerBuilder
from pennon.errors import ArgumentError

if TYPE_CHECKING:
    from pennon.index.text.queries import FullTextQuery
    from pennon.scan.metrics import ScanStatistics

_RENAMED = {"full_text_query": "full_text_search", "index_segments": "with_index_segments"}
_ROW_COLUMNS = ("with_row_id", "with_row_address")
_APART = {"self", "arrow_options", "fragments", "row_addr_allowlist", "row_addr_blocklist"}


class DatasetScans(DatasetBase):
    """The methods of a table that read its rows."""

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the rows that scans give.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.schema.names
        ['id']
        """
        if self._default_scan_options:
            return self.scanner().projected_schema
        return super().schema

    def scanner(
        self,
        columns: Columns = None,
        filter: Filter | AllOf = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Iterable[LanceFragment] | None = None,
        index_segments: Iterable[str | UUID] | None = None,
        full_text_query: str | Mapping[str, Any] | FullTextQuery | None = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: BlobHandling | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Callable[[ScanStatistics], object] | None = None,
        strict_batch_size: bool | None = None,
        order_by: Sequence[str | ColumnOrdering] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
        **arrow_options: Unpack[ArrowOptions],
    ) -> LanceScanner:
        """Describe a scan.

        ``columns``: names (``st.x`` reaches into structs), or a dict from new name to column or SQL.
        ``filter``: SQL or a pyarrow expression; its columns are read first, and the others for the
        rows that remain (``late_materialization`` chooses which).  ``limit`` and ``offset`` count
        rows.  ``order_by``: names or `ColumnOrdering`.  Batches have ``batch_size`` rows (8192, fewer
        of wide rows), fewer where what is read together ends unless ``strict_batch_size``.
        ``fragments``: only these, in that order.  ``io_buffer_size``: bytes read ahead.  Where names are
        given, ``with_row_id`` and ``with_row_address`` of ``default_scan_options`` do not count: engines that
        read a pyarrow dataset (DuckDB) get exactly the columns that they name.

        Raises ArgumentError for a column that is not there, UnsupportedError for what is not done
        yet.  Options of pyarrow's own scanners (``use_threads``, ...) are accepted and ignored.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> scan = ds.scanner(columns={"twice": "id * 2"}, filter="id > 1")
        >>> scan.to_table()["twice"].to_pylist()
        [4, 6]
        """
        given = {
            _RENAMED.get(name, name): value
            for name, value in locals().items()
            if value is not None and name not in _APART
        }
        if arrow_options:
            check_arrow_options(arrow_options, self.scanner)
        builder = ScannerBuilder(self)
        if self._default_scan_options:
            defaults = self._default_scan_options
            if columns is not None:
                defaults = {k: v for k, v in defaults.items() if k not in _ROW_COLUMNS}
            builder.apply_defaults(defaults)
        if row_addr_allowlist is not None or row_addr_blocklist is not None:
            builder.row_addr_prefilter(row_addr_allowlist, row_addr_blocklist)
        builder.apply_defaults(given)
        if fragments is not None:
            builder.with_fragments(fragments)
        return builder.to_scanner()

    def to_table(
        self,
        columns: Columns = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        full_text_query: str | Mapping[str, Any] | FullTextQuery | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: BlobHandling | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        strict_batch_size: bool | None = None,
        order_by: Sequence[str | ColumnOrdering] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        **options: Unpack[SomeScanOptions],
    ) -> pa.Table:
        """Read rows into a table; the arguments are those of `scanner`.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.to_table(filter="id > 1").to_pydict()
        {'id': [2, 3]}
        """
        return self._read(locals()).to_table()

    def to_batches(
        self,
        columns: Columns = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        full_text_query: str | Mapping[str, Any] | FullTextQuery | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_handling: BlobHandling | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        strict_batch_size: bool | None = None,
        order_by: Sequence[str | ColumnOrdering] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        **options: Unpack[SomeScanOptions],
    ) -> Iterator[pa.RecordBatch]:
        """Read rows batch by batch; the arguments are those of `scanner`.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> [batch.num_rows for batch in ds.to_batches(batch_size=2)]
        [2, 1]
        """
        return self._read(locals()).to_batches()

    def to_pandas(
        self,
        columns: Columns = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        full_text_query: str | Mapping[str, Any] | FullTextQuery | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | list[str] | None = None,
        blob_mode: BlobMode = "lazy",
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        strict_batch_size: bool | None = None,
        order_by: Sequence[str | ColumnOrdering] | None = None,
        disable_scoring_autoprojection: bool | None = None,
        batch_size_bytes: int | None = None,
        blob_handling: BlobHandling | None = None,
        **options: Unpack[ScanToPandasOptions],
    ) -> Any:
        """Read rows into a pandas frame.

        The arguments are those of `scanner`; others go to `pyarrow.Table.to_pandas`.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> int(ds.to_pandas()["id"].sum())
        6
        """
        said = locals()
        known = signature(self.scanner).parameters
        for_pandas: Any = {name: value for name, value in options.items() if name not in known}
        said["options"] = {name: value for name, value in options.items() if name in known}
        del said["blob_mode"]
        return self._read(said).to_pandas(blob_mode=blob_mode, **for_pandas)

    def _read(self, said: dict[str, Any]) -> LanceScanner:
        """Return the scan for the arguments of a read, all that stand in its signature.

        Row ids and addresses that are on by default come beside the columns that are named, too.
        """
        options = {**said, **said["options"]}
        given = {
            name: value
            for name, value in options.items()
            if value is not None and name not in {"self", "options"}
        }
        defaults = self._default_scan_options or {}
        return self.scanner(**{**{k: defaults[k] for k in _ROW_COLUMNS if k in defaults}, **given})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export all rows as an Arrow C stream."""
        return self.scanner().__arrow_c_stream__(requested_schema)

    def head(self, num_rows: int, **kwargs: Unpack[HeadKeywords]) -> pa.Table:
        """Read the first ``num_rows`` rows into a table.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.head(2)["id"].to_pylist()
        [1, 2]
        """
        return self.scanner(limit=num_rows, **kwargs).to_table()

    def slice(self, start: int, end: int, columns: Columns = None) -> pa.Table:
        """Read the rows ``start <= row < end``.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.slice(1, 3)["id"].to_pylist()
        [2, 3]
        """
        if start < 0 or end < start:
            message = f"a slice needs 0 <= start <= end, got start {start} and end {end}"
            raise ArgumentError(message)
        return self.scanner(columns, offset=start, limit=end - start).to_table()

    def get_fragments(self, filter: Any = None) -> list[LanceFragment]:
        """Return the fragments, by default all; with a filter those in which rows may pass it.

        Row ids and addresses, statistics and indices rule fragments out; no column is read.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri, max_rows_per_file=2)
        >>> [fragment.count_rows() for fragment in ds.get_fragments()]
        [2, 1]
        >>> ds.create_scalar_index("id", "BTREE")
        >>> [fragment.fragment_id for fragment in ds.get_fragments("id > 2")]
        [1]
        """
        fragments = self._snapshot.manifest.fragments
        if filter is not None:
            scan = ScannerBuilder(self).columns([]).filter(filter).to_scanner()
            ids = scan.fragment_ids()
            fragments = tuple(each for each in fragments if each.id in ids)
        return [LanceFragment(self, None, fragment=fragment) for fragment in fragments]
