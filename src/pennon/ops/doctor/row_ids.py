"""Checks that stable row ids are unique among the live rows of a table, in windows of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pennon.core.units import MIB
from pennon.errors import LanceError
from pennon.ops.doctor.findings import Finding, Severity
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import Fragment
from pennon.table.row_ids import RowIds

_WINDOW: Final = 4 * MIB
"""The number of row ids, of fragments whose ids overlap, that are compared at once."""
_MOST: Final = 20
_ADVICE: Final = "`pennon doctor TABLE --repair` gives the later rows fresh ids"


@dataclass(frozen=True, slots=True)
class FragmentIds:
    """A fragment by its place in the manifest, and the bounds of its stable row ids."""

    number: int
    low: int
    high: int


def check_row_ids(
    snapshot: Snapshot, found: Sequence[FragmentIds], repeated: set[int]
) -> Iterator[Finding]:
    """Yield a finding for each fragment with live rows that have the id of another live row.

    The places of such fragments come into ``repeated``.  Only fragments whose bounds overlap are read.
    """
    for group in _overlapping(found):
        low, high = min(each.low for each in group), max(each.high for each in group)
        step = max(_WINDOW, (high - low) // 4096 + 1)
        for start in range(low, high + 1, step):
            yield from _check_window(snapshot, group, start, min(start + step, high + 1), repeated)


def _overlapping(found: Sequence[FragmentIds]) -> Iterator[list[FragmentIds]]:
    """Yield groups of fragments whose ids may be the same; one alone may repeat its own."""
    group: list[FragmentIds] = []
    most = -1
    for each in sorted(found, key=lambda ids: (ids.low, ids.high)):
        if each.low > each.high:
            continue
        if group and each.low > most:
            yield group
            group = []
        group.append(each)
        most = max(most, each.high) if len(group) > 1 else each.high
    if group:
        yield group


def _check_window(
    snapshot: Snapshot,
    group: Sequence[FragmentIds],
    start: int,
    end: int,
    repeated: set[int],
) -> Iterator[Finding]:
    """Compare the ids in ``[start, end)`` of fragments in the order of the manifest."""
    seen = np.empty(0, np.uint64)
    for each in sorted(group, key=lambda ids: ids.number):
        if each.high < start or each.low >= end:
            continue
        fragment = snapshot.manifest.fragments[each.number]
        try:
            mine = _live_ids(snapshot, fragment, start, end)
        except LanceError:
            continue  # the fragment's own checks say so
        distinct = np.unique(mine)
        both = np.intersect1d(distinct, seen, assume_unique=True)
        again = len(mine) - len(distinct)
        if (len(both) or again) and each.number not in repeated:
            repeated.add(each.number)
            ids = both if len(both) else _repeats(mine)
            what = f"{len(both) + again} live rows have the ids of other live rows: {ids[:_MOST].tolist()}"
            yield Finding(Severity.ERROR, "repeated-row-ids", what, _ADVICE, fragment=fragment.id)
        seen = np.union1d(seen, distinct)


def _live_ids(snapshot: Snapshot, fragment: Fragment, start: int, end: int) -> RowIds:
    reader = FragmentReader(snapshot, fragment)
    ids = snapshot.row_ids(fragment, reader.physical_rows())
    inside = np.flatnonzero((ids >= np.uint64(start)) & (ids < np.uint64(min(end, (1 << 64) - 1))))
    alive = ~reader.live_rows().is_deleted(inside)
    found: RowIds = ids[inside[alive]]
    return found


def _repeats(ids: RowIds) -> RowIds:
    values, counts = np.unique(ids, return_counts=True)
    found: RowIds = values[counts > 1]
    return found
