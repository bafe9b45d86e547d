"""Row changes between two versions: pylance's ``DatasetDelta``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from pennon.dataset.base import DatasetBase
from pennon.dataset.operation import Transaction
from pennon.dataset.operation_fields import kept_transaction
from pennon.errors import ArgumentError, NotFoundError
from pennon.scan.changes.feed import ChangeFeed
from pennon.scan.changes.row_versions import (
    ROW_ID,
    VersionRange,
    deleted_row_ids,
    plan_inserted_rows,
    plan_updated_rows,
    read_changed_rows,
)
from pennon.scan.plan.query import BoundQuery
from pennon.scan.snapshot import Snapshot
from pennon.schema.project import project
from pennon.table.versions import read_manifest

_IDS: Final = pa.schema([pa.field(ROW_ID, pa.uint64())])


@dataclass(frozen=True, slots=True)
class DatasetDelta:
    """The changes after version ``begin`` up to and with version ``end``.

    Rows are told apart by the versions that made and last changed them, which only tables with
    stable row ids note.

    >>> rows = pa.table({"id": [1, 2, 3]})
    >>> ds = pennon.write_dataset(rows, uri, enable_stable_row_ids=True)
    >>> _ = ds.update({"id": "id * 10"}, where="id = 2")
    >>> ds.delta(compared_against=1).get_updated_rows().read_all()["id"].to_pylist()
    [20]
    """

    dataset: DatasetBase
    begin: int
    end: int

    @classmethod
    def between(
        cls,
        dataset: DatasetBase,
        compared_against: int | None,
        begin_version: int | None,
        end_version: int | None,
    ) -> DatasetDelta:
        """Return the changes between this version and another, or between any two.

        Raises ArgumentError unless exactly one of the two ways is chosen.
        """
        if compared_against is not None:
            if begin_version is not None or end_version is not None:
                message = "give compared_against, or begin_version and end_version, not both"
                raise ArgumentError(message)
            here = dataset.version
            return cls(dataset, min(here, compared_against), max(here, compared_against))
        if begin_version is None or end_version is None:
            message = "Must specify compared_against, or both begin_version and end_version"
            raise ArgumentError(message)
        return cls(dataset, begin_version, end_version)

    def read_changes(
        self, columns: Sequence[str] | None, *, net: bool = False
    ) -> pa.RecordBatchReader:
        """Return the changes of rows; see `pennon.LanceDataset.changes`."""
        here = self.dataset.snapshot
        shown = here.manifest.schema
        if columns is not None:
            shown = project(shown, columns)
        feed = ChangeFeed(here, self.begin, self.end, shown, net=net)
        return pa.RecordBatchReader.from_batches(feed.schema, feed.batches())

    def list_transactions(self) -> list[Transaction]:
        """Return the transactions of the versions, oldest first, of all that kept theirs.

        Raises NotFoundError for a version that was cleaned up, or was never made.
        """
        found, store = [], self.dataset.snapshot.store
        for version in range(self.begin + 1, self.end + 1):
            try:
                manifest = read_manifest(store, version)
            except NotFoundError:
                message = f"version {version} does not exist; was it cleaned up?"
                raise NotFoundError(message) from None
            transaction = kept_transaction(store, manifest)
            if transaction is not None:
                found.append(transaction)
        return found

    def get_inserted_rows(self) -> pa.RecordBatchReader:
        """Return the rows that were made in between and still live, with their ids and versions."""
        return _reader(plan_inserted_rows(self.dataset.snapshot, self._versions))

    def get_updated_rows(self) -> pa.RecordBatchReader:
        """Return the rows that were there before, and were changed in between, as they are now."""
        return _reader(plan_updated_rows(self.dataset.snapshot, self._versions))

    def get_deleted_row_ids(self) -> pa.RecordBatchReader:
        """Return the ids of the rows that lived at the first version and do not at the last.

        Raises ArgumentError for a table without stable row ids, or if the first version is newer.
        """
        if self.begin > self.end:
            message = f"begin version {self.begin} is newer than end version {self.end}"
            raise ArgumentError(message)
        gone = deleted_row_ids(self._at(self.begin), self._at(self.end))
        batch = pa.record_batch([pa.array(gone, pa.uint64())], schema=_IDS)
        return pa.RecordBatchReader.from_batches(_IDS, [batch])

    @property
    def _versions(self) -> VersionRange:
        return VersionRange(self.begin, self.end)

    def _at(self, version: int) -> Snapshot:
        here = self.dataset.snapshot
        return here.at(read_manifest(here.store, version))


def _reader(query: BoundQuery) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(query.schema, read_changed_rows(query))
