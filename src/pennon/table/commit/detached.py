"""Detached versions: commits that stand in no line of versions.

Their manifests are ``_versions/d{version}.manifest``, with a random number whose highest bit is set.
They are never the newest, nobody finds them without their number, and another can be made on top of
one.  Nothing is judged: a detached version follows just the one that it was planned on.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

from pennon.core.units import DatasetVersion
from pennon.errors import CommitError, UnsupportedError
from pennon.table.commit.conflict_check import PendingCommit
from pennon.table.commit.loop import check_job, next_manifest
from pennon.table.commit.options import CommitOptions
from pennon.table.commit.put_manifest import CommitStore, put_manifest_at
from pennon.table.manifest import Manifest
from pennon.table.naming import MAX_VERSION, Naming, detached_path
from pennon.table.transaction import Transaction, check_uuid
from pennon.table.transaction_wire import serialize_transaction
from pennon.table.versions import ManifestLocation, find_location, read_manifest_at

_TRIES = 5


def commit_detached(
    store: CommitStore, transaction: Transaction, options: CommitOptions | None = None
) -> Manifest:
    """Commit a transaction on top of its read version, in no line; return the manifest.

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
