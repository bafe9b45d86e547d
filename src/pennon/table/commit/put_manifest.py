"""The commit point: create a manifest under its name, and find out whether that happened.

A failed write is not a failed commit: the answer may have been lost, or a store may report the
writer's own first try as an obstacle to its second.  So the name is read back.

==================  ==========================================================================
what lies there     then
==================  ==========================================================================
our transaction     committed
another's           the race is lost
nothing             the same bytes are sent again, which is safe: a name is taken only once
cannot be told      `CommitStateUnknown`
==================  ==========================================================================

Ours is what holds our transaction byte for byte.  Its uuid alone would not do, because a caller
may use one twice.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from typing import Protocol

from pennon.core.units import DatasetVersion
from pennon.errors import (
    AlreadyExistsError,
    CommitStateUnknown,
    ConflictError,
    FormatError,
    LanceError,
    NotFoundError,
    RetryableConflict,
    StoreError,
    UnsupportedError,
)
from pennon.io.store import CreatesIfAbsent, Writes
from pennon.schema.version import V0_1
from pennon.table.commit.clock import Clock
from pennon.table.external.store import grants_versions
from pennon.table.manifest import Manifest
from pennon.table.manifest_wire import serialize_manifest_file
from pennon.table.naming import LATEST, VERSIONS, Naming, is_detached, parse_manifest_name
from pennon.table.versions import ManifestLocation, Reads, latest_location, read_manifest_at

RESENT_WITHIN_SECONDS = 600.0
"""Whoever slept longer does not send a manifest again: clean-up may have taken what it names for orphans."""
_RESENDS = 5
_READ_BACKS = 3


class CommitStore(Reads, Writes, CreatesIfAbsent, Protocol):
    """The store operations that a commit uses; deletion is not among them."""


class _Holder(Enum):
    """The owner of the manifest that has the name that we wanted."""

    OURS = 1
    ANOTHER = 2
    NOBODY = 3
    UNKNOWN = 4


def put_manifest(store: CommitStore, naming: Naming, manifest: Manifest, clock: Clock) -> bool:
    """Create the manifest of a version; return False if another writer has made that version.

    Raises CommitStateUnknown if nobody can tell.
    """
    path = naming.manifest_path(manifest.version)
    location = ManifestLocation(manifest.version, path, naming, None)
    return put_manifest_at(store, location, manifest, clock)


def put_manifest_at(
    store: CommitStore, location: ManifestLocation, manifest: Manifest, clock: Clock
) -> bool:
    """Create a manifest at a place; the same as `put_manifest` otherwise."""
    path = location.path
    body = serialize_manifest_file(manifest)
    problem: OSError | None = None
    began = clock.seconds()
    for resend in range(_RESENDS):
        if resend:
            clock.sleep(0.1 * 2**resend)
            if clock.seconds() - began > RESENT_WITHIN_SECONDS:
                break
        try:
            store.put_if_absent(path, body)
        except (AlreadyExistsError, StoreError) as error:
            problem = error
        except (
            ConflictError
        ) as error:  # another has the lock, so nothing was written by this attempt
            if not resend:
                raise
            problem = error
        else:
            return True
        holder = _holder(store, location, manifest, clock)
        if holder in {_Holder.OURS, _Holder.ANOTHER}:
            return holder is _Holder.OURS
        if holder is _Holder.UNKNOWN or _is_passed(store, manifest):
            break
    message = f"whether version {manifest.version} was committed is not known: {problem}"
    raise CommitStateUnknown(message) from problem


def verify_latest(store: CommitStore, naming: Naming, manifest: Manifest, clock: Clock) -> bool:
    """Look again after a version has landed; return False if it does not count after all.

    Two things can have happened since the newest version was listed.  The table may have gone over
    to naming scheme V2, where another may have made the same version (`pennon.table.commit.migrate_naming`).  Or
    this writer slept so long that others went far beyond, and the version under whose name it has
    landed was cleaned up: that is a `RetryableConflict`, for nobody will ever see the rows.  (A manifest
    store grants no version twice, so there that cannot be.)

    A store that does not answer any more changes nothing for a version under a new name: it has landed.  Under
    an old one it is not known then.
    """
    try:
        is_mixed = _patiently(lambda: _is_mixed_above(store, naming, manifest), StoreError, clock)
    except (StoreError, FormatError, NotFoundError) as error:
        if naming is Naming.V2:
            return True
        raise _unknown(manifest, error) from error
    if is_mixed and naming is Naming.V1:
        try:
            return _patiently(
                lambda: put_manifest(store, Naming.V2, manifest, clock), ConflictError, clock
            )
        except ConflictError as error:
            raise _unknown(manifest, error) from error
    return True


def _is_mixed_above(store: CommitStore, naming: Naming, manifest: Manifest) -> bool:
    """Return whether names of both schemes lie beside a version that has landed.

    Raises RetryableConflict if the version was made long after others had gone on, CommitStateUnknown if a
    clean-up took what would tell.
    """
    newest = latest_location(store)
    goes_on = newest.version > manifest.version and not grants_versions(store)
    is_buried = _is_buried(store, naming, manifest.version) if goes_on else False
    if is_buried is None:
        message = (
            f"whether version {manifest.version} counts is not known: it, or the version after it, was cleaned up "
            f"by now, the newest is {newest.version}"
        )
        raise CommitStateUnknown(message)
    if is_buried:
        message = (
            f"version {manifest.version} was made long after others had gone on to {newest.version}, "
            "which does not descend from it; try again on the newest version"
        )
        raise RetryableConflict(message)
    return newest.is_mixed


def _patiently(act: Callable[[], bool], passing: type[LanceError], clock: Clock) -> bool:
    """Do something again while it fails in a way that may pass: a store does not answer, a lock is held."""
    for again in range(1, _RESENDS):
        try:
            return act()
        except passing:
            clock.sleep(0.1 * 2**again)
    return act()


def _unknown(manifest: Manifest, error: LanceError) -> CommitStateUnknown:
    message = f"whether version {manifest.version} counts is not known: {error.message}"
    return CommitStateUnknown(message)


def _is_buried(store: CommitStore, naming: Naming, version: int) -> bool | None:
    """Return whether versions after one were made before it; None if that is not known.

    It is not known if a clean-up took the version and the next one: it takes the oldest first.  If it took the next
    one alone, a later one that is older than ours tells.  Without such a one a tag may have kept ours, or ours
    was put below others that are gone by now.  A migration copies the newest first, so a copy's time says nothing.
    Our own name is gone once it was copied, and the next version's old name goes after ours.  Where our version has
    a name of scheme V2 beside ours, `verify_latest` compares the two.
    """
    times = {}
    for item in store.list(VERSIONS):
        parsed = parse_manifest_name(item.path) if item.path.count("/") == 1 else None
        if parsed is not None:
            times[parsed] = item.modified
    mine = times.get((naming, DatasetVersion(version)))
    if naming is Naming.V1 and (mine is None or (Naming.V2, DatasetVersion(version)) in times):
        return False
    above = [(n, name) for name, n in times if n > version and name in {naming, Naming.V2}]
    next_names = {name for n, name in above if n == version + 1}
    if mine is None:
        return False if next_names else None
    if next_names:
        name = naming if naming in next_names else Naming.V2
        return times[name, DatasetVersion(version + 1)] < mine
    return True if any(times[name, n] < mine for n, name in above) else None


def keep_latest(store: CommitStore, naming: Naming, manifest: Manifest) -> None:
    """Copy the manifest of a version that has landed, for readers of its time: version 0.1, naming V1.

    Nobody relies on the copy, so it may fail, or lose a race.
    """
    data_format = manifest.data_format
    if naming is Naming.V1 and data_format is not None and data_format.version == str(V0_1):
        with suppress(StoreError):
            store.put(LATEST, serialize_manifest_file(manifest))


def _holder(
    store: CommitStore, location: ManifestLocation, manifest: Manifest, clock: Clock
) -> _Holder:
    """Read back what lies under the name of our manifest."""
    for again in range(_READ_BACKS):
        if again:
            clock.sleep(0.1 * 2**again)
        try:
            found = _read_granted(store, location)
        except UnsupportedError:
            return _Holder.ANOTHER
        except (FormatError, StoreError):
            continue
        if found is None:
            return _Holder.NOBODY
        same = found.transaction == manifest.transaction
        return _Holder.OURS if same else _Holder.ANOTHER
    return _Holder.UNKNOWN


def _read_granted(store: CommitStore, location: ManifestLocation) -> Manifest | None:
    """Read the manifest of the version that we want to make; None if it does not exist.

    A manifest store grants a version once, whatever its name: while a table goes over to scheme V2, another
    may have got it under the old name.
    """
    with suppress(NotFoundError):
        return read_manifest_at(store, location)
    if is_detached(location.version) or not grants_versions(store):
        return None
    path = Naming.V1.manifest_path(location.version)
    with suppress(NotFoundError):
        return read_manifest_at(store, replace(location, path=path, naming=Naming.V1))
    return None


def _is_passed(store: CommitStore, manifest: Manifest) -> bool:
    """Tell whether the table went on beyond the version that we wanted to make."""
    try:
        return latest_location(store).version > manifest.version
    except NotFoundError:
        return manifest.version > 1
    except (FormatError, StoreError):
        return True
