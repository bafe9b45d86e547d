"""The rows of a table by number, as a map-style PyTorch dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch.utils.data

from pennon.compat.arguments import check_columns
from pennon.dataset.lance_dataset import LanceDataset
from pennon.errors import ArgumentError
from pennon.torch.tensors import to_tensors as default_to_tensors
from pennon.training.table_rows import Columns, TableRows, Tables, open_tables


class TakenRows(Sequence[dict[str, Any]]):
    """Rows that were taken together: ``columns`` has them as `pennon.torch.to_tensors` does, ``rows[i]`` is a dict."""

    def __init__(self, columns: Any, count: int) -> None:
        self.columns = columns
        self._count = count

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    def __getitem__(self, at: Any) -> Any:
        """Return one row as a dict."""
        if not -self._count <= at < self._count:
            raise IndexError(at)
        return _row(self.columns, at)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dicts."""
        return (_row(self.columns, at) for at in range(self._count))


def collate(rows: Any) -> Any:
    """Return the columns of rows that `LanceRows` took together, as they are: nothing is stacked again.

    >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
    >>> rows = pennon.torch.LanceRows(uri)
    >>> pennon.torch.collate(rows.__getitems__([3, 1]))["id"].tolist()
    [3, 1]
    """
    return rows.columns if isinstance(rows, TakenRows) else torch.utils.data.default_collate(rows)


class LanceRows(torch.utils.data.Dataset[Any]):
    """The rows of a table by number, each a dict; for a DataLoader with any sampler.

    A batch is one take.  Give the DataLoader ``collate_fn=pennon.torch.collate``, which uses the batch as it was
    taken.  ``columns``, ``filter``, ``version``, ``storage_options``: see `pennon.training.batches`; ``to_tensors``: see
    `LanceBatches`.  The version is pinned.

    >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
    >>> rows = pennon.torch.LanceRows(uri, filter="id >= 6")
    >>> len(rows), rows[0]["id"].item()
    (4, 6)
    """

    def __init__(
        self,
        table: Tables,
        *,
        columns: Columns = None,
        filter: str | None = None,
        version: int | str | None = None,
        storage_options: dict[str, str] | None = None,
        to_tensors: Callable[[pa.RecordBatch], Any] | None = None,
    ) -> None:
        """Open the table and pin its version.  Raises ArgumentError for columns or a filter that it does not have."""
        datasets = open_tables(table, version, storage_options)
        if len(datasets) != 1:
            message = f"LanceRows reads one table, not {len(datasets)}; torch's ConcatDataset joins several"
            raise ArgumentError(message)
        self._rows = TableRows(datasets[0], check_columns(columns), filter)
        self._to_tensors = to_tensors or default_to_tensors

    @property
    def dataset(self) -> LanceDataset:
        """Return the version that is read.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> pennon.torch.LanceRows(uri).dataset.version
        1
        """
        return self._rows.dataset

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._rows.count

    def __getitem__(self, number: int) -> Any:
        """Return one row; a negative number counts from the end.  Raises IndexError for a row that is not there."""
        count = len(self)
        if not -count <= number < count:
            message = f"row {number} is asked for, but there are {count} rows"
            raise IndexError(message)
        return self.__getitems__([number % count])[0]

    def __getitems__(self, numbers: Sequence[int]) -> TakenRows:
        """Return several rows by one take."""
        batch = self._rows.take(np.asarray(numbers, np.int64))
        return TakenRows(self._to_tensors(batch), batch.num_rows)


def _row(columns: Any, at: int) -> Any:
    if isinstance(columns, dict):
        return {name: _row(values, at) for name, values in columns.items()}
    return columns[at]
