"""The fragment reuse index of a version: where rows are now that compactions moved without the indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from pennon.core.units import FragmentId
from pennon.errors import FormatError, NotFoundError, UnsupportedError
from pennon.index.files import made_now
from pennon.index.kinds import kind_of, rows_named, stores_row_ids
from pennon.index.moved_rows import NONE_MOVED, MovedRows
from pennon.index.row_set import RowSet
from pennon.scan.read.fragment_reader import live_addresses
from pennon.scan.snapshot import Key, Snapshot
from pennon.table.fragment import ExternalFile, Fragment
from pennon.table.fragment_reuse import ReuseVersion
from pennon.table.fragment_reuse_wire import parse_reuse, parse_reuse_versions
from pennon.table.indices import FRAGMENT_REUSE, Index
from pennon.table.indices_wire import parse_indices
from pennon.table.row_ids.decode_wire import read_sequence

UNREADABLE: Final = (FormatError, NotFoundError, UnsupportedError)
MOVED_ROWS: Final[Key[MovedRows]] = Key("moved rows")
COVERED: Final[Key[frozenset[FragmentId]]] = Key("covered fragments")


def moved_rows(snapshot: Snapshot) -> MovedRows:
    """Return where rows were moved by compactions that left the indices as they were.

    Raises FormatError, UnsupportedError or NotFoundError where that cannot be told: then no index says which
    rows it means.
    """
    return snapshot.remember(MOVED_ROWS, lambda: _find(snapshot))


def covered_now(snapshot: Snapshot, index: Index) -> frozenset[FragmentId]:
    """Return the fragments that an index covers, whose rows it may name by where they were.

    Left out are those whose rows it ought to name, and does not: another writer lost them.
    """
    moved = moved_rows(snapshot)
    covered = moved.covered(index.fragment_ids or frozenset())
    if not moved.maps:
        return covered
    return snapshot.remember(
        COVERED, lambda: covered - _lost(snapshot, index, covered), index.folder, index.fragment_ids
    )


def _lost(
    snapshot: Snapshot, index: Index, covered: frozenset[FragmentId]
) -> frozenset[FragmentId]:
    """Return the fragments whose live rows an index misses, among those that it may have lost.

    An index that leaves out rows without a value has lost a fragment if it names none of its rows.
    """
    if snapshot.manifest.has_stable_row_ids and stores_row_ids(index):
        return frozenset()
    doubtful = moved_rows(snapshot).doubtful(covered, index.dataset_version)
    if not doubtful:
        return doubtful
    try:
        named = named_now(snapshot, index)
    except UNREADABLE:
        return doubtful
    kind = kind_of(index)
    names_all = kind is not None and kind.names_all
    fragments = [each for each in snapshot.manifest.fragments if each.id in doubtful]
    counts = ((each.id, *_count_named(snapshot, named, [each])) for each in fragments)
    return frozenset(
        number
        for number, count, live in counts
        if (count < live if names_all else live and not count)
    )


def named_now(snapshot: Snapshot, index: Index) -> RowSet:
    """Return the present addresses of all rows that an index names, by addresses; rows that are gone may be among them.

    Raises FormatError, NotFoundError or UnsupportedError if they cannot be told.
    """
    named = snapshot.session.index_parts(
        ("rows named", index.folder),
        lambda: rows_named(index, snapshot.index_files(index, made_now)),
        lambda found: found.starts.nbytes + found.lasts.nbytes,
    )
    return moved_rows(snapshot).rows(named)


def has_all(snapshot: Snapshot, named: RowSet, fragments: Sequence[Fragment]) -> bool:
    """Return whether all live rows of fragments are among those that are named."""
    count, live = _count_named(snapshot, named, fragments)
    return count == live


def _count_named(
    snapshot: Snapshot, named: RowSet, fragments: Sequence[Fragment]
) -> tuple[int, int]:
    """Return how many live rows of fragments are among those that are named, and how many there are."""
    live = live_addresses(snapshot, fragments)
    return named.count_common(live), int((live.lasts - live.starts + np.uint64(1)).sum())


def indices_now(snapshot: Snapshot) -> tuple[Index, ...]:
    """Return all indices with the fragments that they cover now; with those that they name if it is not known."""
    indices = parse_indices(snapshot.manifest.indices)
    try:
        return tuple(
            index
            if index.fragment_ids is None
            else replace(index, fragment_ids=covered_now(snapshot, index))
            for index in indices
        )
    except UNREADABLE:
        return indices


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
