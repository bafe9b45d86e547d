"""Finding the rows that a condition is true for.

Fragments are searched in groups, so that many small ones make one task; a large one is a group by
itself.  Only the columns that the condition names are read, and of those just the pages in which a
row may pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.byte_ranges import Int64Array
from pennon.expr.tree import Literal
from pennon.scan.plan.query import BoundQuery, ScanOptions, bind_query, parse_predicate, plan_query
from pennon.scan.predicate import Predicate, SqlPredicate
from pennon.scan.projection import MetaColumn
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import live_row_counts
from pennon.scan.run.filter import read_query_batches
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import Fragment

GROUP_ROWS: Final = 1 << 20
GROUP_FRAGMENTS: Final = 256
_ADDRESSES_AT_ONCE: Final = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Living rows of a fragment, by their physical offsets: sorted, distinct."""

    fragment: Fragment
    offsets: Int64Array

    def __len__(self) -> int:
        return len(self.offsets)


def plan_groups(snapshot: Snapshot, most_rows: int = GROUP_ROWS) -> tuple[range, ...]:
    """Return the numbers of the fragments of each group; together they are all, in order.

    A group has at most so many rows, unless one fragment has more.
    """
    groups, first, rows = [], 0, 0
    counts = live_row_counts(snapshot)
    for number, count in enumerate(counts):
        is_full = rows + count > most_rows or number - first >= GROUP_FRAGMENTS
        if is_full and number > first:
            groups.append(range(first, number))
            first, rows = number, 0
        rows += count
    if first < len(counts):
        groups.append(range(first, len(counts)))
    return tuple(groups)


def bind_search(snapshot: Snapshot, condition: str | pc.Expression | Predicate) -> BoundQuery:
    """Return the query of the addresses of a version's rows for which a condition is true.

    Raises ArgumentError if SQL text is none, or names what the table does not have.
    """
    if isinstance(condition, Predicate):
        return _search(snapshot, condition)
    if not isinstance(condition, (str, pc.Expression)):
        message = f"a condition is SQL text or a pyarrow expression, not {condition!r}"
        raise TypeError(message)
    return _search(snapshot, parse_predicate(snapshot, condition, snapshot.shown_schema))


def bind_all_rows(snapshot: Snapshot) -> BoundQuery:
    """Return the query of the addresses of all rows of a version."""
    return _search(snapshot, None)


def _search(snapshot: Snapshot, predicate: Predicate | None) -> BoundQuery:
    return bind_query(
        snapshot, ScanOptions(columns=(MetaColumn.ROW_ADDRESS.value,), predicate=predicate)
    )


def is_always_true(query: BoundQuery) -> bool:
    """Return whether nothing has to be read to know that every row passes."""
    if query.condition is None:
        return True
    found = query.condition.predicate
    return (
        isinstance(found, SqlPredicate)
        and isinstance(found.condition, Literal)
        and found.condition.value.as_py() is True
    )


def find_rows(query: BoundQuery, fragments: Sequence[Fragment]) -> Iterator[Rows]:
    """Yield the living rows of fragments that a query finds, where there are any."""
    if is_always_true(query):
        yield from filter(len, (all_rows(query.snapshot, fragment) for fragment in fragments))
        return
    by_id: dict[int, Fragment] = {fragment.id: fragment for fragment in fragments}
    for fragment_id, offsets in _by_fragment(_addresses(query, fragments)):
        yield Rows(by_id[fragment_id], offsets)


def all_rows(snapshot: Snapshot, fragment: Fragment) -> Rows:
    """Return all living rows of a fragment."""
    live = FragmentReader(snapshot, fragment).live_rows()
    return Rows(
        fragment, live.between(0, live.count).physical() if live.count else live.deleted[:0]
    )


def _addresses(query: BoundQuery, fragments: Sequence[Fragment]) -> Iterator[pa.Array]:
    for batch in read_query_batches(plan_query(query, fragments), _ADDRESSES_AT_ONCE):
        yield batch.column(0)


def _by_fragment(batches: Iterable[pa.Array]) -> Iterator[tuple[int, Int64Array]]:
    """Yield the offsets of each fragment; addresses of one follow one another."""
    parts: list[Int64Array] = []
    current = -1
    for batch in batches:
        addresses = batch.to_numpy().astype(np.int64)
        owners = addresses >> 32
        borders = np.flatnonzero(np.diff(owners)) + 1
        for piece in np.split(addresses, borders):
            owner = int(piece[0] >> 32)
            if owner != current and parts:
                yield current, np.concatenate(parts)
                parts = []
            current = owner
            parts.append(piece & 0xFFFFFFFF)
    if parts:
        yield current, np.concatenate(parts)
