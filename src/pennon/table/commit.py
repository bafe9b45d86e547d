"""How a commit lands.

::

    read the newest version                    ← the table's head
    judge every transaction newer than ours    → conflict, or go on
    write _transactions/{…}.txn                (nobody reads it until the manifest names it)
    build the next manifest
    create _versions/{head + 1} if absent      ← the commit point
    lost the race?  → from the top, after a pause

A write that failed may still have landed; `pennon.table.landing` finds out, or raises
`CommitStateUnknown`.  Whoever calls again with the same transaction is told the truth then, because
a transaction that was committed is recognised wherever in the history it lies.

Nothing is ever deleted here: a file that looks like an orphan may belong to a commit that landed.

Source: commit-and-faults reference, 0 and 1.4; docs/decisions.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from pennon.errors import (
    AlreadyExistsError,
    FormatError,
    IncompatibleConflict,
    NotFoundError,
    RetryableConflict,
    SchemaMismatchError,
)
from pennon.schema.version import FileVersion
from pennon.table.apply import Complete, Surroundings, apply, create
from pennon.table.flags import check_writable
from pennon.table.landing import CommitStore, keep_latest, land
from pennon.table.manifest import Manifest
from pennon.table.naming import Naming, transaction_path
from pennon.table.operations import Clone, Overwrite, Restore
from pennon.table.rebase import (
    Affected,
    check_adds_no_rows,
    check_compatible,
    rebase_deletions,
    same_intent,
)
from pennon.table.rowids import read_sequence
from pennon.table.transaction import (
    Transaction,
    check_uuid,
    read_transaction,
    serialize_transaction,
)
from pennon.table.versions import (
    ManifestLocation,
    latest_location,
    list_locations,
    read_manifest,
    read_manifest_at,
)
from pennon.units import DatasetVersion, FieldId, FragmentId

_SLOTS = 4
_LONGEST_PAUSE = 5.0
_LIST_TO_PUT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """How to commit.

    ``naming``, ``stable_row_ids`` count for a new table; ``file_version`` for a new or overwritten
    one.  ``max_retries`` is how often the race for a version may be lost; an overwrite with 0
    retries is strict: nobody may have committed since its read version.  ``complete`` gives the row
    counts of fragments that a writer before 0.8.15 left out, ``dictionaries`` the values of those of
    an overwrite with files of version 0.1, ``past`` the version that a clone names.  ``adds_keys``: rows
    are added because no row had their keys, so nobody else may have added any since.  The rest is for
    tests.
    """

    max_retries: int = 20
    naming: Naming = Naming.V2
    stable_row_ids: bool = False
    file_version: FileVersion | None = None
    complete: Complete | None = None
    dictionaries: Mapping[FieldId, pa.Array[Any]] = field(default_factory=dict)
    past: Manifest | None = None
    adds_keys: bool = False
    now_ns: Callable[[], int] = time.time_ns
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    pick: Callable[[int], int] = field(default=random.randrange)

    def surroundings(self, store: CommitStore) -> Surroundings:
        """Return what the manifest of an attempt takes from here."""
        return Surroundings(
            self.now_ns(),
            self.stable_row_ids,
            self.file_version,
            self.complete,
            self.dictionaries,
            self.past,
            partial(read_sequence, store),
        )


def commit(
    store: CommitStore,
    transaction: Transaction,
    options: CommitOptions | None = None,
    affected: Affected | None = None,
) -> Manifest:
    """Commit a transaction, and return the manifest of the version that it made.

    ``read_version`` 0 makes a new table.  ``affected`` are the rows that a delete or an update took
    away, by fragment: with them it can follow another that took other rows of the same fragments.

    Raises AlreadyExistsError if there is a table already, RetryableConflict or
    IncompatibleConflict if another writer stands in the way, CommitStateUnknown if the store did
    not say whether the commit landed, UnsupportedError if the table or the store is beyond us, and
    StoreError if the store failed before anything was committed.
    """
    check_uuid(transaction.uuid)
    options = options or CommitOptions()
    wire = serialize_transaction(transaction)
    mine = _Mine(transaction, wire, affected or {}, options.adds_keys)
    is_new = transaction.read_version == 0 or isinstance(transaction.operation, Clone)
    way = _create if is_new else _commit
    return way(store, mine, options)


@dataclass(frozen=True, slots=True)
class _Mine:
    """The transaction to commit, its bytes, and the rows that it takes away."""

    transaction: Transaction
    wire: bytes
    affected: Affected
    adds_keys: bool = False

    def on(self, store: CommitStore, head: Manifest, shared: frozenset[FragmentId]) -> _Mine:
        """Return what is to be committed on top of ``head``."""
        rebased = rebase_deletions(store, head, self.transaction, self.affected, shared)
        if rebased is self.transaction:
            return self
        return _Mine(rebased, serialize_transaction(rebased), self.affected)

    def put_file(self, store: CommitStore) -> None:
        store.put(transaction_path(self.transaction.file_name), self.wire)


def _create(store: CommitStore, mine: _Mine, options: CommitOptions) -> Manifest:
    for location in list_locations(store):
        return _already_created(store, location, mine.wire)
    manifest = replace(create(mine.transaction, options.surroundings(store)), transaction=mine.wire)
    mine.put_file(store)
    if land(store, options.naming, manifest, options.sleep):
        keep_latest(store, options.naming, manifest)
        return manifest
    message = f"another writer has just created a table at {store.uri!r}"
    raise AlreadyExistsError(message)


def _already_created(store: CommitStore, location: ManifestLocation, ours: bytes) -> Manifest:
    """Return the oldest version if it is what we want to create, as when a caller tries again."""
    manifest = read_manifest_at(store, location)
    if manifest.transaction == ours:
        return manifest
    message = f"there is a table at {store.uri!r} already"
    raise AlreadyExistsError(message)


def _commit(store: CommitStore, mine: _Mine, options: CommitOptions) -> Manifest:
    judged = mine.transaction.read_version
    shared: frozenset[FragmentId] = frozenset()
    written = b""
    for started in _attempts(options):
        location = latest_location(store)
        head = read_manifest_at(store, location)
        found = _judge_newer(store, mine, judged, location, head)
        if isinstance(found, Manifest):
            return found
        _check_strict(mine.transaction, head, options)
        judged, shared = head.version, shared | found
        rebased = mine.on(store, head, shared)
        manifest = _next_manifest(store, head, rebased, options)
        if manifest.transaction_file is not None and written != rebased.wire:
            rebased.put_file(store)
            written = rebased.wire
        if options.clock() - started > _LIST_TO_PUT_SECONDS:
            continue
        if land(store, location.naming, manifest, options.sleep):
            keep_latest(store, location.naming, manifest)
            return manifest
    message = f"lost the race for the next version {max(options.max_retries, 1)} times"
    raise RetryableConflict(message)


def _attempts(options: CommitOptions) -> Iterator[float]:
    """Yield the start time of each attempt, and pause between them.

    The pause is a random number of slots, of which there are twice as many each time; a slot is
    a bit more than what the first attempt took, so writers that start together drift apart.
    """
    slot = 0.0
    for attempt in range(max(options.max_retries, 1)):
        started = options.clock()
        if attempt:
            options.sleep(min(slot * options.pick(_SLOTS << min(attempt, 16)), _LONGEST_PAUSE))
            started = options.clock()
        yield started
        slot = slot or 1.1 * (options.clock() - started)


def _judge_newer(
    store: CommitStore, mine: _Mine, judged: int, location: ManifestLocation, head: Manifest
) -> Manifest | frozenset[FragmentId]:
    """Judge the versions after ``judged``; return the one that is our own commit, if any is.

    Else return the fragments of which others deleted rows, too.
    """
    if head.version < judged:
        message = f"version {judged} was read, but {head.version} is the newest: another table?"
        raise NotFoundError(message)
    shared: frozenset[FragmentId] = frozenset()
    for version in map(DatasetVersion, range(judged + 1, head.version + 1)):
        manifest = head if version == head.version else _read_newer(store, location, version)
        other = read_transaction(store, manifest)
        if other is not None and (other == mine.wire or same_intent(mine.transaction, other)):
            return manifest
        check_writable(manifest)
        shared |= check_compatible(mine.transaction, other, version, mine.affected)
        if mine.adds_keys and other is not None:
            check_adds_no_rows(other, version)
    return shared


def _read_newer(store: CommitStore, head: ManifestLocation, version: DatasetVersion) -> Manifest:
    """Read a version below the head; one that was cleaned up cannot be judged any more."""
    path = head.naming.manifest_path(version)
    try:
        return read_manifest_at(store, replace(head, version=version, path=path, size_bytes=None))
    except (NotFoundError, FormatError) as error:
        message = f"version {version}, before the newest {head.version}, cannot be judged: {error}"
        raise IncompatibleConflict(message) from error


def _check_strict(transaction: Transaction, head: Manifest, options: CommitOptions) -> None:
    is_strict = isinstance(transaction.operation, Overwrite) and options.max_retries == 0
    if is_strict and head.version != transaction.read_version:
        message = (
            f"Commit conflict for version {head.version}: it was committed since version "
            f"{transaction.read_version}, which this transaction was planned on"
        )
        raise RetryableConflict(message)


def _next_manifest(
    store: CommitStore, head: Manifest, mine: _Mine, options: CommitOptions
) -> Manifest:
    around = options.surroundings(store)
    operation = mine.transaction.operation
    if isinstance(operation, Restore):
        around = replace(around, past=read_manifest(store, operation.version))
    try:
        manifest = apply(head, mine.transaction, around)
    except SchemaMismatchError as error:
        if head.version == mine.transaction.read_version:
            raise
        message = f"version {head.version} changed the schema: {error.message}"
        raise RetryableConflict(message) from error
    return replace(manifest, transaction=mine.wire)
