"""Checks whether indices name the rows that have their values, on a sample of rows.

::

    BTREE, BITMAP, ZONEMAP, BLOOMFILTER    the value of a row is asked for, the row must be in the answer
    LABEL_LIST, NGRAM                      the first item of its list, its text
    INVERTED                               the first tokens of its text
    vectors                                its partition must name it, with its code; of PQ by dot any partition

A wrong answer of an index loses rows in silence.  Pennon 0.1.0 could make such indices: by Z-ordering and sorting, and by
compactions that follow on a deferred one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types as t

from pennon.core.units import FragmentId
from pennon.errors import FormatError, LanceError
from pennon.expr.tree import Call, Column, Expression, Literal
from pennon.index.base import Question, ScalarIndex, Values, is_nan
from pennon.index.kind import Sample
from pennon.index.kinds import kind_of, stores_row_ids
from pennon.index.row_set import Numbers
from pennon.ops.index.build import IndexBuild
from pennon.ops.index.create import fits_column, plan_like
from pennon.scan.plan.known_indices import known_indices
from pennon.scan.plan.moved_rows import moved_rows
from pennon.scan.read.tasks import live_row_count, plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import Fragment
from pennon.table.indices import SYSTEM, Index

_ROWS: Final = 4
"""Neighbours that are looked at, at two places of a fragment."""


@dataclass(frozen=True, slots=True)
class WrongIndex:
    """A segment of an index that does not name rows that it should, and why that is known."""

    index: Index
    why: str


def wrong_segments(
    snapshot: Snapshot, segments: Sequence[Index] | None = None, most_fragments: int | None = None
) -> Iterator[WrongIndex]:
    """Yield segments that do not name some rows of a sample, by default of all indices.

    ``most_fragments``: so many fragments are looked at, by default all.  Segments that cannot be read, which no query
    asks, are not looked at.
    """
    found = known_indices(snapshot) if segments is None else segments
    for index in found:
        if index.name in SYSTEM or not is_made_here(snapshot, [index]):
            continue
        try:
            why = _why_wrong(snapshot, index, most_fragments)
        except (LanceError, pa.ArrowException):
            continue
        if why is not None:
            yield WrongIndex(index, why)


def is_made_here(snapshot: Snapshot, segments: Sequence[Index]) -> bool:
    """Return whether an index is of one kind that Pennon makes, and of one column, which is there and fits."""
    kinds = {(kind_of(each), each.field_ids) for each in segments}
    fit = all(fits_column(snapshot, each) for each in segments)
    return len(kinds) == 1 and kind_of(segments[0]) is not None and fit


def _why_wrong(snapshot: Snapshot, index: Index, most_fragments: int | None) -> str | None:
    claimed = moved_rows(snapshot).covered(index.fragment_ids or frozenset())
    build = plan_like(snapshot, index, ()).alike(index)
    may_miss_few = build.kind.finds is not None
    for fragment in _chosen(snapshot, claimed, most_fragments):
        found = [
            there
            for values in _sample(build, index, fragment)
            for there in _finds(build, index, values)
        ]
        sampled, missed = len(found), found.count(False)
        if missed and (2 * missed > sampled or not may_miss_few):
            return f"it does not find {missed} of {sampled} rows of fragment {fragment.id}"
    return None


def _chosen(snapshot: Snapshot, covered: frozenset[FragmentId], most: int | None) -> list[Fragment]:
    mine = [each for each in snapshot.manifest.fragments if each.id in covered]
    if most is None or len(mine) <= most:
        return mine
    rng = np.random.default_rng(snapshot.manifest.version)
    return [mine[at] for at in np.sort(rng.choice(len(mine), most, replace=False)).tolist()]


def _names_ids(snapshot: Snapshot, index: Index) -> bool:
    return snapshot.manifest.has_stable_row_ids and stores_row_ids(index)


def _sample(build: IndexBuild, index: Index, fragment: Fragment) -> Iterator[Values]:
    """Yield the values of a few rows of a fragment, with the numbers that an index has of them."""
    by_ids = _names_ids(build.snapshot, index)
    rows = live_row_count(build.snapshot, fragment)
    rng = np.random.default_rng([build.snapshot.manifest.version, fragment.id])
    first = int(rng.integers(0, max(rows // 2 - _ROWS, 1)))
    second = max(rows - 1 - int(rng.integers(0, max(rows // 2, 1))) - _ROWS, 0)
    for start in sorted({first, second}):
        tasks = plan_tasks(build.snapshot, [fragment], start, min(_ROWS, rows - start))
        yield from build.values_of(build.read(tasks, by_row_ids=by_ids))


def _finds(build: IndexBuild, index: Index, values: Values) -> list[bool]:
    """Return of values that were looked up, whether they were found."""
    snapshot = build.snapshot

    def present(named: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
        if _names_ids(snapshot, index):
            return named, np.ones(len(named), np.bool_)
        return moved_rows(snapshot).numbers(named)

    if build.kind.finds is None:
        return _by_conditions(build, index, values)
    return build.kind.finds(Sample(build.files(index), build.type, values, present))


def _by_conditions(build: IndexBuild, index: Index, values: Values) -> list[bool]:
    kind, snapshot = build.kind, build.snapshot
    opened = cast("ScalarIndex", kind.open_segment(build.files(index), build.type))
    by_ids = _names_ids(snapshot, index)
    there = []
    for value, row in zip(values.values, values.rows.tolist(), strict=True):
        for asked in _conditions(opened.column, value):
            if kind.answers(asked, index.index_version):
                answer = opened.search(Question(asked))
                if not by_ids:
                    answer = moved_rows(snapshot).selection(answer)
                there.append(bool(answer.may.contains(np.array([row], np.uint64))[0]))
                break
    return there


def _conditions(column: Column, value: pa.Scalar) -> Iterator[Expression]:
    """Yield simple conditions that are true for a value; an index of any kind answers one, or none."""
    kind = column.type
    if not value.is_valid:
        yield Call("IS NULL", (column,), pa.bool_())
    elif t.is_list(kind) or t.is_large_list(kind):
        items = [item for item in value.values if item.is_valid and not is_nan(item)]
        for item in items[:1]:
            yield Call("array_has", (column, Literal(item)), pa.bool_())
    elif not t.is_nested(kind) and value.type == kind and not is_nan(value):
        for function in ("=", "contains"):
            yield Call(function, (column, Literal(value)), pa.bool_())


def check_indices(snapshot: Snapshot) -> None:
    """Raise FormatError for the first index that does not name rows that it should."""
    for wrong in wrong_segments(snapshot):
        message = (
            f"the index {wrong.index.name!r} is wrong: {wrong.why}; optimize_indices makes it anew"
        )
        raise FormatError(message)
