"""The check of an operation that a caller made, before it is committed."""

from __future__ import annotations

from pennon.core.units import DatasetVersion
from pennon.errors import NotFoundError
from pennon.io.store import Store
from pennon.ops.commit_checks.files import NewFiles
from pennon.ops.commit_checks.required import check_new_requirements
from pennon.ops.commit_checks.schemas import check_merged_schema, check_projected_schema
from pennon.schema.field import Schema
from pennon.table.manifest import Manifest
from pennon.table.operations import (
    Append,
    DataReplacement,
    Merge,
    Operation,
    Overwrite,
    Project,
    Rewrite,
    Update,
)
from pennon.table.transaction import Transaction
from pennon.table.versions import read_manifest


def check_given(store: Store, transaction: Transaction, base: Manifest | None) -> None:
    """Check that an operation means by each field id what the table and its data files mean by it.

    ``base`` is the version that it was planned on, if the caller has it; else it is read.  Files that are new
    to the table are read, their footers only, unless they say what they were written with.  Where a field
    becomes required, its values are read, too.

    Raises SchemaMismatchError, which names the field.
    """
    operation = transaction.operation
    if not isinstance(
        operation, Append | Overwrite | Merge | Project | Update | Rewrite | DataReplacement
    ):
        return
    head = base or _planned_on(store, transaction)
    if head is None:
        if not isinstance(operation, Overwrite):
            return  # there is no table, as the commit says
        head = Manifest(Schema(()), DatasetVersion(0))
    schema = _schema_after(head, operation)
    if isinstance(operation, Merge):
        check_merged_schema(head, operation)
    elif isinstance(operation, Project):
        check_projected_schema(store, head, operation)
    files = NewFiles.of(store, head, operation, schema)
    files.check_names()
    check_new_requirements(store, head, operation, files)


def _planned_on(store: Store, transaction: Transaction) -> Manifest | None:
    """Return the version that a transaction was planned on, or the newest if that was cleaned up."""
    for version in (transaction.read_version, None):
        try:
            return read_manifest(store, version) if version != 0 else None
        except NotFoundError:
            continue
    return None


def _schema_after(head: Manifest, operation: Operation) -> Schema:
    """Return the schema that the table has after the operation."""
    if isinstance(operation, Overwrite | Merge | Project):
        return operation.schema
    return head.schema
