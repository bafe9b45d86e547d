"""The commit loop: rebase, put the manifest, retry.

::

    read the newest version                    ← the table's head
    judge every transaction newer than ours    → conflict, or go on
    write _transactions/{…}.txn                (a far store gets it while it is asked for the head: nobody
                                                reads it until the manifest names it)
    build the next manifest
    create _versions/{head + 1} if absent      ← the commit point
    look whether it is the newest              (see `pennon.table.commit.put_manifest.verify_latest`)
    lost the race?  → from the top, after a pause

A write that failed may still have landed; `pennon.table.commit.put_manifest` finds out, or raises
`CommitStateUnknown`.  Whoever calls again with the same transaction is told the truth then, because
a transaction that was committed is recognised wherever in the history it lies.

Nothing is ever deleted here: a file that looks like an orphan may belong to a commit that landed.

Source: commit-and-faults reference, 0 and 1.4; docs/decisions.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeAlias, TypeVar

from pennon.core.loggers import COMMIT
from pennon.core.telemetry import COMMIT_SECONDS, COMMITS, CONFLICTS, count, measured
from pennon.core.thread_pools import PoolSpec, beside
from pennon.core.units import DatasetVersion, FragmentId
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    CommitError,
    IncompatibleConflict,
    RetryableConflict,
    UnsupportedError,
)
from pennon.table.apply import apply, create
from pennon.table.commit.conflict_check import PendingCommit, check_same_table, judge_newer
from pennon.table.commit.migrate_naming import copy_newest
from pennon.table.commit.options import CommitOptions
from pennon.table.commit.put_manifest import (
    RESENT_WITHIN_SECONDS,
    CommitStore,
    keep_latest,
    put_manifest,
    put_manifest_at,
    verify_latest,
)
from pennon.table.commit.rebase import Affected
from pennon.table.flags import NO_TRANSACTION_FILE
from pennon.table.manifest import Manifest
from pennon.table.naming import MAX_VERSION, Naming, detached_path, is_detached
from pennon.table.operations import Clone, Overwrite, Restore
from pennon.table.transaction import Transaction, check_uuid
from pennon.table.transaction_wire import serialize_transaction
from pennon.table.versions import (
    ManifestLocation,
    find_location,
    latest_location,
    list_locations,
    read_manifest,
    read_manifest_at,
    read_next,
)

T = TypeVar("T")

_SLOTS = 4
_LONGEST_PAUSE = 5.0
_QUICK_SECONDS = 10.0
"""Who lands so soon after it listed the versions makes no request to look whether others went far beyond:
they would have cleaned up what is younger than that."""
_CLOSE = 2
"""After so many versions were judged, others had little time to commit.  Else one looks for the next
ones, or a writer that paused for long would lose the race to those that did not, each time."""
_STEPS = 20
_SAFE_AGE_NS = 3600 * 10**9
"""A file that is younger than an hour is not taken for an orphan by any clean-up."""


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
    if transaction.read_version < 0:
        message = f"there is no version {transaction.read_version} to commit on top of"
        raise ArgumentError(message)
    if is_detached(transaction.read_version):
        message = f"version {transaction.read_version} is detached: only a detached one can follow"
        raise ArgumentError(message)
    options = options or CommitOptions()
    wire = serialize_transaction(transaction)
    mine = PendingCommit(transaction, wire, {} if affected is None else affected, options.adds_keys)
    is_new = transaction.read_version == 0 or isinstance(transaction.operation, Clone)
    way = _create if is_new else _commit
    name = type(transaction.operation).__name__
    about: dict[str, str | int] = {
        "pennon.table": store.uri,
        "pennon.read_version": transaction.read_version,
    }
    with measured("pennon.commit", (COMMITS, COMMIT_SECONDS), {"operation": name}, **about):
        try:
            manifest = way(store, mine, options)
        except (RetryableConflict, IncompatibleConflict):
            count(CONFLICTS, outcome="refused")
            raise
    if not is_new and manifest.version > transaction.read_version + 1:
        count(CONFLICTS, outcome="settled")
    COMMIT.info("%s: version %d committed (%s)", store.uri, manifest.version, name)
    return manifest


def _create(store: CommitStore, mine: PendingCommit, options: CommitOptions) -> Manifest:
    locations, is_written = _and_write(store, mine, lambda: list_locations(store))
    if locations:
        return _already_created(store, locations[0], mine.wire)
    check_job(store, mine, None, options)
    manifest = replace(
        create(mine.transaction, options.apply_context(store)), transaction=mine.wire
    )
    if not is_written:
        mine.put_file(store)
    naming = options.policy.naming
    if put_manifest(store, naming, manifest, options.clock) and (
        naming is Naming.V2 or verify_latest(store, naming, manifest, options.clock)
    ):
        keep_latest(store, naming, manifest)
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


def _commit(store: CommitStore, mine: PendingCommit, options: CommitOptions) -> Manifest:
    judged = mine.transaction.read_version
    shared: frozenset[FragmentId] = frozenset()
    written, written_ns = b"", 0
    looked_ns = options.planned_ns
    for attempt, started in enumerate(_attempts(options)):
        began_ns = options.clock.now_ns()
        found, is_written = _look(store, mine, judged, None if attempt else options.base)
        if isinstance(found, Manifest):
            return found
        location, head, newly_shared = found
        _log_settled(store, mine, judged, head)
        judged, shared = head.version, shared | newly_shared
        _check_strict(mine.transaction, head, options)
        now_ns = options.clock.now_ns()
        # The file is written beside the look, which may have paused since.
        written, written_ns = (mine.wire, began_ns) if is_written else (written, written_ns)
        if written and now_ns - written_ns >= _SAFE_AGE_NS:
            mine, written = mine.with_new_file(), b""
        rebased = mine.on(store, head, shared)
        if looked_ns is not None and now_ns - looked_ns >= _SAFE_AGE_NS:
            rebased.check_files(store, head)
            looked_ns = written_ns = now_ns
            written = rebased.wire
        manifest = _next_that_fits(store, head, rebased, options)
        if manifest.transaction_file is not None and written != rebased.wire:
            rebased.put_file(store)
            written, written_ns = rebased.wire, now_ns
        if options.clock.seconds() - started > RESENT_WITHIN_SECONDS:
            continue
        naming = location.naming
        if not put_manifest(store, naming, manifest, options.clock):
            count(CONFLICTS, outcome="lost_race")
            COMMIT.debug("%s: another writer made version %d first", store.uri, manifest.version)
            continue
        is_quick = store.limits is not None and options.clock.seconds() - started < _QUICK_SECONDS
        if (is_quick and naming is Naming.V2) or verify_latest(
            store, naming, manifest, options.clock
        ):
            keep_latest(store, naming, manifest)
            return manifest
    message = f"lost the race for the next version {max(options.policy.max_retries, 1)} times"
    raise RetryableConflict(message)


def _log_settled(store: CommitStore, mine: PendingCommit, judged: int, head: Manifest) -> None:
    """Log that the commit has no conflict with what others committed since ``judged``, if they did."""
    if head.version == judged:
        return
    COMMIT.info(
        "%s: %s planned on version %d has no conflict with versions %d to %d",
        store.uri,
        type(mine.transaction.operation).__name__,
        mine.transaction.read_version,
        judged + 1,
        head.version,
    )


_Found: TypeAlias = Manifest | tuple[ManifestLocation, Manifest, frozenset[FragmentId]]


def _look(
    store: CommitStore, mine: PendingCommit, judged: int, base: Manifest | None
) -> tuple[_Found, bool]:
    """Return what `_catch_up` does, and whether the transaction's file was written meanwhile."""
    look = partial(_catch_up, store, mine, judged, base)
    if base is None or base.writer_flags & NO_TRANSACTION_FILE:
        return look(), False
    return _and_write(store, mine, look)


def _and_write(store: CommitStore, mine: PendingCommit, look: Callable[[], T]) -> tuple[T, bool]:
    """Return what ``look`` finds, and whether a far store was given the transaction's file meanwhile.

    Its name may be taken, by a commit of the same uuid: it is left alone until it is known whose it is.
    """
    if store.limits is None:
        return look(), False
    return beside(
        look, lambda: mine.create_file(store), PoolSpec.requests(store.limits.concurrency)
    )


def _catch_up(
    store: CommitStore, mine: PendingCommit, judged: int, base: Manifest | None
) -> _Found:
    """Judge all versions after ``judged``, and those that came meanwhile.

    Returns the version that is our own commit, if any is; else the newest version, and the fragments
    of which others deleted rows, too.
    """
    location = latest_location(store)
    if location.is_mixed:
        location = copy_newest(store, location)
    head = read_manifest_at(store, location)
    if base is not None:
        check_same_table(store, base, location, head)
    found = judge_newer(store, mine, judged, location, head)
    if isinstance(found, Manifest) or head.version - judged <= _CLOSE:
        return found if isinstance(found, Manifest) else (location, head, found)
    shared = found
    for _ in range(_STEPS):
        newer = read_next(store, location)
        if newer is None:
            break
        found = judge_newer(store, mine, head.version, *newer)
        if isinstance(found, Manifest):
            return found
        (location, head), shared = newer, shared | found
    return location, head, shared


def check_job(
    store: CommitStore, mine: PendingCommit, head: Manifest | None, options: CommitOptions
) -> None:
    """Look for the files of a job that began long ago: clean-up may have taken them for orphans."""
    if options.planned_ns is None or options.clock.now_ns() - options.planned_ns < _SAFE_AGE_NS:
        return
    mine.check_files(store, head)


def _attempts(options: CommitOptions) -> Iterator[float]:
    """Yield the start time of each attempt, and pause between them.

    The pause is a random number of slots, of which there are twice as many each time, up to some
    seconds; a slot is a bit more than what the first attempt took, so writers that start together
    drift apart.
    Raises CommitError when the time is over, and what ``before_again`` raises; the first attempt is always made.
    """
    slot = 0.0
    begun = options.clock.seconds()
    for attempt in range(max(options.policy.max_retries, 1)):
        started = options.clock.seconds()
        if attempt:
            longest = max(int(_LONGEST_PAUSE / max(slot, 1e-6)), 1)
            pause = slot * options.clock.pick(min(_SLOTS << min(attempt, 16), longest))
            timeout_s = options.policy.timeout_s
            if timeout_s is not None and started + pause - begun > timeout_s:
                message = f"not committed within {timeout_s} s, in {attempt} attempts"
                raise CommitError(message)
            options.clock.sleep(pause)
            started = options.clock.seconds()
            if options.before_again is not None:
                options.before_again()
        yield started
        slot = slot or 1.1 * (options.clock.seconds() - started)


def _check_strict(transaction: Transaction, head: Manifest, options: CommitOptions) -> None:
    is_strict = isinstance(transaction.operation, Overwrite) and options.policy.max_retries == 0
    if is_strict and head.version != transaction.read_version:
        message = (
            f"Commit conflict for version {head.version}: it was committed since version "
            f"{transaction.read_version}, which this transaction was planned on"
        )
        raise RetryableConflict(message)


def _next_that_fits(
    store: CommitStore, head: Manifest, mine: PendingCommit, options: CommitOptions
) -> Manifest:
    """Return the next version; raises RetryableConflict if the transaction does not fit ``head``, but fitted before."""
    try:
        return next_manifest(store, head, mine, options)
    except ArgumentError as error:
        if head.version == mine.transaction.read_version:
            raise
        message = f"does not fit version {head.version} any more: {error.message}"
        raise RetryableConflict(message) from error


def next_manifest(
    store: CommitStore, head: Manifest, mine: PendingCommit, options: CommitOptions
) -> Manifest:
    """Return what the transaction makes of ``head``."""
    around = options.apply_context(store)
    operation = mine.transaction.operation
    if isinstance(operation, Restore):
        around = replace(around, past=read_manifest(store, operation.version))
    made = apply(head, mine.transaction, around)
    file_name = None if made.transaction_file is None else mine.file_name
    return replace(made, transaction=mine.wire, transaction_file=file_name)


def put_behind(
    store: CommitStore, transaction: Transaction, head: Manifest, options: CommitOptions
) -> Manifest:
    """Make a version behind ``head``, which takes the place of a manifest that cannot be read; return it.

    Nothing is judged, for nobody can read what was committed.  Raises RetryableConflict if another writer makes the
    version, CommitStateUnknown as `commit`.
    """
    mine = PendingCommit(transaction, serialize_transaction(transaction), {})
    naming = list_locations(store)[-1].naming
    made = replace(apply(head, transaction, options.apply_context(store)), transaction=mine.wire)
    mine.put_file(store)
    if not put_manifest(store, naming, made, options.clock):
        message = f"another writer made version {made.version}; examine the table again"
        raise RetryableConflict(message)
    keep_latest(store, naming, made)
    return made


# --- detached versions ----------------------------------------------------------------------------

_TRIES = 5


def commit_detached(
    store: CommitStore, transaction: Transaction, options: CommitOptions | None = None
) -> Manifest:
    """Commit a detached version, which follows no other than its read version; return the manifest.

    Its manifest is ``_versions/d{version}.manifest``, with a random number whose highest bit is set.  It is never
    the newest, it is found by its number alone, and another can be made on top of it.  Nothing is judged.

    Raises UnsupportedError for a table of naming scheme V1, which has no names for such versions.
    """
    check_uuid(transaction.uuid)
    options = options or CommitOptions()
    location = find_location(store, transaction.read_version)
    if location.naming is not Naming.V2:
        message = "a table of naming scheme V1 has no detached versions; migrate it to V2 first"
        raise UnsupportedError(message)
    base = read_manifest_at(store, location)
    mine = PendingCommit(transaction, serialize_transaction(transaction), {})
    check_job(store, mine, base, options)
    manifest = next_manifest(store, base, mine, options)
    if manifest.transaction_file is not None:
        mine.put_file(store)
    for _ in range(_TRIES):
        version = DatasetVersion(MAX_VERSION + 1 + secrets.randbits(63))
        path = detached_path(version)
        made = replace(manifest, version=version)
        place = ManifestLocation(version, path, Naming.V2, None)
        if put_manifest_at(store, place, made, options.clock):
            return made
    message = f"{_TRIES} random numbers were taken"
    raise CommitError(message)
