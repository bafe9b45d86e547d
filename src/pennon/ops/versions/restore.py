"""Restoring: an old version becomes the newest again."""

from __future__ import annotations

from pennon.ops.commit import commit_transaction
from pennon.scan.snapshot import Snapshot
from pennon.table.manifest import Manifest
from pennon.table.operations import Restore
from pennon.table.transaction import Transaction
from pennon.table.versions import latest_version


def restore(snapshot: Snapshot) -> Manifest:
    """Commit that the snapshot's version is the newest again, and return the version made.

    What was committed since is no part of it, also what comes in while this runs: a restore conflicts
    with nothing.  No file is written but the manifest.
    """
    store = snapshot.store
    transaction = Transaction(latest_version(store), Restore(snapshot.manifest.version))
    return commit_transaction(store, transaction, base=snapshot.manifest)
