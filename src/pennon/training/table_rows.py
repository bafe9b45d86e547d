"""The rows of a pinned version that satisfy a filter, by their number among these."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from pennon.blob.columns import BytesOfBlobs
from pennon.compat.arguments import check_columns
from pennon.core.byte_ranges import Int64Array
from pennon.dataset.lance_dataset import LanceDataset
from pennon.dataset.open import dataset as open_dataset
from pennon.encoding.exact_batches import exact_parts
from pennon.errors import ArgumentError, OutOfRangeError, TooLargeError
from pennon.index.row_set import NONE, RowSet
from pennon.scan.plan.take_plan import TakePlan, plan_take
from pennon.scan.projection import MetaColumn
from pennon.scan.read.columns import UInt64Array
from pennon.scan.run.take import (
    take_addresses,
    take_live_addresses_in_parts,
    take_offsets,
    take_offsets_in_parts,
)
from pennon.schema.check import is_blob_v2
from pennon.schema.project import quoted

Columns = Sequence[str] | Mapping[str, str] | None
Tables = str | os.PathLike[str] | LanceDataset | Sequence[str | os.PathLike[str] | LanceDataset]


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
        fields = self._plan().projection.read.walk()
        self._has_blob_files = any(map(is_blob_v2, fields))
        self._chosen = None if filter is None else _ChosenRows(_matching(dataset, filter))
        self.count = dataset.count_rows() if self._chosen is None else self._chosen.count

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
        try:
            if not self._has_blob_files:
                return self._taken(self._plan(), numbers)
            shown, plan = self._plans_of_blobs()
            sources = self._columns if isinstance(self._columns, Mapping) else {}
            described = self._taken(plan, numbers)
            return next(BytesOfBlobs(self.dataset.snapshot, shown, sources).convert([described]))
        except pa.ArrowInvalid as error:
            message = (
                f"{len(numbers)} rows are too large for one batch; choose a smaller batch_size"
            )
            raise TooLargeError(message) from error

    def take_parts(self, parts: Sequence[Int64Array]) -> list[pa.RecordBatch]:
        """Return what `take` does for each of several parts, which are read together; each batch has memory of its own."""
        if len(parts) == 1:
            return [self.take(parts[0])]
        try:
            if self._has_blob_files:
                return exact_parts(self.take(np.concatenate(parts)), [len(part) for part in parts])
            return self._taken_in_parts(self._plan(), parts)
        except (pa.ArrowInvalid, TooLargeError):  # together they may be too large for one array
            return [self.take(part) for part in parts]

    def _taken_in_parts(self, plan: TakePlan, parts: Sequence[Int64Array]) -> list[pa.RecordBatch]:
        snapshot = self.dataset.snapshot
        if self._chosen is None:
            return take_offsets_in_parts(snapshot, plan, parts)
        addresses = [self._chosen.addresses(part) for part in parts]
        return take_live_addresses_in_parts(snapshot, plan, addresses)

    def _taken(self, plan: TakePlan, numbers: Int64Array) -> pa.RecordBatch:
        snapshot = self.dataset.snapshot
        if self._chosen is None:
            return take_offsets(snapshot, plan, numbers)
        return take_addresses(snapshot, plan, self._chosen.addresses(numbers))

    def _plan(self) -> TakePlan:
        return plan_take(self.dataset.snapshot, self._columns, blobs_as_bytes=True)

    def _plans_of_blobs(self) -> tuple[pa.Schema, TakePlan]:
        """Return the schema with descriptions of blobs, and the plan of it and of the row addresses."""
        shown = plan_take(self.dataset.snapshot, self._columns).schema
        address = MetaColumn.ROW_ADDRESS.value
        columns = self._columns
        if isinstance(columns, Mapping):
            return shown, plan_take(self.dataset.snapshot, {**columns, address: address})
        names = map(quoted, shown.names) if columns is None else columns
        return shown, plan_take(self.dataset.snapshot, (*names, address))


class _ChosenRows:
    """The addresses of the rows that a filter keeps, by their number."""

    def __init__(self, rows: RowSet) -> None:
        self._lasts = rows.lasts
        self._ends = np.cumsum((rows.lasts - rows.starts).astype(np.int64) + 1)

    @property
    def count(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def addresses(self, numbers: Int64Array) -> UInt64Array:
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= self.count):
            message = (
                f"row {int(numbers.max())} is asked for, but the filter keeps {self.count} rows"
            )
            raise OutOfRangeError(message)
        at = self._ends.searchsorted(numbers, side="right")
        found: UInt64Array = self._lasts[at] - (self._ends[at] - 1 - numbers).astype(np.uint64)
        return found


def open_tables(
    tables: Tables, version: int | str | None, storage_options: dict[str, str] | None
) -> list[LanceDataset]:
    """Return the datasets of paths, URIs and datasets.  Raises ArgumentError for anything else."""
    listed = [tables] if isinstance(tables, (str, os.PathLike, LanceDataset)) else list(tables)
    opened = []
    for table in listed:
        if isinstance(table, LanceDataset):
            opened.append(table if version is None else table.checkout_version(version))
        elif isinstance(table, (str, os.PathLike)):
            opened.append(open_dataset(table, version, storage_options=storage_options))
        else:
            message = f"a table is a path, a URI or a LanceDataset, not {type(table).__name__}"  # type: ignore[unreachable]
            raise ArgumentError(message)
    return opened


def _matching(dataset: LanceDataset, filter: str) -> RowSet:
    """Return the addresses of the rows that satisfy a filter."""
    scanner = dataset.scanner(columns=[], filter=filter, with_row_address=True)
    found = [
        RowSet.of(batch.column("_rowaddr").to_numpy(zero_copy_only=False).astype(np.uint64))
        for batch in scanner.to_batches()
    ]
    return NONE.union(*found)
