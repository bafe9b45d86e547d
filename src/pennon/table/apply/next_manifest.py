"""The manifest that a transaction makes of the newest one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa

from pennon.core.units import DatasetVersion, FieldId
from pennon.errors import ArgumentError, RetryableConflict, UnsupportedError
from pennon.release import RELEASE
from pennon.table.apply import columns, rewrite, rows, settings, whole
from pennon.table.apply.context import ApplyContext
from pennon.table.apply.index_rules import believable
from pennon.table.blob_table import check_no_blob_table
from pennon.table.flags import NO_TRANSACTION_FILE, check_writable, with_flags
from pennon.table.manifest import Manifest, WriterVersion
from pennon.table.operations import (
    Append,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    operation_name,
)
from pennon.table.transaction import AppVersion, Transaction

_APPLY: Mapping[type, Callable[[Manifest, Any, ApplyContext], Manifest]] = {
    Append: rows.append,
    Delete: rows.delete,
    Update: rows.update,
    Overwrite: whole.overwrite,
    Restore: whole.restore,
    Merge: columns.merge,
    Project: columns.project,
    DataReplacement: columns.replace_data,
    Rewrite: rewrite.rewrite,
    ReserveFragments: rewrite.reserve,
    UpdateConfig: settings.update_config,
    UpdateBases: settings.update_bases,
    CreateIndex: settings.create_index,
}


def create(transaction: Transaction, around: ApplyContext) -> Manifest:
    """Return the first manifest of a new table."""
    operation = transaction.operation
    if isinstance(operation, Clone):
        made = whole.clone(operation, around)
        before = replace(made, version=DatasetVersion(made.version - 1))
        return _finish(before, made, transaction, around)
    if not isinstance(operation, Overwrite):
        message = f"a new table is made by an overwrite, not by {operation_name(operation)!r}"
        raise ArgumentError(message)
    blank = Manifest(operation.schema, DatasetVersion(0))
    return _finish(blank, whole.overwrite(blank, operation, around), transaction, around)


def apply(head: Manifest, transaction: Transaction, around: ApplyContext) -> Manifest:
    """Return the manifest that follows ``head`` when the transaction is committed on top of it."""
    check_writable(head)
    if not isinstance(transaction.operation, Overwrite):
        check_no_blob_table(head)
    make = _APPLY.get(type(transaction.operation))
    if make is None:
        name = operation_name(transaction.operation)
        message = f"Pennon cannot commit the operation {name!r} to a table"
        raise UnsupportedError(message)
    return _finish(head, make(head, transaction.operation, around), transaction, around)


def _finish(
    head: Manifest, manifest: Manifest, transaction: Transaction, around: ApplyContext
) -> Manifest:
    """Sign and date the manifest, and compute what follows from its contents.

    Raises AlreadyCommittedError for a transaction of an application that committed it, or a later one.
    """
    last = max(head.last_fragment_id, manifest.last_fragment_id)
    keeps_file = not head.writer_flags & NO_TRANSACTION_FILE
    app = AppVersion.of(transaction.properties)
    signed = replace(
        manifest,
        version=DatasetVersion(head.version + 1),
        timestamp_ns=around.now_ns,
        writer=_signature(),
        indices=manifest.indices and believable(manifest.indices, manifest.writer),
        tag=transaction.tag,
        max_fragment_id=last if last >= 0 else None,
        transaction_file=transaction.file_name if keeps_file else None,
        transaction=None,
        dictionaries=_with_new(manifest, around),
        config=manifest.config if app is None else app.added_to(manifest.config),
    )
    return with_flags(
        signed, stable_row_ids=manifest.has_stable_row_ids, transaction_file=keeps_file
    )


def _with_new(manifest: Manifest, around: ApplyContext) -> Mapping[FieldId, pa.Array[Any]]:
    """Return the dictionaries of the table and those that the operation brings.

    Raises RetryableConflict if the table has got another one for a column meanwhile.
    """
    known = manifest.dictionaries
    for field_id, values in around.dictionaries.items():
        if not values.equals(known.get(field_id, values)):
            message = (
                f"another writer has given field {field_id} its dictionary, and at file version 0.1 a "
                "table has one for all its rows; write the rows again"
            )
            raise RetryableConflict(message)
    return {**around.dictionaries, **known}


@cache
def _signature() -> WriterVersion:
    return WriterVersion("pennon", RELEASE)
