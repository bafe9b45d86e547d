"""Putting a transaction on top of what others committed since it was planned.

`pennon.table.commit.conflict_matrix` says whether that makes sense at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from pennon.core.cached_property import cached_property
from pennon.core.runs import distinct
from pennon.core.units import FragmentId
from pennon.errors import ConflictError, FormatError, IncompatibleConflict, RetryableConflict
from pennon.io.store import Opens
from pennon.schema.field import Schema
from pennon.table.commit.conflict_matrix import Verdict, judge, touched
from pennon.table.commit.put_manifest import CommitStore
from pennon.table.deletion import read_deletions, write_deletions
from pennon.table.fragment import ExternalFile, Fragment
from pennon.table.fragment_reuse_wire import parse_reuse
from pennon.table.indices import FRAGMENT_REUSE
from pennon.table.indices_wire import parse_indices
from pennon.table.manifest import Manifest
from pennon.table.operations import (
    Clone,
    CreateIndex,
    DeferredRemap,
    Delete,
    Project,
    ReserveFragments,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    operation_name,
)
from pennon.table.roaring import Offsets
from pennon.table.transaction import Transaction
from pennon.table.transaction_wire import parse_transaction, serialize_transaction

Affected: TypeAlias = Mapping[FragmentId, Offsets]
"""The rows of each fragment that a delete or an update took away, by their offsets."""


class NewDeletions(Mapping[FragmentId, Offsets]):
    """The rows of each fragment that an operation takes away; a fragment's are read when asked for.

    Who plans and commits in one go knows these rows.  A transaction that is committed by hand, maybe
    on another machine, does not say them; but they are what the new deletion file of a fragment names
    and that of the version it was planned on does not.  So such a commit is judged as strictly, and
    rebased as well, as any other.  Fragments of which nothing is left, or no row goes, are not among
    them.
    """

    def __init__(self, store: Opens, base: Manifest, operation: Delete | Update) -> None:
        """``base`` is the version that the operation was planned on."""
        self._store, self._base, self._updated = store, base, operation.updated

    @cached_property
    def _changed(self) -> Mapping[FragmentId, tuple[Fragment, Fragment]]:
        """The fragments that lose rows, before and after: only looked for where somebody else came too."""
        after = {fragment.id: fragment for fragment in self._updated}
        return {
            before.id: (before, after[before.id])
            for before in self._base.fragments
            if before.id in after and after[before.id].deletion_file != before.deletion_file
        }

    def __getitem__(self, fragment_id: FragmentId) -> Offsets:
        """Read both deletion files."""
        dead, rows = self._read(fragment_id)
        return np.setdiff1d(rows, dead, assume_unique=True).astype(np.uint32)

    def __iter__(self) -> Iterator[FragmentId]:
        """Iterate over the fragments."""
        return iter(self._changed)

    def __len__(self) -> int:
        """Return the number of fragments."""
        return len(self._changed)

    def check_nothing_returns(self, read_version: int) -> None:
        """Raise RetryableConflict if a row that is dead in the base would live again.

        As where an operation was planned on an older version than it says: its deletion files lack
        what others deleted since.  One that was written for the base has all of it.
        """
        for fragment_id, (before, after) in self._changed.items():
            if before.deletion_file is None or _planned_on(after) == read_version:
                continue
            dead, rows = self._read(fragment_id)
            lost = np.setdiff1d(dead, rows, assume_unique=True)
            if len(lost):
                message = (
                    f"row {lost[0]} of fragment {fragment_id} is deleted in version {read_version}, but "
                    "not here: it was planned on an older one; try again on the newest version"
                )
                raise RetryableConflict(message)

    def _read(self, fragment_id: FragmentId) -> tuple[Offsets, Offsets]:
        before, after = self._changed[fragment_id]
        return read_deletions(self._store, before), read_deletions(self._store, after)


def _planned_on(fragment: Fragment) -> int | None:
    return None if fragment.deletion_file is None else fragment.deletion_file.read_version


def check_compatible(
    mine: Transaction,
    other: bytes | None,
    version: int,
    affected: Affected | None = None,
    indices: bytes = b"",
    schema: Schema | None = None,
) -> frozenset[FragmentId]:
    """Raise the conflict, if there is one, with the transaction that made ``version``.

    ``other`` is that transaction serialized, None if it is lost; ``indices`` and ``schema`` are those of the version.
    Returns the fragments whose deletions must be united.
    """
    name = operation_name(mine.operation)
    ours = mine.operation
    if schema is not None and isinstance(ours, CreateIndex):
        ours = _on_relatives(ours, schema)
    if other is None:
        message = f"the transaction of version {version} is lost, so {name!r} may conflict with it"
        raise IncompatibleConflict(message)
    try:
        theirs = parse_transaction(other)
        operation = theirs.operation
        if isinstance(operation, Rewrite) and isinstance(mine.operation, CreateIndex):
            operation = _with_remap(operation, indices)
        verdict = judge(ours, operation)
    except FormatError as error:
        message = f"the transaction of version {version} cannot be read: {error}"
        raise IncompatibleConflict(message, other=other) from error
    if verdict is Verdict.REBASE:
        shared = touched(mine.operation) & touched(theirs.operation)
        known = affected is not None and shared <= affected.keys()
        if known:
            return shared
        verdict = Verdict.RETRYABLE
    if verdict is Verdict.COMPATIBLE:
        return frozenset()
    found = operation_name(theirs.operation) or "an operation that Pennon does not know"
    message = f"Commit conflict for version {version}: this {name} conflicts with {found}"
    conflict: type[ConflictError] = IncompatibleConflict
    if verdict is Verdict.RETRYABLE:
        message += "; try again on the newest version"
        conflict = RetryableConflict
    raise conflict(message, other=other)


def _on_relatives(made: CreateIndex, schema: Schema) -> CreateIndex:
    """Return new indices as if they were on all fields around theirs as well: files name the items of a list alone."""
    new = (replace(each, field_ids=tuple(schema.relatives(each.field_ids))) for each in made.new)
    return replace(made, new=tuple(new))


def _with_remap(rewrite: Rewrite, indices: bytes) -> Rewrite:
    """Return a rewrite with what its version's fragment reuse index says of it, if that is among the details."""
    entry = next((each for each in parse_indices(indices) if each.name == FRAGMENT_REUSE), None)
    found = parse_reuse(entry.details[1]) if entry is not None and entry.details else ()
    if entry is None or isinstance(found, ExternalFile):
        return rewrite
    known = {frozenset(old.id for old in group.old) for each in found for group in each.groups}
    is_told = all(frozenset(old.id for old in group.old) in known for group in rewrite.groups)
    return replace(rewrite, deferred=DeferredRemap(entry, None)) if is_told else rewrite


_ADD_NO_ROWS = (
    Delete,
    CreateIndex,
    Rewrite,
    ReserveFragments,
    Project,
    UpdateConfig,
    UpdateBases,
    Clone,
)


def check_adds_no_rows(other: bytes, version: int) -> None:
    """Raise RetryableConflict if the transaction that made ``version`` may have added rows.

    Or if it may have changed keys: whoever adds rows because nobody had their keys must look again.
    """
    operation = parse_transaction(other).operation
    is_deletion = isinstance(operation, Update) and not (operation.new or operation.fields_modified)
    if not is_deletion and not isinstance(operation, _ADD_NO_ROWS):
        message = (
            f"Commit conflict for version {version}: this update adds rows by their keys, and others "
            "were added or changed; try again on the newest version"
        )
        raise RetryableConflict(message, other=other)


def rebase_deletions(
    store: CommitStore,
    head: Manifest,
    transaction: Transaction,
    affected: Affected,
    shared: frozenset[FragmentId],
) -> Transaction:
    """Return the transaction as it is on top of ``head``, for fragments that others changed, too.

    Their deletion files are written anew: what is deleted now, and the rows of this transaction.
    Raises RetryableConflict where a row is gone already, or the fragment is another.
    """
    operation = transaction.operation
    if not isinstance(operation, (Delete, Update)):
        return transaction
    current = {fragment.id: fragment for fragment in head.fragments if fragment.id in shared}
    updated, gone = [], []
    for fragment in operation.updated:
        if fragment.id not in shared:
            updated.append(fragment)
            continue
        now = _unchanged(fragment, current.get(fragment.id))
        united = _united(store, now, affected[fragment.id])
        if len(united) == now.physical_rows:
            gone.append(fragment.id)
            continue
        deletion = write_deletions(store, now.id, head.version, united)
        updated.append(replace(now, deletion_file=deletion))
    rebased = _with_changes(operation, tuple(updated), tuple(gone))
    return replace(transaction, operation=rebased, read_version=head.version)


def _with_changes(
    operation: Delete | Update, updated: tuple[Fragment, ...], gone: tuple[FragmentId, ...]
) -> Delete | Update:
    if isinstance(operation, Delete):
        return replace(operation, updated=updated, deleted_ids=(*operation.deleted_ids, *gone))
    return replace(operation, updated=updated, removed_ids=(*operation.removed_ids, *gone))


def _unchanged(mine: Fragment, now: Fragment | None) -> Fragment:
    """Return the fragment as it is now; raises RetryableConflict if its data is another."""
    if now is None or now.files != mine.files:
        what = "is gone" if now is None else "has other data files"
        message = f"fragment {mine.id} {what}; try again on the newest version"
        raise RetryableConflict(message)
    return now


def _united(store: CommitStore, fragment: Fragment, rows: Offsets) -> Offsets:
    dead = read_deletions(store, fragment)
    both = np.intersect1d(dead, rows, assume_unique=True)
    if len(both):
        message = (
            f"row {both[0]} of fragment {fragment.id} was deleted or updated meanwhile; "
            "try again on the newest version"
        )
        raise RetryableConflict(message)
    return distinct(np.concatenate([dead, rows])).astype(np.uint32)


def same_intent(mine: Transaction, other: bytes) -> bool:
    """Tell whether a transaction that was committed is ours, rebased or not.

    Its uuid alone would not do, because a caller may use one twice.
    """
    if mine.uuid.encode() not in other:
        return False
    try:
        theirs = parse_transaction(other)
    except FormatError:
        return False
    return theirs.uuid == mine.uuid and _intent(theirs) == _intent(mine)


def _intent(transaction: Transaction) -> bytes:
    """Return what of a transaction no rebase changes."""
    operation = transaction.operation
    if isinstance(operation, (Delete, Update)):
        rows = tuple(sorted(touched(operation)))
        operation = _with_changes(_without_changes(operation), (), rows)
    return serialize_transaction(replace(transaction, operation=operation, read_version=0))


def _without_changes(operation: Delete | Update) -> Delete | Update:
    if isinstance(operation, Delete):
        return replace(operation, deleted_ids=())
    return replace(operation, removed_ids=())
