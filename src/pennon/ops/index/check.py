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
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from pennon.core.units import FragmentId
from pennon.errors import FormatError, LanceError
from pennon.expr.tree import Call, Column, Expression, Literal
from pennon.index.base import Question, ScalarIndex, Values, is_nan
from pennon.index.files import IndexFiles
from pennon.index.kinds import kind_of, rows_named, stores_row_ids
from pennon.index.row_set import Numbers
from pennon.index.text import kind as text
from pennon.index.text.documents import Reader, is_json
from pennon.index.text.inverted import Inverted
from pennon.index.vector.build.opened_index import open_stored
from pennon.index.vector.build.partitions import sorted_by_partition
from pennon.ops.index.build import IndexBuild
from pennon.ops.index.create import fits_column, plan_like
from pennon.ops.index.vectors import has_vectors
from pennon.scan.plan.known_indices import known_indices
from pennon.scan.plan.moved_rows import moved_rows
from pennon.scan.read.tasks import live_row_count, plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import Fragment
from pennon.table.indices import SYSTEM, Index

_ROWS: Final = 4
"""Neighbours that are looked at, at two places of a fragment."""
_TOKENS: Final = 4
"""Tokens of a text that are looked up."""
_ALIKE: Final = 0.5
"""A code is that of a vector if more of its numbers are equal; another library may round a few otherwise."""


@dataclass(frozen=True, slots=True)
class WrongIndex:
    """A segment of an index that does not name rows that it should, and why that is known."""

    index: Index
    why: str


def wrong_segments(
    snapshot: Snapshot,
    segments: Sequence[Index] | None = None,
    most_fragments: int | None = None,
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
    if all(each.is_vector for each in segments):
        return has_vectors(snapshot, segments)
    kinds = {kind_of(each) for each in segments}
    fit = all(fits_column(snapshot, each) for each in segments)
    return None not in kinds and len(kinds) == 1 and fit


def _why_wrong(snapshot: Snapshot, index: Index, most_fragments: int | None) -> str | None:
    claimed = moved_rows(snapshot).covered(index.fragment_ids or frozenset())
    build = plan_like(snapshot, index, ()).alike(index)
    is_sure = not (index.is_vector or _is_text(index))
    for fragment in _chosen(snapshot, claimed, most_fragments):
        found = [
            _misses(snapshot, build, index, values) for values in _sample(build, index, fragment)
        ]
        sampled, missed = sum(count for count, _ in found), sum(misses for _, misses in found)
        if missed and (is_sure or 2 * missed > sampled):
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


def _misses(snapshot: Snapshot, build: IndexBuild, index: Index, values: Values) -> tuple[int, int]:
    """Return how many values were looked up, and how many of them are not found."""
    files = build.files(index)
    if index.is_vector:
        there = _in_partitions(snapshot, build, files, index, values)
    elif _is_text(index):
        there = _by_tokens(snapshot, build, files, index, values)
    else:
        there = _by_values(snapshot, build, files, index, values)
    return len(there), there.count(False)


def _is_text(index: Index) -> bool:
    return index.type_name == text.KIND.details


def _present(snapshot: Snapshot, index: Index, named: Numbers) -> Numbers:
    """Return numbers that an index names as the rows have them now; those that are gone are left out."""
    if _names_ids(snapshot, index):
        return named
    return moved_rows(snapshot).numbers(named)[0]


def _by_values(
    snapshot: Snapshot, build: IndexBuild, files: IndexFiles, index: Index, values: Values
) -> list[bool]:
    kind = kind_of(index)
    if kind is None:
        return []
    opened = cast("ScalarIndex", kind.open(files, build.type))
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


def _by_tokens(
    snapshot: Snapshot, build: IndexBuild, files: IndexFiles, index: Index, values: Values
) -> list[bool]:

    opened = Inverted(files)
    reader = Reader(opened.parameters, is_json(build.type), opened.by_item)
    there = []
    for document in reader.documents(values.values):
        tokens = dict.fromkeys(token for token, *_ in document.tokens)
        row = values.rows[document.row]
        named = (_rows_of_token(opened, token) for token in list(tokens)[:_TOKENS])
        there.append(all(bool((_present(snapshot, index, n) == row).any()) for n in named))
    return there


def _rows_of_token(opened: Inverted, token: str) -> Numbers:
    """Return the rows, by the index's numbers, that have a token."""
    named = [np.empty(0, np.uint64)]
    for partition in opened.partitions:
        number = partition.tokens.find(token)
        if number is not None:
            lists = partition.lists(number, number + 1, places=False)
            named.append(partition.row_ids[lists.docs])
    return np.concatenate(named)


def _in_partitions(
    snapshot: Snapshot, build: Any, files: IndexFiles, index: Index, values: Values
) -> list[bool]:
    stored, by_ids = open_stored(files), snapshot.manifest.has_stable_row_ids
    coded = sorted_by_partition(iter([values]), build.trained)
    settings = stored.model.settings
    if settings.quantizer == "PQ" and not settings.metric.codes_residuals:
        # pylance codes rows that come later otherwise than those that it trained on
        named = rows_named(index, files).numbers()
        found: list[bool] = np.isin(coded.coded.rows, _present(snapshot, index, named)).tolist()
        return found
    there = []
    for number, sample in coded.filled():
        (held,) = stored.read(number, number + 1)
        rows, kept = held.rows, np.ones(len(held.rows), np.bool_)
        if not by_ids:
            rows, kept = moved_rows(snapshot).numbers(rows)
        columns = [each[kept] for each in held.columns]
        for at, row in enumerate(sample.rows.tolist()):
            places = np.flatnonzero(rows == row)
            there.append(
                any(
                    _are_alike([c[at] for c in sample.columns], [c[place] for c in columns])
                    for place in places
                )
            )
    return there


def _are_alike(mine: Sequence[Any], stored: Sequence[Any]) -> bool:
    """Return whether most numbers of two codes are equal, on average of their columns."""
    equal = [
        np.isclose(np.ravel(one).astype(float), np.ravel(other).astype(float), rtol=1e-3).mean()
        for one, other in zip(mine, stored, strict=True)
    ]
    return bool(np.mean(equal) > _ALIKE)


def check_indices(snapshot: Snapshot) -> None:
    """Raise FormatError for the first index that does not name rows that it should."""
    for wrong in wrong_segments(snapshot):
        message = (
            f"the index {wrong.index.name!r} is wrong: {wrong.why}; optimize_indices makes it anew"
        )
        raise FormatError(message)
