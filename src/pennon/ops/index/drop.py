"""Dropping an index.  Pennon makes none."""

from __future__ import annotations

from pennon.errors import NotFoundError
from pennon.ops.row_counts import counted_by
from pennon.scan.snapshot import Snapshot
from pennon.table.commit.loop import CommitOptions, commit
from pennon.table.indices_wire import parse_indices
from pennon.table.manifest import Manifest
from pennon.table.operations import CreateIndex
from pennon.table.transaction import Transaction


def drop_index(snapshot: Snapshot, name: str) -> Manifest:
    """Take all segments of an index out of the table; return the version made.

    Raises NotFoundError if there is none of that name.
    """
    indices = parse_indices(snapshot.manifest.indices)
    removed = tuple(index for index in indices if index.name == name)
    if not removed:
        known = ", ".join(sorted({index.name for index in indices})) or "none"
        message = f"there is no index {name!r}; the indices are: {known}"
        raise NotFoundError(message)
    options = CommitOptions(complete=counted_by(snapshot.store), base=snapshot.manifest)
    transaction = Transaction(snapshot.manifest.version, CreateIndex((), removed))
    return commit(snapshot.store, transaction, options)
