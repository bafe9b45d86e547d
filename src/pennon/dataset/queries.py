"""Queries of a table that are no scans: SQL, filtered rows, row addresses after compactions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.compat.arguments import row_ids
from pennon.dataset.filtered import FilteredDataset
from pennon.dataset.scanner_builder import AllOf, ScannerBuilder
from pennon.dataset.scans import DatasetScans
from pennon.dataset.sql import SqlQueryBuilder


class DatasetQueries(DatasetScans):
    """The methods of a table that answer questions about its rows."""

    def sql(self, sql: str) -> SqlQueryBuilder:
        """Describe a SQL query of this version, in which the table is called ``dataset``.

        DataFusion runs it (`pip install 'pennon[sql]'`), with pylance's answers; it reads the columns that are used,
        and the rows that pass simple conditions.  A statement only reads: it makes and changes nothing.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3], "name": ["a", "b", "a"]}), uri)
        >>> query = ds.sql("SELECT name, count(*) AS rows FROM dataset GROUP BY name ORDER BY name").build()
        >>> query.to_stream_reader().read_all().to_pydict()
        {'name': ['a', 'b'], 'rows': [2, 1]}
        """
        return SqlQueryBuilder(self, sql)

    def filter(self, expression: str | pc.Expression) -> FilteredDataset:
        """Return the rows that pass a filter, SQL or a pyarrow expression, as a dataset that is read when asked.

        >>> import pyarrow.compute as pc
        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.filter(pc.field("id") > 1).filter("id < 3").to_table()["id"].to_pylist()
        [2]
        """
        ScannerBuilder(self).filter(expression).to_scanner()  # raises for what is no filter
        return FilteredDataset(self, AllOf((expression,)))

    def remap_row_addrs(self, addrs: pa.Array[Any] | pa.ChunkedArray[Any]) -> pa.Array[Any] | None:
        """Return the addresses that rows have now, NULL for those that a compaction dropped.

        ``addrs``: row addresses of the time before compactions that left the indices as they were
        (``defer_index_remap=True``).  Those compactions are known until the indices are remapped; other addresses are
        returned as they are.  None if the table has no fragment reuse index.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3, 4]}), uri, max_rows_per_file=2)
        >>> ds.create_scalar_index("id", "BTREE")
        >>> _ = ds.delete("id = 2")
        >>> _ = ds.optimize.compact_files(defer_index_remap=True)
        >>> ds.remap_row_addrs(pa.array([0, 1, 1 << 32], pa.uint64())).to_pylist()
        [8589934592, None, 8589934593]
        """
        from pennon.scan.plan.moved_rows import moved_rows  # noqa: PLC0415 - saves indices at open

        old = row_ids(addrs)
        moved = moved_rows(self._snapshot)
        if not moved.maps:
            return None
        rows, is_there = moved.numbers(old)
        found = np.zeros(len(old), np.uint64)
        found[is_there] = rows
        return pa.array(found, pa.uint64(), mask=~is_there)
