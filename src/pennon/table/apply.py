"""What a transaction makes of a table: the next manifest.  Pure; no I/O.

Fragment ids are never used twice, also not by an overwrite, so that nothing that remembers a
fragment by its id (an index, a cache) can mistake another for it.  The highest id ever used is
``max_fragment_id``, and it never goes down; nor does ``next_row_id``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version as installed_version
from typing import Any

import pyarrow as pa

from pennon.errors import ArgumentError, SchemaMismatchError, UnsupportedError
from pennon.schema.field import Field, Schema
from pennon.schema.version import DEFAULT_VERSION, V0_1, FileVersion
from pennon.table.file_versions import file_versions
from pennon.table.flags import NO_TRANSACTION_FILE, check_writable, with_flags
from pennon.table.manifest import DataFormat, Fragment, Manifest, WriterVersion
from pennon.table.messages import MAX_FRAGMENT_ID
from pennon.table.rowids import encode_one_version, encode_row_id_range
from pennon.table.storage_version import storage_version
from pennon.table.transaction import Append, Overwrite, Transaction, operation_name
from pennon.units import DatasetVersion, FieldId, FragmentId

Complete = Callable[[Fragment], Fragment]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a new manifest takes from outside of the table and the transaction.

    ``stable_row_ids`` counts for new tables only, ``file_version`` for new and overwritten ones
    that get no data files.  ``complete`` fills in the row counts of a fragment whose writer left
    them out or wrong (Lance before 0.8.15).  ``dictionaries`` are those of an overwrite with files of
    version 0.1.
    """

    now_ns: int
    stable_row_ids: bool = False
    file_version: FileVersion | None = None
    complete: Complete | None = None
    dictionaries: Mapping[FieldId, pa.Array[Any]] = field(default_factory=dict)


def create(transaction: Transaction, around: Surroundings) -> Manifest:
    """Return the first manifest of a new table."""
    operation = transaction.operation
    if not isinstance(operation, Overwrite):
        message = f"a new table is made by an overwrite, not by {operation_name(operation)!r}"
        raise ArgumentError(message)
    blank = Manifest(operation.schema, DatasetVersion(0))
    return _finish(blank, _overwrite(blank, operation, around), transaction, around)


def apply(head: Manifest, transaction: Transaction, around: Surroundings) -> Manifest:
    """Return the manifest that follows ``head`` when the transaction is committed on top of it."""
    check_writable(head)
    operation = transaction.operation
    if isinstance(operation, Overwrite):
        return _finish(head, _overwrite(head, operation, around), transaction, around)
    if isinstance(operation, Append):
        return _finish(head, _append(head, operation, around), transaction, around)
    message = f"Pennon cannot commit the operation {operation_name(operation)!r} yet"
    raise UnsupportedError(message)


def missing_field(schema: Schema, fragments: Iterable[Fragment]) -> Field | None:
    """Return a field that must not be null, but that some fragment has no data for."""
    required = [field for top in schema.fields for field in _required(top)]
    for fragment in fragments:
        present = {field_id for file in fragment.files for field_id in file.field_ids}
        for each in required:
            if not any(below.id in present for below in each.walk()):
                return each
    return None


def _append(head: Manifest, operation: Append, around: Surroundings) -> Manifest:
    if any(fragment.deletion_file is not None for fragment in operation.fragments):
        message = "a fragment with a deletion file cannot be appended: the file's name holds its id"
        raise ArgumentError(message)
    missing = missing_field(head.schema, operation.fragments)
    if missing is not None:
        message = f"field {missing.name!r} must not be null, but appended files do not have it"
        raise SchemaMismatchError(message)
    version = storage_version(head)
    _check_mixture(operation.fragments, version)
    last = head.last_fragment_id
    new, next_row_id = _with_row_ids(
        _with_ids(operation.fragments, last), head, stable=head.has_stable_row_ids
    )
    return replace(
        head,
        fragments=_complete(head, around) + new,
        data_format=DataFormat("lance", str(version)),
        next_row_id=next_row_id,
    )


def _overwrite(head: Manifest, operation: Overwrite, around: Surroundings) -> Manifest:
    if operation.base_paths:
        message = "Pennon does not write tables with base paths yet"
        raise UnsupportedError(message)
    is_new = head.version == 0
    stable = around.stable_row_ids if is_new else head.has_stable_row_ids
    if around.stable_row_ids and not stable:
        message = "stable row ids can be chosen for a new table only"
        raise UnsupportedError(message)
    fragments = _with_ids_for_overwrite(head, operation.fragments)
    new, next_row_id = _with_row_ids(fragments, head, stable=stable)
    return replace(
        head,
        schema=operation.schema,
        fields_wire=operation.fields_wire,
        fragments=new,
        data_format=DataFormat("lance", str(_chosen_version(head, operation, around))),
        next_row_id=next_row_id,
        reader_flags=2 if stable else 0,
        dictionaries=around.dictionaries,
        config={**head.config, **operation.config_upserts},
        indices=b"",
    )


def _finish(
    head: Manifest, manifest: Manifest, transaction: Transaction, around: Surroundings
) -> Manifest:
    """Sign and date the manifest, and compute what follows from its contents."""
    last = max(head.last_fragment_id, manifest.last_fragment_id)
    keeps_file = not head.writer_flags & NO_TRANSACTION_FILE
    signed = replace(
        manifest,
        version=DatasetVersion(head.version + 1),
        timestamp_ns=around.now_ns,
        writer=_signature(),
        tag=transaction.tag,
        max_fragment_id=last if last >= 0 else None,
        transaction_file=transaction.file_name if keeps_file else None,
        transaction=None,
    )
    return with_flags(
        signed, stable_row_ids=manifest.has_stable_row_ids, transaction_file=keeps_file
    )


def _with_ids_for_overwrite(
    head: Manifest, fragments: tuple[Fragment, ...]
) -> tuple[Fragment, ...]:
    """Give fresh ids, except to fragments of the head that stay, or whose deletion file names them.

    Fresh fragments lose row ids that they bring from elsewhere.
    """
    known = {(f.id, f.files) for f in head.fragments}
    stays = [(f.id, f.files) in known or f.deletion_file is not None for f in fragments]
    kept = [f.id for f, keep in zip(fragments, stays, strict=True) if keep]
    if len(set(kept)) != len(kept):
        message = f"two fragments have one id: {sorted(kept)[:20]}"
        raise ArgumentError(message)
    others = [f for f, keep in zip(fragments, stays, strict=True) if not keep]
    fresh = iter(_with_ids(others, max([head.last_fragment_id, *kept])))
    return tuple(f if keep else next(fresh) for f, keep in zip(fragments, stays, strict=True))


def _with_ids(fragments: Iterable[Fragment], last: int) -> tuple[Fragment, ...]:
    """Give new fragments the ids after ``last``; row ids from elsewhere mean nothing here."""
    new = tuple(
        replace(
            fragment,
            id=FragmentId(last + 1 + number),
            row_ids=None,
            last_updated_at_versions=None,
            created_at_versions=None,
        )
        for number, fragment in enumerate(fragments)
    )
    if new and new[-1].id > MAX_FRAGMENT_ID:
        message = f"a table has no more than {MAX_FRAGMENT_ID + 1} fragment ids"
        raise ArgumentError(message)
    return new


def _with_row_ids(
    fragments: tuple[Fragment, ...], head: Manifest, *, stable: bool
) -> tuple[tuple[Fragment, ...], int]:
    """Give stable ids to the rows of fragments that have none; also return the next free id."""
    next_row_id = head.next_row_id
    if not stable:
        return fragments, next_row_id
    done = []
    for fragment in fragments:
        rows = fragment.physical_rows or 0
        if fragment.row_ids is None:
            versions = encode_one_version(head.version + 1, rows) if rows else None
            fragment = replace(  # noqa: PLW2901 - the same fragment, with its row ids
                fragment,
                row_ids=encode_row_id_range(next_row_id, rows),
                last_updated_at_versions=versions,
                created_at_versions=versions,
            )
            next_row_id += rows
        done.append(fragment)
    return tuple(done), next_row_id


def _complete(head: Manifest, around: Surroundings) -> tuple[Fragment, ...]:
    """Return the head's fragments, with row counts that the new manifest can vouch for."""
    if head.writer is not None or not head.fragments:
        return tuple(head.fragments)
    if around.complete is None:
        message = "this table was written by Lance before 0.8.15; its row counts must be redone"
        raise UnsupportedError(message)
    return tuple(around.complete(fragment) for fragment in head.fragments)


def _chosen_version(head: Manifest, operation: Overwrite, around: Surroundings) -> FileVersion:
    found = file_versions(operation.fragments)
    if found:
        version = around.file_version or max(found)
        _check_one_version(operation.fragments, version)
        return version
    if around.file_version is not None:
        return around.file_version
    return DEFAULT_VERSION if head.version == 0 else storage_version(head)


def _check_mixture(new: tuple[Fragment, ...], version: FileVersion) -> None:
    """Refuse files of 0.1 in a table of 2.x, and the other way round; 2.x may be mixed.

    Source: ledger F-111.
    """
    for other in sorted(file_versions(new)):
        if (other == V0_1) != (version == V0_1):
            message = f"files of version {other} cannot be added to a table of version {version}"
            raise ArgumentError(message)


def _check_one_version(fragments: tuple[Fragment, ...], version: FileVersion) -> None:
    others = file_versions(fragments) - {version}
    if others:
        found = ", ".join(str(other) for other in sorted(others))
        message = f"the overwrite is of file version {version}, but there are files of {found}"
        raise ArgumentError(message)


def _required(field: Field) -> Iterable[Field]:
    """Yield the fields, this one or below it, that hold a value in every row; no structs."""
    if field.nullable:
        return
    if field.logical_type != "struct":
        yield field
        return
    for child in field.children:
        yield from _required(child)


@cache
def _signature() -> WriterVersion:
    return WriterVersion("pennon", installed_version("pennon"))
