"""pyarrow's dataset classes, as bases of ours.

DuckDB and Polars recognise a dataset by these classes.  Our methods have pylance's signatures, which
are not pyarrow's, so for the type checker the bases are plain objects.

No method of pyarrow's may be left as it is: they stand on a C++ object that ours do not have.  What can be
done with a table's rows alone is done here, by pyarrow's engine in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import UnsupportedError

if TYPE_CHECKING:
    _Dataset = object
    ArrowFragment = object
    ArrowScanner = object
else:
    from pyarrow.dataset import Dataset as _Dataset
    from pyarrow.dataset import Fragment as ArrowFragment
    from pyarrow.dataset import Scanner as ArrowScanner

__all__ = ["ArrowDataset", "ArrowFragment", "ArrowScanner"]

JoinType = Literal[
    "left semi",
    "right semi",
    "left anti",
    "right anti",
    "inner",
    "left outer",
    "right outer",
    "full outer",
]


class ArrowDataset(_Dataset):
    """The methods of pyarrow's datasets that stand on others: of a table, of its rows that pass a filter."""

    if TYPE_CHECKING:

        def to_table(self) -> pa.Table:
            """Read all rows."""

    @property
    def partition_expression(self) -> pc.Expression:
        """Return what is true of all rows; a table has no partitions, so it is just ``true``.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.partition_expression
        <pyarrow.compute.Expression true>
        """
        return pc.scalar(value=True)

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Refuse, as pylance does; the schema is the table's."""
        message = (
            "a handle cannot have another schema than its table: alter_columns() changes names and types, "
            "replace_schema_metadata() and update_field_metadata() metadata"
        )
        raise UnsupportedError(message)

    def sort_by(
        self, sorting: str | list[tuple[str, str]] | list[tuple[str, str, str]], **kwargs: Any
    ) -> pa.dataset.InMemoryDataset:
        """Return the rows in order, in memory, as a dataset of pyarrow.

        ``sorting``: a column, or tuples of a column and ``ascending`` or ``descending``.  ``order_by`` of a scan
        sorts without pyarrow, and with a limit keeps only the first rows in memory.

        >>> ds = pennon.write_dataset(pa.table({"id": [2, 3, 1]}), uri)
        >>> ds.sort_by([("id", "descending")]).to_table()["id"].to_pylist()
        [3, 2, 1]
        """
        return _in_memory(self).sort_by(sorting, **kwargs)

    def join(
        self,
        right_dataset: Any,
        keys: str | list[str],
        right_keys: str | list[str] | None = None,
        join_type: JoinType = "left outer",
        left_suffix: str | None = None,
        right_suffix: str | None = None,
        coalesce_keys: bool = True,
        use_threads: bool = True,
    ) -> pa.dataset.InMemoryDataset:
        """Join the rows with those of another dataset by equal keys; the result is in memory, a dataset of pyarrow.

        ``right_dataset``: a table of Pennon, or a dataset of pyarrow.  ``right_keys``: its keys, by default called
        as ours.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2], "name": ["a", "b"]}), uri)
        >>> sizes = pennon.write_dataset(pa.table({"id": [2], "size": [7]}), uri + ".sizes")
        >>> ds.join(sizes, "id", join_type="inner").to_table().to_pydict()
        {'id': [2], 'name': ['b'], 'size': [7]}
        """
        return _in_memory(self).join(
            _in_memory(right_dataset),
            keys,
            right_keys,
            join_type,
            left_suffix,
            right_suffix,
            coalesce_keys,
            use_threads,
        )

    def join_asof(
        self,
        right_dataset: Any,
        on: str,
        by: str | list[str],
        tolerance: int,
        right_on: str | list[str] | None = None,
        right_by: str | list[str] | None = None,
    ) -> pa.dataset.InMemoryDataset:
        """Join each row with the nearest of another dataset; the result is in memory, a dataset of pyarrow.

        ``on``: the key to be near by, a number or a time, by which both are sorted.  ``by``: keys that are equal.
        ``tolerance``: how far the other key may lie behind ours; before it, where this is negative.

        >>> ds = pennon.write_dataset(pa.table({"t": [10, 20], "k": [1, 1]}), uri)
        >>> prices = pennon.write_dataset(pa.table({"t": [9, 19], "k": [1, 1], "price": [3, 4]}), uri + ".prices")
        >>> ds.join_asof(prices, "t", "k", -5).to_table()["price"].to_pylist()
        [3, 4]
        """
        return _in_memory(self).join_asof(
            _in_memory(right_dataset), on, by, tolerance, right_on, right_by
        )


def _in_memory(dataset: Any) -> pa.dataset.InMemoryDataset:
    """Return a dataset that pyarrow's engine reads: those of ours in memory, those of pyarrow as they are."""
    return (
        pa.dataset.InMemoryDataset(dataset.to_table())
        if isinstance(dataset, ArrowDataset)
        else dataset
    )
