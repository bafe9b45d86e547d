"""Commits of a dataset as such: made by hand, and looked at afterwards."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Generic, Self, TypedDict, TypeVar, Unpack

from pennon import ops
from pennon.compat.arguments import refuse
from pennon.compat.option_types import NotSupportedYet
from pennon.core.interpreter_end import check_imports_work
from pennon.dataset.base import DatasetBase
from pennon.dataset.operation import LanceOperation, Transaction
from pennon.table.versions import list_locations, read_manifest

if TYPE_CHECKING:
    from pennon.dataset.commit_request import CommitRequest
    from pennon.table.commit.lock import CommitLock
    from pennon.table.manifest import Manifest

COMMIT_TIMEOUT = timedelta(minutes=30)


D = TypeVar("D", bound=DatasetBase)


class BulkCommitResult(TypedDict, Generic[D]):
    """The result of `LanceDataset.commit_batch`: the new version, and the one transaction.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> files = pennon.fragment.write_fragments(pa.table({"id": [4]}), ds)
    >>> append = pennon.Transaction(1, pennon.LanceOperation.Append(files))
    >>> result = pennon.LanceDataset.commit_batch(ds, [append])
    >>> result["dataset"].version, type(result["merged"]).__name__
    (2, 'Transaction')
    """

    dataset: D
    merged: Transaction


class DatasetTransactions(DatasetBase):
    """The transactions of a table."""

    @classmethod
    def commit(
        cls,
        base_uri: str | os.PathLike[str] | DatasetBase,
        operation: LanceOperation.BaseOperation | Transaction,
        read_version: int | None = None,
        commit_lock: CommitLock | None = None,
        storage_options: dict[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        *,
        commit_message: str | None = None,
        enable_stable_row_ids: bool | None = None,
        commit_timeout: timedelta | None = COMMIT_TIMEOUT,
        **unsupported: Unpack[NotSupportedYet],
    ) -> Self:
        """Commit what was written before, and return the version made.

        ``read_version`` is the version that the operation was planned on; an Overwrite and a Restore
        need none.  A ``detached`` version is in no line of versions: only its number leads to it.
        ``max_retries`` is how often the race for a version may be lost, ``commit_timeout`` after what
        time no further attempt is made.

        Raises RetryableConflict, IncompatibleConflict, CommitStateUnknown (see `pennon.errors`), and
        NotFoundError if a file of the operation is not there.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> files = pennon.fragment.write_fragments(pa.table({"id": [4]}), ds)
        >>> append = pennon.LanceOperation.Append(files)
        >>> pennon.LanceDataset.commit(ds, append, read_version=1).count_rows()
        4
        """
        check_imports_work()
        refuse(unsupported, cls.commit)
        request = _commit_request().of(
            base_uri,
            storage_options,
            v2_paths=enable_v2_manifest_paths is not False,
            stable_row_ids=bool(enable_stable_row_ids),
            detached=bool(detached),
            max_retries=max_retries,
            timeout=commit_timeout,
            commit_lock=commit_lock,
        )
        return cls._of(request, request.commit(operation, read_version, commit_message))

    @classmethod
    def commit_batch(
        cls,
        dest: str | os.PathLike[str] | DatasetBase,
        transactions: Sequence[Transaction],
        commit_lock: CommitLock | None = None,
        storage_options: dict[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = 20,
        commit_timeout: timedelta | None = COMMIT_TIMEOUT,
        **unsupported: Unpack[NotSupportedYet],
    ) -> BulkCommitResult[Self]:
        """Commit several appends as one, and return the version made and the one transaction.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> files = [pennon.fragment.write_fragments(pa.table({"id": [n]}), ds) for n in (4, 5)]
        >>> appends = [pennon.Transaction(1, pennon.LanceOperation.Append(each)) for each in files]
        >>> pennon.LanceDataset.commit_batch(ds, appends)["dataset"].count_rows()
        5
        """
        check_imports_work()
        refuse(unsupported, cls.commit_batch)
        request = _commit_request().of(
            dest,
            storage_options,
            v2_paths=enable_v2_manifest_paths is not False,
            detached=bool(detached),
            max_retries=max_retries,
            timeout=commit_timeout,
            commit_lock=commit_lock,
        )
        merged = request.merged(transactions)
        made = cls._of(request, request.commit(merged))
        return BulkCommitResult(dataset=made, merged=merged)

    @classmethod
    def _of(cls, request: CommitRequest, manifest: Manifest) -> Self:
        return cls.of_snapshot(request.uri, request.snapshot(manifest), request.storage_options)

    def read_transaction(self, version: int) -> Transaction | None:
        """Return the transaction that made a version; None if it was not kept.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> type(ds.read_transaction(1).operation).__name__
        'Overwrite'
        """
        return self._transaction_of(read_manifest(self._snapshot.store, version))

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """Return the transactions that made this version and those before it, newest first.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> _ = ds.delete("id = 1")
        >>> [type(each.operation).__name__ for each in ds.get_transactions()]
        ['Delete', 'Overwrite']
        """
        found = [self._transaction_of(self._snapshot.manifest)]
        known = {at.version for at in list_locations(self._snapshot.store)}
        for version in range(self.version - 1, 0, -1):
            if len(found) >= recent_transactions or version not in known:
                break
            found.append(self.read_transaction(version))
        return found[: max(recent_transactions, 0)]

    def _transaction_of(self, manifest: Manifest) -> Transaction | None:
        from pennon.dataset.operation_fields import kept_transaction  # noqa: PLC0415 - saves operations at open

        return kept_transaction(self._snapshot.store, manifest)

    def migrate_manifest_paths_v2(self) -> None:
        """Rename the manifests of all versions to naming scheme V2, which is faster to list.

        It can be called again at any time.  Pennon's own writers may work meanwhile; others must not.

        >>> ds = pennon.write_dataset(pa.table({"id": [1]}), uri, enable_v2_manifest_paths=False)
        >>> ds.migrate_manifest_paths_v2()
        >>> pennon.dataset(uri).count_rows()
        1
        """
        ops.migrate_to_v2(self._snapshot.store)
        self._turn_to(read_manifest(self._snapshot.store, self.version))


def _commit_request() -> type[CommitRequest]:
    """Return the class of commits; opening a table does not import it."""
    from pennon.dataset.commit_request import CommitRequest  # noqa: PLC0415 - saves commits at open

    return CommitRequest
