"""Rows that an update wrote into new fragments: their ids, their versions and their indices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from pennon.core.units import FragmentId
from pennon.table.apply.context import ApplyContext
from pennon.table.apply.ids import filled_row_ids
from pennon.table.apply.row_versions import created_versions
from pennon.table.fragment import Fragment
from pennon.table.indices import Index
from pennon.table.indices_wire import covering
from pennon.table.manifest import Manifest
from pennon.table.operations import Update
from pennon.table.row_ids import RowIds
from pennon.table.row_ids.decode_wire import count_row_ids, decode_row_ids
from pennon.table.row_ids.encode_wire import encode_one_version, encode_row_ids, encode_row_versions


def with_moved_row_ids(
    new: tuple[Fragment, ...], head: Manifest, operation: Update, around: ApplyContext
) -> tuple[tuple[Fragment, ...], int]:
    """Name the rows of new fragments, and say how old they are; also return the next free row id.

    A row that moved keeps its id and the version that it was created in.  All are last updated in
    the version that is being made.
    """
    if not head.has_stable_row_ids:
        return tuple(replace(f, row_ids=None) for f in new), head.next_row_id
    next_row_id = head.next_row_id
    ids, created = _creations(head, operation, around)
    done = []
    for fragment in new:
        mine, next_row_id = filled_row_ids(fragment, next_row_id, around)
        versions = _looked_up(mine, ids, created, head.version + 1)
        rows = len(mine)
        done.append(
            replace(
                fragment,
                row_ids=encode_row_ids(mine),
                created_at_versions=encode_row_versions(versions) if rows else None,
                last_updated_at_versions=encode_one_version(head.version + 1, rows)
                if rows
                else None,
            )
        )
    return tuple(done), next_row_id


def _creations(head: Manifest, operation: Update, around: ApplyContext) -> tuple[RowIds, RowIds]:
    """Return the ids, ascending, of all rows that may have moved, and when each was created."""
    touched = {*operation.removed_ids, *(fragment.id for fragment in operation.updated)}
    ids, created = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for fragment in head.fragments if operation.new else ():
        rows = fragment.physical_rows or 0
        if fragment.id in touched and fragment.row_ids is not None:
            ids.append(decode_row_ids(around.read_sequence(fragment.row_ids), rows))
            created.append(created_versions(fragment, around))
    flat = np.concatenate(ids)
    order = np.argsort(flat, kind="stable")
    return flat[order], np.concatenate(created)[order]


def _looked_up(wanted: RowIds, ids: RowIds, values: RowIds, otherwise: int) -> RowIds:
    """Return the value of each wanted id; ``ids`` ascend."""
    found = np.full(len(wanted), otherwise, np.uint64)
    if len(ids):
        places = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
        hits = ids[places] == wanted
        found[hits] = values[places[hits]]
    return found


def extend_indices(
    indices: Iterable[Index], new: tuple[Fragment, ...], operation: Update, *, stable: bool
) -> tuple[Index, ...]:
    """Let indices cover the new fragments all of whose rows they know already by their ids.

    Only an index that names rows by these ids, that covers all the fragments that rows moved out of,
    and none of the fields whose values changed, knows them.
    """
    moved = _only_moved(new, operation) if stable else frozenset()
    if not moved:
        return tuple(indices)
    changed = set(operation.fields_preserved)
    origins = {*operation.removed_ids, *(fragment.id for fragment in operation.updated)}
    return tuple(
        covering(index, index.fragment_ids | moved)
        if index.goes_by_row_ids
        and index.fragment_ids is not None
        and index.field_ids
        and not changed.intersection(index.field_ids)
        and origins <= index.fragment_ids
        else index
        for index in indices
    )


def _only_moved(new: tuple[Fragment, ...], operation: Update) -> frozenset[FragmentId]:
    """Return the ids of new fragments without a row that is new."""
    return frozenset(
        fragment.id
        for fragment, given in zip(new, operation.new, strict=True)
        if isinstance(given.row_ids, bytes)
        and count_row_ids(given.row_ids) == (given.physical_rows or 0)
    )
