"""Counting the rows of a query: where indices know of every row whether it passes, none is planned or read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from pennon.core.fast_dataclass import dataclass
from pennon.core.interpreter_end import check_imports_work
from pennon.index.row_set import RowSet
from pennon.scan.plan.query import BoundQuery, lookup_of, plan_query
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.run.filter import count_query
from pennon.scan.snapshot import Key, Snapshot
from pennon.table.fragment import Fragment

STORED_ROWS: Final[Key[_Stored]] = Key("stored rows")


def count_rows(query: BoundQuery, fragments: Sequence[Fragment] | None = None) -> int:
    """Return how many rows of a query without tasks come out, in the fragments given, by default all."""
    check_imports_work()
    lookup = lookup_of(query) if fragments is None else None
    if lookup is None:
        return count_query(plan_query(query, fragments))
    found = lookup.ask(query.snapshot)
    if not found.is_exact:
        return count_query(plan_query(query, found=found))
    rows = _count_alive(query.snapshot, found.may)
    return max((rows if query.most is None else min(rows, query.most)) - query.offset, 0)


@dataclass(frozen=True, slots=True, eq=False)
class _Stored:
    """The addresses of all rows of a version, and those fragments some of whose rows are deleted."""

    rows: RowSet
    thinned: tuple[Fragment, ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Stored:
        fragments = snapshot.manifest.fragments
        counts = [FragmentReader(snapshot, each).physical_rows() for each in fragments]
        rows = np.array(counts, np.uint64)
        starts = np.array([each.id for each in fragments], np.uint64)[rows > 0] << np.uint64(32)
        thinned = tuple(each for each in fragments if each.deletion_file is not None)
        return cls(RowSet.of_ranges(starts, starts + (rows[rows > 0] - np.uint64(1))), thinned)


def _count_alive(snapshot: Snapshot, rows: RowSet) -> int:
    """Return how many rows of a set of addresses are there, and not deleted."""
    stored = snapshot.remember(STORED_ROWS, lambda: _Stored.of(snapshot))
    count = rows.count_common(stored.rows)
    for fragment in stored.thinned:
        deleted = FragmentReader(snapshot, fragment).live_rows().deleted.astype(np.uint64)
        count -= int(rows.contains(deleted | np.uint64(fragment.id << 32)).sum())
    return count
