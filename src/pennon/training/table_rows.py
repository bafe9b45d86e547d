"""The rows of a pinned version that satisfy a filter, by their number among these."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from pennon.compat.arguments import check_columns
from pennon.core.byte_ranges import Int64Array
from pennon.dataset.lance_dataset import LanceDataset
from pennon.dataset.open import dataset as open_dataset
from pennon.errors import ArgumentError, OutOfRangeError, TooLargeError
from pennon.index.row_set import NONE, RowSet
from pennon.scan.plan.take_plan import plan_take
from pennon.scan.run.take import take_addresses, take_offsets

Columns = Sequence[str] | Mapping[str, str] | None


class TableRows:
    """The rows of one version, read by their number: ``0 .. count - 1``.

    Without a filter the number is the row's place among the live rows.  With one, the rows that satisfy it are
    found once (indices are used), and remembered as ranges of addresses.  The version is part of the object and
    of its pickle: other writers do not change it.
    """

    def __init__(self, dataset: LanceDataset, columns: Columns, filter: str | None) -> None:
        """Find the rows.  Raises ArgumentError for columns or a filter that the table does not have."""
        self.dataset = dataset
        self.filter = filter
        self._columns = check_columns(columns)
        self._plan()
        self._chosen = None if filter is None else _ChosenRows.of(_matching(dataset, filter))
        rows = dataset.count_rows() if self._chosen is None else self._chosen.count
        self.count = rows

    def at_version(self, version: int) -> TableRows:
        """Return the rows of another version, or this object if it is of that version."""
        if version == self.dataset.version:
            return self
        return TableRows(self.dataset.checkout_version(version), self._columns, self.filter)

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of what `take` returns."""
        return self.take(np.empty(0, np.int64)).schema

    @property
    def about_row_bytes(self) -> int:
        """Return about how many bytes of data files a row has, all columns taken together."""
        fragments = self.dataset.snapshot.manifest.fragments
        size, rows = 0, 0
        for fragment in fragments:
            size += sum(file.size_bytes or 0 for file in fragment.files)
            rows += fragment.physical_rows or 0
            if rows >= 1 << 20:
                break
        return size // max(rows, 1)

    def take(self, numbers: Int64Array) -> pa.RecordBatch:
        """Return rows in the order asked, each blob as its bytes.

        Raises OutOfRangeError for a number that is not in ``[0, count)``, TooLargeError if one batch cannot hold them.
        """
        snapshot, plan = self.dataset.snapshot, self._plan()
        try:
            if self._chosen is None:
                return take_offsets(snapshot, plan, numbers)
            return take_addresses(snapshot, plan, self._chosen.addresses(numbers))
        except pa.ArrowInvalid as error:
            message = f"{len(numbers)} rows are too large for one batch; choose a smaller batch_size"
            raise TooLargeError(message) from error

    def _plan(self):  # type: ignore[no-untyped-def]
        return plan_take(self.dataset.snapshot, self._columns, blobs_as_bytes=True)


class _ChosenRows:
    """The addresses of the rows that a filter keeps, by their number."""

    def __init__(self, rows: RowSet) -> None:
        self._lasts = rows.lasts
        self._ends = np.cumsum((rows.lasts - rows.starts).astype(np.int64) + 1)

    of = classmethod(lambda cls, rows: cls(rows))

    @property
    def count(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def addresses(self, numbers: Int64Array):  # type: ignore[no-untyped-def]
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= self.count):
            message = f"row {int(numbers.max())} is asked for, but the filter keeps {self.count} rows"
            raise OutOfRangeError(message)
        at = self._ends.searchsorted(numbers, side="right")
        return self._lasts[at] - (self._ends[at] - 1 - numbers).astype(np.uint64)
