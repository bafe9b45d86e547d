"""Map row addresses in an index to current addresses after deferred compactions.

Each version of the fragment reuse index is a map of its own: the kept rows of the old fragments are
those of the new ones, in order; the other rows of the old fragments are gone, and all rows of other
fragments stay.  An address goes through all of the maps, from the oldest on.

Source: reference index-scalar, 16.4 and 16.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FragmentId
from pennon.errors import FormatError
from pennon.index.row_map import RowMap
from pennon.index.row_set import ALL, Numbers, RowSet, Selection, of_fragments
from pennon.index.row_sets_wire import parse_treemap
from pennon.table.fragment_reuse import FragmentDigest, ReuseGroup, ReuseVersion, covered_now

_MOST = 1 << 32
"""A fragment has fewer rows, and so many fragments there cannot be."""


@dataclass(frozen=True, slots=True, eq=False)
class MovedRows:
    """The effects of compactions that left the indices unchanged, oldest first."""

    versions: tuple[ReuseVersion, ...]
    maps: tuple[RowMap, ...]

    @classmethod
    def of(cls, versions: Sequence[ReuseVersion]) -> MovedRows:
        """Return the maps of versions.  Raises FormatError if they cannot be true."""
        return cls(tuple(versions), tuple(_map_of(version) for version in versions))

    @property
    def size_bytes(self) -> int:
        """Return about how much memory the maps take."""
        groups = (group for version in self.versions for group in version.groups)
        arrays = sum(3 * each.starts.nbytes for each in self.maps)
        return arrays + sum(len(group.kept) for group in groups)

    def covered(self, fragment_ids: frozenset[FragmentId]) -> frozenset[FragmentId]:
        """Return the fragments that an index covers that says it covers these."""
        return covered_now(fragment_ids, self.versions)

    def as_one(self) -> RowMap:
        """Return where each row is now."""
        return reduce(RowMap.then, self.maps, RowMap.keeping(ALL))

    def selection(self, answer: Selection) -> Selection:
        """Return an answer by the addresses that rows have now; rows that are gone are left out."""
        if not self.maps:
            return answer
        if answer.is_exact:
            return Selection.exact(self._rows(answer.may))
        return Selection(self._rows(answer.must), self._rows(answer.may))

    def numbers(self, old: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """Return the addresses that rows have now, and which rows were not dropped by a compaction."""
        if not self.maps:
            return old, np.ones(len(old), np.bool_)
        return self.as_one().numbers(old)

    def rows(self, old: RowSet) -> RowSet:
        """Return the addresses that a set of rows has now; the set ends before the greatest number."""
        for each in self.maps:
            old = each.rows(old)
        return old

    def _rows(self, old: RowSet) -> RowSet:
        """Return the addresses that rows have now.

        A set without end is all but some rows: it becomes all but those, wherever they are now.
        """
        if old.is_without_end:
            return self.rows(old.complement()).complement()
        return self.rows(old)

    def doubtful(
        self, fragment_ids: frozenset[FragmentId], dataset_version: int
    ) -> frozenset[FragmentId]:
        """Return those fragments that an index made of a version covers, though its files may name none of their rows.

        The files name rows of fragments that a compaction rewrote later, and left the indices as they were.  If a
        writer then lets the entry cover the new fragments, and rewrites these again, the entry covers fragments that
        are younger than the compaction.  The files name their rows only if that writer gave them new addresses by
        way of the fragment reuse index, which pylance 14 and Pennon 0.1.0 did not.
        """
        youngest = [
            min(each.id for group in version.groups for each in group.new)
            for version in self.versions
            if version.dataset_version >= dataset_version
            and any(group.new for group in version.groups)
        ]
        if not youngest:
            return frozenset()
        limit, origins = min(youngest), self._origins()
        return frozenset(
            each for each in fragment_ids if any(o > limit for o in origins.get(each, (each,)))
        )

    def _origins(self) -> dict[FragmentId, frozenset[FragmentId]]:
        """Return of each new fragment the fragments, of no compaction here, that its rows came from."""
        found: dict[FragmentId, frozenset[FragmentId]] = {}
        for version in self.versions:
            for group in version.groups:
                old = frozenset[FragmentId]().union(
                    *(found.get(each.id, frozenset([each.id])) for each in group.old)
                )
                found.update((each.id, old) for each in group.new)
        return found


NONE_MOVED = MovedRows((), ())
"""All rows are where the indices say."""


def _map_of(version: ReuseVersion) -> RowMap:
    old = [each.id for group in version.groups for each in group.old]
    if len(set(old)) != len(old):
        message = f"a fragment reuse index says twice what became of a fragment: {sorted(old)[:20]}"
        raise FormatError(message)
    moved = [
        RowMap.of_order(*_kept(group), [each.id for each in group.new], _sizes(group.new))
        for group in version.groups
    ]
    return RowMap.joined([*moved, RowMap.keeping(of_fragments(old).complement())])


def _kept(group: ReuseGroup) -> tuple[Numbers, Numbers]:
    """Return the ranges of rows that were kept, in the order of the old fragments."""
    kept = parse_treemap(group.kept)
    there = [
        kept.intersection(_rows_of(each.id, size))
        for each, size in zip(group.old, _sizes(group.old), strict=True)
    ]
    if sum(map(_count, there)) != _count(kept):
        message = "a fragment reuse index keeps rows that its old fragments do not have"
        raise FormatError(message)
    none = [np.empty(0, np.uint64)]
    return (
        np.concatenate([*(each.starts for each in there), *none]),
        np.concatenate([*(each.lasts for each in there), *none]),
    )


def _rows_of(fragment_id: FragmentId, rows: int) -> RowSet:
    first = np.array([fragment_id] if rows else [], np.uint64) << np.uint64(32)
    return RowSet(first, first + np.uint64(max(rows, 1) - 1))


def _sizes(fragments: Sequence[FragmentDigest]) -> list[int]:
    """Return the rows of fragments.  Raises FormatError for what no fragment can be."""
    if any(each.id >= _MOST or each.physical_rows >= _MOST for each in fragments):
        message = f"a fragment reuse index names fragments that no table has: {fragments[:20]}"
        raise FormatError(message)
    return [each.physical_rows for each in fragments]


def _count(rows: RowSet) -> int:
    return int((rows.lasts - rows.starts + np.uint64(1)).sum())
