"""Adding base paths to a table."""

from __future__ import annotations

from collections.abc import Mapping

from pennon.ops.counts import counted_by
from pennon.scan.snapshot import Snapshot
from pennon.table.commit import CommitOptions, commit
from pennon.table.manifest import BasePath, Manifest
from pennon.table.operations import UpdateBases
from pennon.table.transaction import Transaction


def add_bases(
    snapshot: Snapshot, bases: tuple[BasePath, ...], properties: Mapping[str, str]
) -> Manifest:
    """Commit further places for files, and return the version made.

    Raises IncompatibleConflict if another writer took an id, a name or a path of them meanwhile.
    """
    transaction = Transaction(
        snapshot.manifest.version, UpdateBases(bases), properties=dict(properties)
    )
    options = CommitOptions(complete=counted_by(snapshot.store), base=snapshot.manifest)
    return commit(snapshot.store, transaction, options)
