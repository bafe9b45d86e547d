"""The rows that a search may find: of some fragments, alive, and such that they pass a condition.

An index names rows by numbers of its own, addresses from when it was made or stable ids.  `IndexedRows` tells
which of them may be found, and where they are now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.cached_property import cached_property
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FragmentId
from pennon.index.moved_rows import MovedRows
from pennon.index.row_set import Numbers, RowMask, RowSet
from pennon.scan.deletion_mask import NONE_DELETED
from pennon.scan.plan.moved_rows import covered_now, moved_rows
from pennon.scan.plan.query import BoundQuery, ScanOptions, bind_query, lookup_of, plan_query
from pennon.scan.plan.row_search import RowSearch
from pennon.scan.predicate import Predicate, all_of
from pennon.scan.projection import MetaColumn
from pennon.scan.read.fragment_reader import FragmentReader, live_addresses
from pennon.scan.run.filter import read_query, read_query_batches
from pennon.scan.run.plan_steps import Plan, Prefilter, QueryScalarIndices
from pennon.scan.snapshot import Key, Snapshot
from pennon.table.fragment import Fragment
from pennon.table.indices import Index

_BATCH_ROWS = 8192
COVERED: Final[Key[_Covered]] = Key("rows covered")
ROWS: Final[Key[RowMask]] = Key("rows of an index")
ROW_IDS: Final[Key[tuple[Numbers, Numbers]]] = Key("row ids of an index")


@dataclass(frozen=True, slots=True)
class Scope:
    """The rows of a version that a search may find: of some fragments, that pass a condition."""

    snapshot: Snapshot
    predicate: Predicate | None = None
    fragments: tuple[Fragment, ...] | None = None
    is_fast: bool = False
    """Just what indices cover is searched."""
    uses_indices: bool = True
    """Indices are asked which rows pass the condition."""

    @classmethod
    def of(cls, snapshot: Snapshot, options: ScanOptions, asked: RowSearch) -> Scope:
        """Return the rows that a search of a scan may find."""
        limits = [options.mask, options.predicate if asked.prefilter else None]
        given = [each for each in limits if each is not None]
        before = all_of(given) if given else None
        return cls(snapshot, before, options.fragments, asked.is_fast, options.uses_indices)

    @property
    def searched(self) -> Sequence[Fragment]:
        """Return the fragments."""
        return self.snapshot.manifest.fragments if self.fragments is None else self.fragments

    def query(self, fragments: Sequence[Fragment], *columns: str) -> BoundQuery:
        """Return the query for columns of those rows of fragments, and for their addresses."""
        are_all = self.fragments is None and len(fragments) == len(self.searched)
        return plan_query(self.bound(*columns), None if are_all else fragments)

    def bound(self, *columns: str, with_row_id: bool = False) -> BoundQuery:
        """Return the query for columns of the rows, and for their addresses, without tasks."""
        options = ScanOptions(
            columns=columns,
            predicate=self.predicate,
            with_row_id=with_row_id,
            with_row_address=True,
            uses_indices=self.uses_indices,
        )
        return bind_query(self.snapshot, options)

    def passing(self, fragments: Sequence[Fragment]) -> RowSet:
        """Return the addresses of those rows of fragments that are alive and pass the condition."""
        if self.predicate is None:
            return live_addresses(self.snapshot, fragments)
        found = read_query(self.query(fragments)).column(MetaColumn.ROW_ADDRESS.value).to_numpy()
        return RowSet.of(np.asarray(found, np.uint64))

    def steps(self) -> tuple[Plan, ...]:
        """Return the plan of the condition, and below it of the indices that are asked."""
        if self.predicate is None:
            return ()
        lookup = lookup_of(self.query(()))
        asked = () if lookup is None else (Plan(QueryScalarIndices(lookup)),)
        return (Plan(Prefilter(self.predicate), asked),)

    def texts(
        self, column: str, fragments: Sequence[Fragment]
    ) -> Iterator[tuple[Numbers, pa.Array]]:
        """Yield the values of a column of rows that pass the condition, behind their addresses."""
        for batch in read_query_batches(self.query(fragments, column), _BATCH_ROWS):
            addresses = batch.column(MetaColumn.ROW_ADDRESS.value)
            yield np.asarray(addresses.to_numpy(), np.uint64), batch.column(0)


@dataclass(frozen=True, slots=True, eq=False)
class _Covered:
    """The fragments of the search that a segment of an index covers."""

    all_ids: frozenset[FragmentId]
    fragments: tuple[Fragment, ...]
    fragment_ids: tuple[FragmentId, ...]
    is_whole: bool
    """All rows of all of them are alive, and where they were as it was made."""

    @classmethod
    def of(cls, scope: Scope, segment: Index) -> _Covered:
        all_ids = covered_now(scope.snapshot, segment)
        fragments = tuple([each for each in scope.searched if each.id in all_ids])
        is_whole = (
            len(fragments) == len(all_ids)
            and all(each.deletion_file is None for each in fragments)
            and not moved_rows(scope.snapshot).maps
        )
        return cls(all_ids, fragments, tuple([each.id for each in fragments]), is_whole)


class IndexedRows:
    """The rows of an index segment that may be found, and their addresses."""

    def __init__(self, scope: Scope, segment: Index, *, by_row_ids: bool) -> None:
        """``by_row_ids``: the segment names rows by their stable ids, if the table has them."""
        self._scope = scope
        find = partial(_Covered.of, scope, segment)
        self._covered: _Covered = (
            scope.snapshot.remember(COVERED, find, segment.folder)
            if scope.fragments is None
            else find()
        )
        self._by_row_ids = by_row_ids and scope.snapshot.manifest.has_stable_row_ids

    @property
    def fragment_ids(self) -> tuple[FragmentId, ...]:
        """Return the fragments whose rows it may name, and that are searched."""
        return self._covered.fragment_ids

    @property
    def are_all(self) -> bool:
        """Return whether every row that the segment names may be found, under the address that it has."""
        scope = self._scope
        if scope.predicate is not None or scope.fragments is not None or self._by_row_ids:
            return False
        return self._covered.is_whole

    def see(self, rows: Numbers) -> tuple[npt.NDArray[np.bool_], Numbers]:
        """Return which rows, by the segment's numbers, may be found, and the addresses of these."""
        if not self._by_row_ids:
            return self._see_addresses(rows)
        ids, addresses = self._known
        if not len(ids):
            return np.zeros(len(rows), np.bool_), np.empty(0, np.uint64)
        at = np.minimum(np.searchsorted(ids, rows), len(ids) - 1)
        is_seen = (ids[at] == rows) & self._rows.contains(addresses[at])
        return is_seen, addresses[at[is_seen]]

    def _see_addresses(self, old: Numbers) -> tuple[npt.NDArray[np.bool_], Numbers]:
        if self._covered.is_whole or not self._moved.maps:
            is_seen = self._rows.contains(old)
            return is_seen, old[is_seen]
        rows, is_seen = self._moved.numbers(old)
        is_found = self._rows.contains(rows)
        is_seen[is_seen] = is_found
        return is_seen, rows[is_found]

    @cached_property
    def _moved(self) -> MovedRows:
        return moved_rows(self._scope.snapshot)

    @cached_property
    def _rows(self) -> RowMask:
        scope = self._scope

        def find() -> RowMask:
            return RowMask.of(scope.passing(self._covered.fragments))

        if scope.predicate is not None:
            return find()
        return scope.snapshot.remember(ROWS, find, self.fragment_ids)

    @cached_property
    def _known(self) -> tuple[Numbers, Numbers]:
        return self._scope.snapshot.remember(ROW_IDS, self._find_known, self.fragment_ids)

    def _find_known(self) -> tuple[Numbers, Numbers]:
        """Return the stable ids of all live rows, sorted, and the rows' addresses."""
        snapshot = self._scope.snapshot
        ids, addresses = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
        for fragment in self._covered.fragments:
            live = FragmentReader(snapshot, fragment).live_rows()
            rows = live.between(0, live.count).physical() if live.count else NONE_DELETED
            ids.append(snapshot.row_ids(fragment, live.physical_rows)[rows].astype(np.uint64))
            addresses.append(rows.astype(np.uint64) | np.uint64(fragment.id << 32))
        known = np.concatenate(ids)
        order = np.argsort(known, kind="stable")
        return known[order], np.concatenate(addresses)[order]
