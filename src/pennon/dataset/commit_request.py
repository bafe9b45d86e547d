"""Committing what was written before: from pylance's operations to the table layer's."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self

from pennon.dataset.operation import LANCE_COMMIT_MESSAGE_KEY, LanceOperation, Transaction
from pennon.dataset.operation_fields import to_table_operation, to_table_transaction
from pennon.dataset.write import as_store, newest_version
from pennon.errors import ArgumentError, NotFoundError
from pennon.io.store import Store
from pennon.ops.commit import commit_transaction
from pennon.ops.commit_checks.given import check_given
from pennon.ops.row_counts import check_replacements
from pennon.scan.session import Session
from pennon.scan.snapshot import Snapshot
from pennon.table import transaction as table
from pennon.table.base_paths import place_store
from pennon.table.commit.lock import CommitLock
from pennon.table.commit.options import LONG_AGO, CommitPolicy
from pennon.table.commit.rebase import Affected, NewDeletions
from pennon.table.manifest import Manifest
from pennon.table.naming import Naming
from pennon.table.operations import Delete, Update
from pennon.table.versions import read_manifest


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """A table to commit to, and how; ``base`` is the version that the caller's dataset is at."""

    uri: str
    store: Store
    policy: CommitPolicy
    detached: bool
    storage_options: Mapping[str, str] | None = field(repr=False)
    base: Manifest | None
    session: Session | None

    @classmethod
    def of(
        cls,
        target: Any,
        storage_options: Mapping[str, str] | None,
        *,
        v2_paths: bool,
        detached: bool,
        max_retries: int,
        timeout: timedelta | None,
        stable_row_ids: bool = False,
        commit_lock: CommitLock | None = None,
    ) -> Self:
        """Check the arguments; nothing is read.  Raises TypeError, ArgumentError."""
        store, base = as_store(target, storage_options, commit_lock)
        if timeout is not None and timeout <= timedelta(0):
            message = f"commit_timeout must be longer than nothing, got {timeout}"
            raise ArgumentError(message)
        policy = CommitPolicy(
            max_retries,
            None if timeout is None else timeout.total_seconds(),
            Naming.V2 if v2_paths else Naming.V1,
            stable_row_ids,
        )
        snapshot = getattr(target, "snapshot", None)
        uri = os.fspath(target) if snapshot is None else target.uri
        session = None if snapshot is None else snapshot.session
        return cls(uri, store, policy, detached, storage_options, base, session)

    def commit(
        self, operation: Any, read_version: int | None = None, message: str | None = None
    ) -> Manifest:
        """Commit an operation or a Transaction, and return the manifest of the version made.

        Raises ArgumentError if an operation that needs a read version has none.
        """
        if isinstance(operation, Transaction):
            transaction = _from_transaction(operation, message)
        elif isinstance(operation, LanceOperation.BaseOperation):
            transaction = _from_operation(self.store, operation, read_version, message)
        else:
            wrong = type(operation).__name__
            text = f"operation must be a LanceOperation or a Transaction, got {wrong}"
            raise TypeError(text)
        check_replacements(self.store, transaction)
        check_given(self.store, transaction, self._planned_here(transaction))
        return commit_transaction(
            self.store,
            transaction,
            self.policy,
            affected=self._affected(transaction),
            base=self._planned_here(transaction),
            planned_ns=LONG_AGO,
            adds_keys=adds_keys(operation),
            detached=self.detached,
        )

    @staticmethod
    def merged(transactions: Sequence[Transaction]) -> Transaction:
        """Return one append of all that the transactions append, planned on the oldest of their versions.

        Raises ArgumentError if there is none, or one that does something else.
        """
        if not transactions:
            message = "there are no transactions to commit"
            raise ArgumentError(message)
        fragments, properties = [], {}
        for transaction in transactions:
            if not isinstance(transaction.operation, LanceOperation.Append):
                name = type(transaction.operation).__name__
                message = f"a batch holds appends only, not {name}"
                raise ArgumentError(message)
            fragments += transaction.operation.fragments
            properties.update(transaction.transaction_properties or {})
        oldest = min(transaction.read_version for transaction in transactions)
        operation = LanceOperation.Append(fragments)
        return Transaction(oldest, operation, transaction_properties=properties)

    def _planned_here(self, transaction: table.Transaction) -> Manifest | None:
        """Return the caller's version if the transaction was planned on it."""
        is_here = self.base is not None and self.base.version == transaction.read_version
        return self.base if is_here else None

    def _affected(self, transaction: table.Transaction) -> Affected | None:
        """Return the rows that a delete or an update takes away, if that can still be told.

        Raises RetryableConflict if rows that are gone would come back.
        """
        operation = transaction.operation
        if not isinstance(operation, Delete | Update) or not operation.updated:
            return None
        base = self._planned_here(transaction)
        if base is None:
            try:
                base = read_manifest(self.store, transaction.read_version)
            except NotFoundError:
                return None  # cleaned up, so what came after it cannot be judged either
        found = NewDeletions(place_store(self.store, base), base, operation)
        found.check_nothing_returns(base.version)
        return found

    def snapshot(self, manifest: Manifest) -> Snapshot:
        """Return the version made, with the caches of the caller's dataset."""
        store = place_store(self.store, manifest)
        return Snapshot(store, manifest, self.session or Session())


def adds_keys(operation: LanceOperation.BaseOperation | Transaction) -> bool:
    """Tell whether rows are added because the table had none with their keys."""
    if isinstance(operation, Transaction):
        operation = operation.operation
    return isinstance(operation, LanceOperation.Update) and operation.adds_keys


def _from_transaction(transaction: Transaction, message: str | None) -> table.Transaction:
    if message is not None:
        text = "a Transaction has its own properties; put the commit message among them"
        raise ArgumentError(text)
    return to_table_transaction(transaction)


def _from_operation(
    store: Store,
    operation: LanceOperation.BaseOperation,
    read_version: int | None,
    message: str | None,
) -> table.Transaction:
    """Return the transaction; an overwrite without a read version is of the newest version."""
    if read_version is None:
        if not isinstance(operation, (LanceOperation.Overwrite, LanceOperation.Restore)):
            text = f"{type(operation).__name__} needs read_version, the version it was planned on"
            raise ArgumentError(text)
        read_version = newest_version(store)
    properties = {} if message is None else {LANCE_COMMIT_MESSAGE_KEY: message}
    return table.Transaction(read_version, to_table_operation(operation), properties=properties)
