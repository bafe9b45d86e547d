"""What the fragment reuse index of a version says: where the rows are now that its indices name."""

from __future__ import annotations

from dataclasses import replace

from pennon.core.units import FragmentId
from pennon.errors import FormatError, NotFoundError, UnsupportedError
from pennon.index.moved_rows import NONE_MOVED, MovedRows
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import ExternalFile
from pennon.table.fragment_reuse import ReuseVersion
from pennon.table.fragment_reuse_wire import parse_reuse, parse_reuse_versions
from pennon.table.indices import FRAGMENT_REUSE, Index
from pennon.table.indices_wire import parse_indices
from pennon.table.row_ids.decode_wire import read_sequence


def moved_rows(snapshot: Snapshot) -> MovedRows:
    """Return where rows were moved by compactions that left the indices as they were.

    Raises FormatError, UnsupportedError or NotFoundError where that cannot be told: then no index says which
    rows it means.
    """
    return snapshot.remember("moved rows", lambda: _find(snapshot))


def covered_now(snapshot: Snapshot, index: Index) -> frozenset[FragmentId]:
    """Return the fragments that an index covers, whose rows it may name by where they were."""
    return moved_rows(snapshot).covered(index.fragment_ids or frozenset())


def indices_now(snapshot: Snapshot) -> tuple[Index, ...]:
    """Return all indices, each with the fragments that it covers now; with those that it names if nobody knows."""
    indices = parse_indices(snapshot.manifest.indices)
    try:
        moved = moved_rows(snapshot)
    except (FormatError, NotFoundError, UnsupportedError):
        return indices
    return tuple(
        index
        if index.fragment_ids is None
        else replace(index, fragment_ids=moved.covered(index.fragment_ids))
        for index in indices
    )


def _find(snapshot: Snapshot) -> MovedRows:
    for index in parse_indices(snapshot.manifest.indices):
        if index.name == FRAGMENT_REUSE:
            return snapshot.session.index_parts(
                ("moved rows", index.folder),
                lambda: MovedRows.of(read_reuse(snapshot, index)),  # noqa: B023 - called at once
                lambda moved: moved.size_bytes,
            )
    return NONE_MOVED


def read_reuse(snapshot: Snapshot, index: Index) -> tuple[ReuseVersion, ...]:
    """Return the versions that a fragment reuse index has; raises as `moved_rows` does."""
    found = parse_reuse(b"" if index.details is None else index.details[1])
    if not isinstance(found, ExternalFile):
        return found
    file = replace(found, path=f"{index.folder}/{found.path}")
    return parse_reuse_versions(read_sequence(snapshot.store, file))
