"""The ids of new fragments and of their rows; none is ever given out twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from pennon.core.units import FragmentId
from pennon.errors import ArgumentError
from pennon.table.apply.context import ApplyContext
from pennon.table.fragment import MAX_FRAGMENT_ID, Fragment
from pennon.table.manifest import Manifest
from pennon.table.row_ids import RowIds
from pennon.table.row_ids.decode_wire import count_row_ids, decode_row_ids
from pennon.table.row_ids.encode_wire import encode_one_version, encode_row_id_range

MAX_ROW_ID: Final = (1 << 64) - 1


def with_fresh_ids(fragments: Iterable[Fragment], last: int) -> tuple[Fragment, ...]:
    """Give fragments the ids after ``last``."""
    new = tuple(
        replace(fragment, id=FragmentId(last + 1 + number))
        for number, fragment in enumerate(fragments)
    )
    check_last_id(new[-1].id if new else last)
    return new


def check_last_id(last: int) -> None:
    """Raise ArgumentError if a fragment id does not fit a row address."""
    if last > MAX_FRAGMENT_ID:
        message = f"a table has no more than {MAX_FRAGMENT_ID + 1} fragment ids"
        raise ArgumentError(message)


def _check_next_row_id(next_row_id: int) -> None:
    """Raise ArgumentError if the ids of rows, and the next free one, do not fit 64 bits."""
    if next_row_id > MAX_ROW_ID:
        message = (
            f"a table gives no more than {MAX_ROW_ID} row ids, and its next one would be "
            f"{next_row_id}; if it has not had so many rows, its manifest is damaged"
        )
        raise ArgumentError(message)


def without_row_ids(fragments: Iterable[Fragment]) -> tuple[Fragment, ...]:
    """Take away what rows are called elsewhere: it means nothing here."""
    return tuple(
        replace(f, row_ids=None, last_updated_at_versions=None, created_at_versions=None)
        for f in fragments
    )


def with_new_row_ids(
    fragments: tuple[Fragment, ...], head: Manifest, *, stable: bool
) -> tuple[tuple[Fragment, ...], int]:
    """Give stable ids to the rows of fragments that have none; also return the next free id.

    Those rows are as old as the version that is being made.
    """
    next_row_id = head.next_row_id
    if not stable:
        return fragments, next_row_id
    done = []
    for fragment in fragments:
        rows = fragment.physical_rows or 0
        if fragment.row_ids is None:
            _check_next_row_id(next_row_id + rows)
            versions = encode_one_version(head.version + 1, rows) if rows else None
            fragment = replace(  # noqa: PLW2901 - the same fragment, with its row ids
                fragment,
                row_ids=encode_row_id_range(next_row_id, rows),
                last_updated_at_versions=versions,
                created_at_versions=versions,
            )
            next_row_id += rows
        done.append(fragment)
    return tuple(done), next_row_id


def filled_row_ids(
    fragment: Fragment, next_row_id: int, around: ApplyContext
) -> tuple[RowIds, int]:
    """Return the ids of a new fragment's rows, and the next free id.

    Its first rows may have brought theirs along, as rows do that were updated; the others are new.
    """
    rows = fragment.physical_rows or 0
    _check_next_row_id(next_row_id + rows)
    given = np.empty(0, np.uint64)
    if fragment.row_ids is not None:
        data = around.read_sequence(fragment.row_ids)
        given = decode_row_ids(data, min(count_row_ids(data), rows))
    fresh = np.arange(rows - len(given), dtype=np.uint64) + np.uint64(next_row_id)
    return np.concatenate([given, fresh]), next_row_id + len(fresh)
