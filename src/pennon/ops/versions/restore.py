"""Restoring: an old version becomes the newest again."""

from __future__ import annotations

from pennon.ops.row_counts import counted_by
from pennon.scan.snapshot import Snapshot
from pennon.table.commit.loop import CommitOptions, commit
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
    operation = Restore(snapshot.manifest.version)
    transaction = Transaction(latest_version(store), operation)
    options = CommitOptions(complete=counted_by(store), base=snapshot.manifest)
    return commit(store, transaction, options)
