"""A table at one of its versions: pylance's ``LanceDataset``."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any

import pyarrow as pa

from pennon import ops
from pennon.compat.arguments import check_arrow_options, check_columns, row_ids, row_numbers
from pennon.dataset.blobs import DatasetBlobs
from pennon.dataset.columns import DatasetColumns
from pennon.dataset.embeddings import DatasetEmbeddings
from pennon.dataset.fragment import LanceFragment
from pennon.dataset.indices import DatasetIndices
from pennon.dataset.maintenance import DatasetMaintenance
from pennon.dataset.operation import LanceOperation as LanceOperation
from pennon.dataset.operation import Transaction as Transaction
from pennon.dataset.rows import DatasetRows
from pennon.dataset.scanner import LanceScanner as LanceScanner
from pennon.dataset.scanner_builder import ScannerBuilder as ScannerBuilder
from pennon.dataset.transactions import DatasetTransactions
from pennon.dataset.versions import DatasetVersions
from pennon.errors import ArgumentError
from pennon.scan.plan.take_plan import plan_take
from pennon.scan.read.tasks import live_row_counts
from pennon.scan.run.take import take_batches, take_offsets, take_row_ids
from pennon.scan.validate import validate

_RENAMED = {"full_text_query": "full_text_search", "index_segments": "with_index_segments"}
_ROW_COLUMNS = ("with_row_id", "with_row_address")
_APART = {"self", "arrow_options", "fragments", "row_addr_allowlist", "row_addr_blocklist"}


class LanceDataset(
    DatasetBlobs,
    DatasetRows,
    DatasetColumns,
    DatasetEmbeddings,
    DatasetIndices,
    DatasetVersions,
    DatasetTransactions,
    DatasetMaintenance,
):
    """One version of a table.  It pickles, and may be shared by threads.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}), uri)
    >>> ds.to_table(columns=["name"], filter="id > 1")["name"].to_pylist()
    ['b', 'c']
    """

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.count_rows()

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

    # Scans

    def scanner(
        self,
        columns: list[str] | dict[str, str] | None = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Any = None,
        batch_size: int | None = None,
        batch_size_bytes: int | None = None,
        batch_readahead: int | None = None,
        fragment_readahead: int | None = None,
        scan_in_order: bool | None = None,
        fragments: Iterable[LanceFragment] | None = None,
        index_segments: Any = None,
        full_text_query: Any = None,
        *,
        prefilter: bool | None = None,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        use_stats: bool | None = None,
        fast_search: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: Any = None,
        blob_handling: str | None = None,
        use_scalar_index: bool | None = None,
        include_deleted_rows: bool | None = None,
        scan_stats_callback: Any = None,
        strict_batch_size: bool | None = None,
        order_by: Any = None,
        disable_scoring_autoprojection: bool | None = None,
        row_addr_allowlist: bytes | None = None,
        row_addr_blocklist: bytes | None = None,
        **arrow_options: Any,
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
        columns: list[str] | dict[str, str] | None = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Any = None,
        batch_size: int | None = None,
        **options: Any,
    ) -> pa.Table:
        """Read rows into a table; the arguments are those of `scanner`.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.to_table(filter="id > 1").to_pydict()
        {'id': [2, 3]}
        """
        options = self._with_row_columns(options)
        scanner = self.scanner(columns, filter, limit, offset, nearest, batch_size, **options)
        return scanner.to_table()

    def to_batches(
        self,
        columns: list[str] | dict[str, str] | None = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Any = None,
        batch_size: int | None = None,
        **options: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Read rows batch by batch; the arguments are those of `scanner`.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> [batch.num_rows for batch in ds.to_batches(batch_size=2)]
        [2, 1]
        """
        options = self._with_row_columns(options)
        scanner = self.scanner(columns, filter, limit, offset, nearest, batch_size, **options)
        return scanner.to_batches()

    def _with_row_columns(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return options with those of the defaults that add columns to the ones that are named."""
        defaults = self._default_scan_options or {}
        return {**{k: defaults[k] for k in _ROW_COLUMNS if k in defaults}, **options}

    def to_pandas(
        self,
        columns: list[str] | dict[str, str] | None = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Any = None,
        batch_size: int | None = None,
        *,
        blob_mode: str = "lazy",
        **options: Any,
    ) -> Any:
        """Read rows into a pandas frame.

        The arguments are those of `scanner`; others go to `pyarrow.Table.to_pandas`.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> int(ds.to_pandas()["id"].sum())
        6
        """
        known = signature(self.scanner).parameters
        ours = {name: options.pop(name) for name in list(options) if name in known}
        ours = self._with_row_columns(ours)
        scanner = self.scanner(columns, filter, limit, offset, nearest, batch_size, **ours)
        return scanner.to_pandas(blob_mode=blob_mode, **options)

    def hybrid_search(
        self,
        nearest: Mapping[str, Any],
        full_text_query: Any,
        k: int = 10,
        *,
        columns: list[str] | dict[str, str] | None = None,
        filter: Any = None,
        prefilter: bool = False,
        candidates: int | None = None,
        constant: float = 60,
        with_row_id: bool = False,
        with_row_address: bool = False,
        fast_search: bool = False,
        use_scalar_index: bool = True,
    ) -> pa.Table:
        """Return the ``k`` best rows of a search for near vectors and one in texts, best first.

        A row's ``_relevance_score`` is the sum of ``1 / (constant + rank)`` over the searches that found it (reciprocal
        rank fusion); ``_distance`` and ``_score`` stand beside it, NULL where that search did not find the row.
        ``nearest`` and ``full_text_query`` are those of `scanner`, as are the other arguments; ``candidates``: so many
        rows are asked of each search, by default ``k``.

        >>> import pennon, pyarrow as pa
        >>> vectors = pa.array([[0.0, 1.0], [1.0, 0.0]], pa.list_(pa.float32(), 2))
        >>> rows = pa.table({"text": ["a red fox", "a blue whale"], "vec": vectors})
        >>> ds = pennon.write_dataset(rows, "memory://hybrid/texts.lance")
        >>> near = {"column": "vec", "q": [0.0, 1.0]}
        >>> words = {"query": "whale", "columns": ["text"]}
        >>> ds.hybrid_search(near, words, k=2, columns=["text"])["text"].to_pylist()
        ['a blue whale', 'a red fox']

        Raises ArgumentError for what cannot be answered.
        """
        from pennon.scan.search.fusion import Fusion  # noqa: PLC0415 - saves what searches: most scans do not

        fusion = Fusion.of(k, candidates, constant)
        builder = ScannerBuilder(self).apply_defaults({"nearest": nearest})
        builder.full_text_search(full_text_query).prefilter(prefilter).fast_search(fast_search)
        builder.with_row_id(with_row_id).with_row_address(with_row_address)
        builder.use_scalar_index(use_scalar_index)
        if columns is not None:
            builder.columns(columns)
        if filter is not None:
            builder.filter(filter)
        return builder.fuse(fusion).to_scanner().to_table()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export all rows as an Arrow C stream."""
        return self.scanner().__arrow_c_stream__(requested_schema)

    def head(self, num_rows: int, **kwargs: Any) -> pa.Table:
        """Read the first ``num_rows`` rows into a table.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.head(2)["id"].to_pylist()
        [1, 2]
        """
        return self.scanner(**{**kwargs, "limit": num_rows}).to_table()

    def slice(
        self, start: int, end: int, columns: list[str] | dict[str, str] | None = None
    ) -> pa.Table:
        """Read the rows ``start <= row < end``.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.slice(1, 3)["id"].to_pylist()
        [2, 3]
        """
        if start < 0 or end < start:
            message = f"a slice needs 0 <= start <= end, got start {start} and end {end}"
            raise ArgumentError(message)
        return self.scanner(columns, offset=start, limit=end - start).to_table()

    def count_rows(self, filter: Any = None, **kwargs: Any) -> int:
        """Return the number of rows that pass the filter.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.count_rows(), ds.count_rows("id > 1")
        (3, 2)
        """
        if filter is not None or kwargs:
            return self.scanner(columns=[], filter=filter, **kwargs).count_rows()
        return sum(live_row_counts(self._snapshot))

    def aggregate(self, measures: Mapping[str, str | Sequence[str]]) -> dict[str, Any]:
        """Return counts, least and greatest values of whole columns.

        ``measures``: columns, each with ``count`` (of values that are not NULL), ``null_count``, ``min``, ``max``,
        or several of them; ``*`` with ``count``.  NaN is the greatest number.  What the manifest and statistics
        know (`write_dataset(auto_statistics=True)`) is not read: of fragments without deleted rows, and of numbers
        but floats, times and booleans.

        >>> import pennon, pyarrow as pa, tempfile
        >>> uri = tempfile.mkdtemp() + "/t.lance"
        >>> table = pennon.write_dataset(pa.table({"price": [3, 912, None]}), uri, auto_statistics=True)
        >>> table.aggregate({"price": ["min", "max"], "*": "count"})
        {'min(price)': 3, 'max(price)': 912, 'count(*)': 3}

        Raises ArgumentError for what there is not, ColumnTypeError for values without an order.
        """
        from pennon.scan.run.aggregates import aggregates_of  # noqa: PLC0415 - saves indices at open

        return aggregates_of(self._snapshot, measures)

    # Single rows

    def take(self, indices: Any, columns: list[str] | dict[str, str] | None = None) -> pa.Table:
        """Read rows by their number, in the order given; any row more than once.

        Raises OutOfRangeError for a row that the table does not have.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.take([2, 0])["id"].to_pylist()
        [3, 1]
        """
        plan = plan_take(self._snapshot, check_columns(columns))
        take = partial(take_offsets, self._snapshot, plan)
        return pa.Table.from_batches(take_batches(take, row_numbers(indices)))

    def _take_rows(
        self, row_ids_or_addresses: Any, columns: list[str] | dict[str, str] | None = None, **_: Any
    ) -> pa.Table:
        """Read rows by ``_rowid``, in the order given; deleted rows are left out."""
        plan = plan_take(self._snapshot, check_columns(columns))
        take = partial(take_row_ids, self._snapshot, plan)
        return pa.Table.from_batches(take_batches(take, row_ids(row_ids_or_addresses)))

    def sample(
        self,
        num_rows: int,
        columns: list[str] | dict[str, str] | None = None,
        randomize_order: bool = True,
        **kwargs: Any,
    ) -> pa.Table:
        """Read rows chosen at random, none twice; ``kwargs`` go to `take`.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.sample(2).num_rows
        2
        """
        chosen = random.sample(range(self.count_rows()), num_rows)
        return self.take(chosen if randomize_order else sorted(chosen), columns, **kwargs)

    # Fragments

    def get_fragments(self, filter: Any = None) -> list[LanceFragment]:
        """Return all fragments.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri, max_rows_per_file=2)
        >>> [fragment.count_rows() for fragment in ds.get_fragments()]
        [2, 1]
        """
        if filter is not None:
            message = "get_fragments takes no filter"
            raise ArgumentError(message)
        fragments = self._snapshot.manifest.fragments
        return [LanceFragment(self, None, fragment=fragment) for fragment in fragments]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """Return the fragment with that id, or None.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.get_fragment(0).count_rows()
        3
        """
        found = self._snapshot.manifest.fragment(fragment_id)
        return None if found is None else LanceFragment(self, None, fragment=found)

    def fragment_ids(self) -> set[int]:
        """Return the ids of all fragments.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri, max_rows_per_file=2)
        >>> ds.fragment_ids()
        {0, 1}
        """
        return {fragment.id for fragment in self._snapshot.manifest.fragments}

    def validate(self, *, repair: bool = False) -> None:
        """Raise FormatError or NotFoundError if something of this version is missing or wrong.

        An index that does not find a few rows of each fragment by their values is wrong;
        ``optimize.optimize_indices()`` makes it anew.

        ``repair``: what a manifest says wrong of good files of version 0.1 is put right first, in a
        version of its own, to which this handle turns: field ids that do not ascend, dictionaries
        that were left out, sizes.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.validate()
        """
        if repair:
            self._snapshot = self._snapshot.at(ops.repair_manifest(self._snapshot))
        validate(self._snapshot)
        ops.check_indices(self._snapshot)

    # Writes

    def insert(self, data: Any, *, mode: str = "append", **kwargs: Any) -> None:
        """Append rows to the table, and turn this handle to the version made.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.insert(pa.table({"id": [4]}))
        >>> ds.version, ds.count_rows()
        (2, 4)
        """
        from pennon.dataset.write import WriteOptions, write_version  # noqa: PLC0415 - saves writers at open

        schema = kwargs.pop("schema", None)
        options = WriteOptions.named({"mode": mode, **kwargs})
        self._snapshot = write_version(data, self, schema, options)

    _get_fragments = get_fragments
