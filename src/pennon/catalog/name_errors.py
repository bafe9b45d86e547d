"""Errors about names: what is not there, and what is taken."""

from __future__ import annotations

from pennon.catalog.base import TableName
from pennon.catalog.manifest_rows import NAMESPACE, TABLE, ManifestRow, ManifestRows
from pennon.catalog.object_ids import MANIFEST_FOLDER, object_id
from pennon.catalog.table_names import join_name
from pennon.errors import AlreadyExistsError, NotFoundError, UnsupportedError


class NoNamespaceError(NotFoundError):
    """There is no namespace of that name."""


def check_namespace(rows: ManifestRows, name: TableName) -> None:
    """Raise NotFoundError if there is no such namespace, and nothing lies in one of that name."""
    itself = object_id(name)
    if not rows.has_namespace(itself) and not rows.has_below(itself):
        raise no_namespace(name)


def no_namespace(name: TableName) -> NoNamespaceError:
    """Return the error for a namespace that does not exist."""
    message = f"there is no namespace {join_name(name)}"
    return NoNamespaceError(message)


def no_table(name: TableName) -> NotFoundError:
    """Return the error for a table that does not exist."""
    message = f"there is no table {join_name(name)}"
    return NotFoundError(message)


def taken(name: TableName, found: ManifestRow) -> AlreadyExistsError:
    """Return the error for a name that an object has."""
    kind = found.object_type if found.object_type in {TABLE, NAMESPACE} else "object"
    message = f"there is a {kind} {join_name(name)} already"
    return AlreadyExistsError(message)


def folder_taken(name: TableName, *, is_deregistered: bool) -> AlreadyExistsError:
    """Return the error for a new table of the root namespace whose folder is there already."""
    hint = "; its name was deregistered: restore or register it" * is_deregistered
    message = f"there is a table in the folder of {join_name(name)} already{hint}"
    return AlreadyExistsError(message)


def check_no_versions(rows: ManifestRows, name: TableName) -> None:
    """Raise UnsupportedError for a table whose versions ``__manifest`` keeps track of, by its name."""
    if rows.versions_of(object_id(name)):
        message = f"{MANIFEST_FOLDER} keeps track of the versions of {join_name(name)}, so it cannot be renamed"
        raise UnsupportedError(message)
