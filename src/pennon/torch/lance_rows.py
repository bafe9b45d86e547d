"""A map-style dataset: rows by their number, all of a batch by one take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, overload

import numpy as np
import pyarrow as pa
from torch.utils.data import Dataset, default_collate

from pennon.errors import ArgumentError, OutOfRangeError
from pennon.torch.tensors import to_tensors as default_to_tensors
from pennon.torch.worker_batch import in_worker
from pennon.training.table_rows import Columns, TableRows, Tables, open_tables


class RowList(Sequence[Any]):
    """The rows of one take, each a dict; `collate` returns them as one dict of tensors, with no copy.

    >>> rows = pennon.torch.RowList({"id": torch.tensor([1, 2])}, 2)
    >>> rows[0]
    {'id': tensor(1)}
    """

    def __init__(self, columns: Any, count: int) -> None:
        self.columns = columns
        self._count = count

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    @overload
    def __getitem__(self, number: int) -> Any: ...
    @overload
    def __getitem__(self, number: slice) -> list[Any]: ...
    def __getitem__(self, number: int | slice) -> Any:
        """Return one row, or a list of some."""
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(self._count))]
        if not -self._count <= number < self._count:
            message = f"row {number} is asked for, but there are {self._count}"
            raise IndexError(message)
        return _row(self.columns, number)


class LanceRows(Dataset[Any]):
    """The rows of a table, or those that satisfy a filter, by their number.

    Any sampler of torch chooses them; ``collate_fn=pennon.torch.collate`` makes no copy of what a batch's one
    take has read.

    >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
    >>> rows = pennon.torch.LanceRows(uri)
    >>> len(rows), rows[3]
    (10, {'id': tensor(3)})
    >>> loader = torch.utils.data.DataLoader(rows, batch_size=5, collate_fn=pennon.torch.collate)
    >>> next(iter(loader))["id"].tolist()
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        table: Tables,
        *,
        columns: Columns = None,
        filter: str | None = None,
        to_tensors: Callable[[pa.RecordBatch], Any] | None = None,
        version: int | str | None = None,
        storage_options: dict[str, str] | None = None,
    ) -> None:
        """Open the table and pin its version.

        ``columns``: names, or a mapping from new names to SQL expressions.  ``filter``: SQL; its rows are found
        once, by an index if there is one.  ``to_tensors``: a function of a `pyarrow.RecordBatch`, in place of `pennon.torch.to_tensors`.
        """
        opened = open_tables(table, version, storage_options)
        if len(opened) != 1:
            message = f"LanceRows reads one table, not {len(opened)}; LanceBatches mixes several"
            raise ArgumentError(message)
        self._source = TableRows(opened[0], columns, filter)
        self._to_tensors = to_tensors or default_to_tensors

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._source.count

    def __getitem__(self, number: int) -> Any:
        """Return one row.  Raises IndexError if it is not there."""
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> RowList:
        """Return rows, in the order asked, by one take; torch's DataLoader calls it for each batch."""
        wanted = np.array([index(number) for number in numbers], np.int64)
        wanted[wanted < 0] += len(self)
        try:
            batch = self._source.take(wanted)
        except OutOfRangeError as error:
            raise IndexError(str(error)) from None
        return RowList(self._to_tensors(batch), len(wanted))


def collate(rows: Any) -> Any:
    """Return the rows of one take as one dict of tensors, with no copy, and a whole batch of `LanceBatches` as it is.

    A DataLoader without a ``collate_fn`` looks at each text of a batch, which takes longer than to read it.  Lists of
    other rows become what torch's ``default_collate`` makes of them.

    >>> pennon.torch.collate(pennon.torch.RowList({"id": torch.tensor([1, 2])}, 2))
    {'id': tensor([1, 2])}
    >>> pennon.torch.collate({"word": ["a", "b"]})
    {'word': ['a', 'b']}
    """
    if isinstance(rows, RowList):
        return in_worker(rows.columns)
    return default_collate(rows) if isinstance(rows, list) else rows


def _row(columns: Any, number: int) -> Any:
    """Return one row of columns: tensors, lists, and dicts of them."""
    if isinstance(columns, dict):
        return {name: _row(column, number) for name, column in columns.items()}
    return columns[number]
