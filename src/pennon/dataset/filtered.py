"""The rows of a table that pass a filter, as a dataset of its own: what pyarrow's ``Dataset.filter`` returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from pennon.compat.arrow_bases import ArrowDataset
from pennon.compat.option_types import Columns, Filter, FilteredKeywords, ScanKeywords
from pennon.dataset.scanner_builder import AllOf
from pennon.dataset.scans import DatasetScans

if TYPE_CHECKING:
    from pennon.dataset.fragment import LanceFragment
    from pennon.dataset.scanner import LanceScanner


class FilteredDataset(ArrowDataset):
    """The rows of a table that pass a filter; nothing is read before a method asks for rows.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> late = ds.filter("id > 1")
    >>> late.count_rows(), late.to_table(filter="id < 3")["id"].to_pylist()
    (2, [2])
    """

    def __init__(self, dataset: DatasetScans, condition: AllOf) -> None:
        """Take a table and what its rows must pass."""
        self._dataset = dataset
        self._condition = condition

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the rows."""
        return self._dataset.schema

    def filter(self, expression: str | pc.Expression) -> FilteredDataset:
        """Return those rows that pass another filter, too."""
        return FilteredDataset(self._dataset, self._condition.and_also(expression))

    def scanner(
        self, columns: Columns = None, filter: Filter = None, **options: Unpack[FilteredKeywords]
    ) -> LanceScanner:
        """Describe a scan of the rows; the options are those of `LanceDataset.scanner`."""
        return self._dataset.scanner(columns, self._condition.and_also(filter), **options)

    def to_table(
        self, columns: Columns = None, filter: Filter = None, **options: Unpack[FilteredKeywords]
    ) -> pa.Table:
        """Read the rows into a table."""
        return self.scanner(columns, filter, **options).to_table()

    def to_batches(
        self, columns: Columns = None, filter: Filter = None, **options: Unpack[FilteredKeywords]
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows batch by batch."""
        return self.scanner(columns, filter, **options).to_batches()

    def head(
        self, num_rows: int, columns: Columns = None, **options: Unpack[ScanKeywords]
    ) -> pa.Table:
        """Read the first rows."""
        return self._dataset.scanner(columns, self._condition, num_rows, **options).to_table()

    def take(
        self, indices: Any, columns: Columns = None, **options: Unpack[FilteredKeywords]
    ) -> pa.Table:
        """Read rows by their number among those that pass."""
        return self.scanner(columns, **options).take(indices)

    def count_rows(self, filter: Filter = None, **options: Unpack[FilteredKeywords]) -> int:
        """Return how many rows pass."""
        return self.scanner([], filter, **options).count_rows()

    def get_fragments(self, filter: Any = None) -> list[LanceFragment]:
        """Return the fragments of the table in which rows may pass; their scans do not apply the filter."""
        return self._dataset.get_fragments(self._condition.and_also(filter))
