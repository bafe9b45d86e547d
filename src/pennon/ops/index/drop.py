"""Dropping an index."""

from __future__ import annotations

from pennon.errors import IndexNotFoundError
from pennon.ops.commit import commit_on
from pennon.scan.snapshot import Snapshot
from pennon.table.indices_wire import parse_indices
from pennon.table.manifest import Manifest
from pennon.table.operations import CreateIndex


def drop_index(snapshot: Snapshot, name: str) -> Manifest:
    """Take all segments of an index out of the table; return the version made.

    Raises IndexNotFoundError if there is none of that name.
    """
    indices = parse_indices(snapshot.manifest.indices)
    removed = tuple(index for index in indices if index.name == name)
    if not removed:
        known = ", ".join(sorted({index.name for index in indices})) or "none"
        message = f"Lance index not found: name={name}; the indices are: {known}"
        raise IndexNotFoundError(message)
    return commit_on(snapshot, CreateIndex((), removed))
