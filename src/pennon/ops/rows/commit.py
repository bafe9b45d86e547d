"""How changed rows become a version of the table."""

from __future__ import annotations

from collections.abc import Mapping

from pennon.core.units import FragmentId
from pennon.ops.row_counts import counted_by
from pennon.scan.snapshot import Snapshot
from pennon.table.commit.loop import CommitOptions, commit
from pennon.table.manifest import Manifest
from pennon.table.operations import Delete, Update
from pennon.table.roaring import Offsets
from pennon.table.transaction import Transaction


def land(
    snapshot: Snapshot,
    operation: Delete | Update,
    affected: Mapping[FragmentId, Offsets] | None = None,
    *,
    planned_ns: int,
    adds_keys: bool = False,
) -> Manifest:
    """Commit a change that was planned on a snapshot, and return the version made.

    ``affected``: the rows that it takes away, by their offsets.  With them, another writer's change
    of other rows of the same fragments does not stand in the way.  ``planned_ns``: when it was planned,
    in nanoseconds since 1970.  ``adds_keys``: it adds rows because nobody had their keys.
    """
    store = snapshot.store
    transaction = Transaction(snapshot.manifest.version, operation)
    options = CommitOptions(
        complete=counted_by(store),
        adds_keys=adds_keys,
        base=snapshot.manifest,
        planned_ns=planned_ns,
    )
    return commit(store, transaction, options, affected)
