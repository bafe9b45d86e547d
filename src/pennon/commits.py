"""Committing what was written before: from pylance's operations to the table layer's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pennon.errors import ArgumentError
from pennon.io.store import Store
from pennon.operation import LanceOperation, Transaction, merge_message
from pennon.operation_values import to_table_operation
from pennon.ops.counts import counted_by
from pennon.ops.dictionaries import with_dictionaries
from pennon.scan.snapshot import Snapshot
from pennon.table import transaction as table
from pennon.table.commit import CommitOptions, commit
from pennon.table.naming import Naming
from pennon.writing import as_store, newest_version


def commit_operation(
    target: Any,
    operation: Any,
    read_version: int | None,
    storage_options: Mapping[str, str] | None,
    *,
    v2_paths: bool,
    max_retries: int,
    message: str | None,
    stable_row_ids: bool,
) -> tuple[str, Snapshot]:
    """Commit, and return the table's place and the version made.

    Raises ArgumentError if an operation that needs a read version has none.
    """
    store, _ = as_store(target, storage_options)
    if isinstance(operation, Transaction):
        transaction = _from_transaction(operation, message)
    elif isinstance(operation, LanceOperation.BaseOperation):
        transaction = _from_operation(store, operation, read_version, message)
    else:
        wrong = type(operation).__name__
        text = f"operation must be a LanceOperation or a Transaction, got {wrong}"
        raise TypeError(text)
    options = CommitOptions(
        max_retries,
        Naming.V2 if v2_paths else Naming.V1,
        stable_row_ids=stable_row_ids,
        complete=counted_by(store),
    )
    manifest = commit(store, transaction, with_dictionaries(store, transaction, options))
    if hasattr(target, "snapshot"):
        return target.uri, Snapshot(store, manifest, target.snapshot.session)
    return os.fspath(target), Snapshot(store, manifest)


def _from_transaction(transaction: Transaction, message: str | None) -> table.Transaction:
    if message is not None:
        text = "a Transaction has its own properties; put the commit message among them"
        raise ArgumentError(text)
    return table.Transaction(
        transaction.read_version,
        to_table_operation(transaction.operation),
        transaction.uuid,
        transaction.transaction_properties or {},
    )


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
    properties = merge_message(message, None) or {}
    return table.Transaction(read_version, to_table_operation(operation), properties=properties)
