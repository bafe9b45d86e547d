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
from enum import Enum
from typing import Protocol

from pennon.errors import (
    AlreadyExistsError,
    CommitStateUnknown,
    FormatError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from pennon.io.store import CreatesIfAbsent, Writes
from pennon.schema.version import V0_1
from pennon.table.manifest import Manifest
from pennon.table.naming import LATEST, Naming
from pennon.table.versions import ManifestLocation, Reads, latest_location, read_manifest_at
from pennon.table.wire import serialize_manifest_file

_RESENDS = 5
_READ_BACKS = 3


class CommitStore(Reads, Writes, CreatesIfAbsent, Protocol):
    """What a commit asks of a store; it cannot delete."""


class _Holder(Enum):
    """Whose manifest lies under the name that we wanted."""

    OURS = 1
    ANOTHER = 2
    NOBODY = 3
    UNKNOWN = 4


def land(
    store: CommitStore, naming: Naming, manifest: Manifest, sleep: Callable[[float], None]
) -> bool:
    """Create the manifest of a version; return False if another writer has made that version.

    Raises CommitStateUnknown if nobody can tell.
    """
    path = naming.manifest_path(manifest.version)
    location = ManifestLocation(manifest.version, path, naming, None)
    body = serialize_manifest_file(manifest)
    problem: OSError | None = None
    for resend in range(_RESENDS):
        if resend:
            sleep(0.1 * 2**resend)
        try:
            store.put_if_absent(path, body)
        except (AlreadyExistsError, StoreError) as error:
            problem = error
        else:
            return True
        holder = _holder(store, location, manifest, sleep)
        if holder in {_Holder.OURS, _Holder.ANOTHER}:
            return holder is _Holder.OURS
        if holder is _Holder.UNKNOWN or _is_passed(store, manifest):
            break
    message = f"whether version {manifest.version} was committed is not known: {problem}"
    raise CommitStateUnknown(message) from problem


def keep_latest(store: CommitStore, naming: Naming, manifest: Manifest) -> None:
    """Copy the manifest of a version that has landed, for readers of its time: version 0.1, naming V1.

    Nobody relies on the copy, so it may fail, or lose a race.
    """
    data_format = manifest.data_format
    if naming is Naming.V1 and data_format is not None and data_format.version == str(V0_1):
        with suppress(StoreError):
            store.put(LATEST, serialize_manifest_file(manifest))


def _holder(
    store: CommitStore,
    location: ManifestLocation,
    manifest: Manifest,
    sleep: Callable[[float], None],
) -> _Holder:
    """Read back what lies under the name of our manifest."""
    for again in range(_READ_BACKS):
        if again:
            sleep(0.1 * 2**again)
        try:
            found = read_manifest_at(store, location)
        except NotFoundError:
            return _Holder.NOBODY
        except UnsupportedError:
            return _Holder.ANOTHER
        except (FormatError, StoreError):
            continue
        same = found.transaction == manifest.transaction
        return _Holder.OURS if same else _Holder.ANOTHER
    return _Holder.UNKNOWN


def _is_passed(store: CommitStore, manifest: Manifest) -> bool:
    """Tell whether the table went on beyond the version that we wanted to make."""
    try:
        return latest_location(store).version > manifest.version
    except NotFoundError:
        return manifest.version > 1
    except (FormatError, StoreError):
        return True
