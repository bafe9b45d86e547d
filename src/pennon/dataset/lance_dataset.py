"""A table at one of its versions: pylance's ``LanceDataset``."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Unpack

import pyarrow as pa

from pennon import ops
from pennon.compat.arguments import check_columns, row_ids, row_numbers
from pennon.compat.bitmap import Bitmap
from pennon.compat.option_types import (
    Columns,
    Filter,
    ScanKeywords,
    WriteKeywords,
    WriteModeName,
)
from pennon.dataset.blobs import DatasetBlobs
from pennon.dataset.columns import DatasetColumns
from pennon.dataset.embeddings import DatasetEmbeddings
from pennon.dataset.fragment import LanceFragment
from pennon.dataset.indices import DatasetIndices
from pennon.dataset.maintenance import DatasetMaintenance
from pennon.dataset.native import NativeDataset
from pennon.dataset.operation import LanceOperation as LanceOperation
from pennon.dataset.operation import Transaction as Transaction
from pennon.dataset.queries import DatasetQueries
from pennon.dataset.rows import DatasetRows
from pennon.dataset.scanner import LanceScanner as LanceScanner
from pennon.dataset.scanner_builder import ScannerBuilder as ScannerBuilder
from pennon.dataset.transactions import DatasetTransactions
from pennon.dataset.versions import DatasetVersions
from pennon.scan.plan.take_plan import plan_take
from pennon.scan.read.tasks import count_live_rows
from pennon.scan.run.take import read_offsets, read_row_ids, take_table
from pennon.scan.validate import validate


class LanceDataset(
    DatasetBlobs,
    DatasetRows,
    DatasetColumns,
    DatasetEmbeddings,
    DatasetIndices,
    DatasetVersions,
    DatasetTransactions,
    DatasetMaintenance,
    DatasetQueries,
):
    """One version of a table.  It pickles, and may be shared by threads.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}), uri)
    >>> ds.to_table(columns=["name"], filter="id > 1")["name"].to_pylist()
    ['b', 'c']
    """

    @property
    def _ds(self) -> NativeDataset:
        """Return the table under the names of pylance's native handle."""
        return NativeDataset(self)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.count_rows()

    def _repr_html_(self) -> str:
        """Return what a notebook shows: version, numbers, columns, and the first rows of a local table.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> "<td>id</td><td>int64</td>" in ds._repr_html_()
        True
        """
        from pennon.dataset.notebook import dataset_html  # noqa: PLC0415 - saves HTML where no notebook is

        return dataset_html(self)

    # Searches and counts

    def hybrid_search(
        self,
        nearest: Mapping[str, Any],
        full_text_query: Any,
        k: int = 10,
        *,
        columns: Columns = None,
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

    def count_rows(self, filter: Filter = None, **kwargs: Unpack[ScanKeywords]) -> int:
        """Return the number of rows that pass the filter.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.count_rows(), ds.count_rows("id > 1")
        (3, 2)
        """
        if filter is not None or kwargs:
            return self.scanner(columns=[], filter=filter, **kwargs).count_rows()
        return count_live_rows(self._snapshot)

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

    def take(self, indices: Any, columns: Columns = None) -> pa.Table:
        """Read rows by their number, in the order given; any row more than once.

        Raises OutOfRangeError for a row that the table does not have.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.take([2, 0])["id"].to_pylist()
        [3, 1]
        """
        plan = plan_take(self._snapshot, check_columns(columns))
        return take_table(partial(read_offsets, self._snapshot, plan), row_numbers(indices))

    def _take_rows(self, row_ids_or_addresses: Any, columns: Columns = None, **_: Any) -> pa.Table:
        """Read rows by ``_rowid``, in the order given; deleted rows are left out."""
        plan = plan_take(self._snapshot, check_columns(columns))
        take = partial(read_row_ids, self._snapshot, plan)
        return take_table(take, row_ids(row_ids_or_addresses))

    def sample(
        self,
        num_rows: int,
        columns: Columns = None,
        randomize_order: bool = True,
    ) -> pa.Table:
        """Read rows chosen at random, none twice.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.sample(2).num_rows
        2
        """
        chosen = random.sample(range(self.count_rows()), num_rows)
        return self.take(chosen if randomize_order else sorted(chosen), columns)

    # Fragments

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """Return the fragment with that id, or None.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.get_fragment(0).count_rows()
        3
        """
        found = self._snapshot.manifest.fragment(fragment_id)
        return None if found is None else LanceFragment(self, None, fragment=found)

    def fragment_ids(self) -> Bitmap:
        """Return the ids of all fragments, a set.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri, max_rows_per_file=2)
        >>> ds.fragment_ids()
        Bitmap({0, 1})
        """
        return Bitmap(fragment.id for fragment in self._snapshot.manifest.fragments)

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

    def insert(
        self, data: Any, *, mode: WriteModeName = "append", **kwargs: Unpack[WriteKeywords]
    ) -> None:
        """Append rows to the table, and turn this handle to the version made.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.insert(pa.table({"id": [4]}))
        >>> ds.version, ds.count_rows()
        (2, 4)
        """
        from pennon.dataset.write import WriteOptions, write_version  # noqa: PLC0415 - saves writers at open

        given: dict[str, Any] = {"mode": mode, **kwargs}
        schema = given.pop("schema", None)
        self._snapshot = write_version(data, self, schema, WriteOptions.named(given))

    _get_fragments = DatasetQueries.get_fragments
