"""What is asked of the rows of a table: SQL, filtered rows, fragments in which rows may pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from pennon.dataset.base import DatasetBase
from pennon.dataset.fragment import LanceFragment
from pennon.dataset.scanner_builder import AllOf, ScannerBuilder

if TYPE_CHECKING:
    from pennon.dataset.filtered import FilteredDataset
    from pennon.dataset.sql import SqlQueryBuilder


class DatasetQueries(DatasetBase):
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
        from pennon.dataset.sql import SqlQueryBuilder  # noqa: PLC0415 - most programs run no SQL

        return SqlQueryBuilder(self, sql)

    def filter(self, expression: str | pc.Expression) -> FilteredDataset:
        """Return the rows that pass a filter, SQL or a pyarrow expression, as a dataset that is read when asked.

        >>> import pyarrow.compute as pc
        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.filter(pc.field("id") > 1).filter("id < 3").to_table()["id"].to_pylist()
        [2]
        """
        from pennon.dataset.filtered import FilteredDataset  # noqa: PLC0415 - as above

        ScannerBuilder(self).filter(expression).to_scanner()  # raises for what is no filter
        return FilteredDataset(self, AllOf((expression,)))

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
