"""Asking indices which rows may pass a condition.

::

    condition     i > 5 AND (s = 'a' OR contains(t, 'xyz')) AND j < k
    lookup        AND([i > 5]@i_idx(BTree),OR([s = a]@s_idx(Bitmap),[contains(t, xyz)]@t_idx(NGram)))
    selection     the rows that must pass, and those that may

A part of the condition that names one column, and one with an index that understands it, is a leaf.  What
is left of an AND is tested; what is left of an OR leaves nothing to ask.  NOT goes down to the leaves first.

An answer counts for the fragments that its index covers; of the others any row may pass.  What an index says
of fragments that are gone, of rows past the end, or of deleted ones is dropped.  An index that cannot be read,
because a file is damaged or missing, is one that does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial, reduce
from typing import Final, TypeAlias, TypeVar, cast

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId, FragmentId
from pennon.errors import ExpressionError, FormatError, NotFoundError, UnsupportedError
from pennon.expr.evaluate import is_constant
from pennon.expr.tree import Call, Column, Expression, nodes_of, paths_of, with_column
from pennon.index.base import VALUE, OpenIndex, Question, ScalarIndex
from pennon.index.files import watched
from pennon.index.kind import Kind
from pennon.index.kinds import KINDS, kind_of, stores_row_ids
from pennon.index.moved_rows import MovedRows
from pennon.index.row_set import NONE, UNKNOWN, RowSet, Selection, of_fragments
from pennon.scan.plan.index_words import shown
from pennon.scan.plan.json_index import of_json_path
from pennon.scan.plan.known_indices import known_indices
from pennon.scan.plan.moved_rows import covered_now, moved_rows
from pennon.scan.read.chosen_rows import rows_of_tasks
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import ScanTask
from pennon.scan.snapshot import Key, Snapshot
from pennon.schema.field import Field
from pennon.schema.types import storage_type
from pennon.table.indices import Index
from pennon.table.json_index_wire import json_target

T = TypeVar("T")

UNUSABLE: Final = (FormatError, NotFoundError, UnsupportedError, ExpressionError)
_ORDER: Final = {kind.name: rank for rank, kind in enumerate(KINDS)}
INDICES: Final[Key[Mapping[FieldId, Sequence[ColumnIndex]]]] = Key("indices")
COVERAGE: Final[Key[_Covered]] = Key("coverage")
FRAGMENT_IDS: Final[Key[frozenset[FragmentId]]] = Key("fragment ids")


@dataclass(frozen=True, slots=True)
class ColumnIndex:
    """An index on a column, or on what lies at a path of a JSON column, with its segments."""

    name: str
    kind: Kind
    segments: tuple[Index, ...]
    json_path: str | None = None

    def asked_of(self, condition: Expression) -> Expression | None:
        """Return the question that a condition makes to it; None if it cannot answer."""
        if self.json_path is not None:
            asked = of_json_path(condition, self.json_path)
            if asked is None or not self.kind.tells_type:
                return None
            condition = asked
        versions = (each.index_version for each in self.segments)
        return condition if all(self.kind.answers(condition, each) for each in versions) else None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A part of a condition that an index is asked."""

    condition: Expression
    index: ColumnIndex
    column: pa.DataType = field(init=False)
    """The type of the table's column."""
    question: Question = field(init=False, compare=False)
    """The condition, of the index's own column."""

    def __post_init__(self) -> None:
        """Put the question, once for all segments and all times that it is asked."""
        nodes = nodes_of(self.condition)
        kind = next(each.type for each in nodes if isinstance(each, Column))
        object.__setattr__(self, "column", kind)
        question = Question(with_column(self.condition, Column((VALUE,), storage_type(kind))))
        object.__setattr__(self, "question", question)

    def __str__(self) -> str:
        by = f"@{self.index.name}({self.index.kind.name})"
        return shown(self.condition, by, self.index.json_path)

    def ask(self, snapshot: Snapshot) -> Selection:
        """Return what the index knows, by row addresses."""
        found: list[Selection] = []
        others = _alive(snapshot)
        for segment in self.index.segments:
            try:
                mine = _coverage(snapshot, segment)
                answer = self._asked_of(snapshot, segment, mine)
            except UNUSABLE:
                continue
            if not answer.may.is_all or answer.must.is_all:
                others -= mine.fragment_ids
                found.append(answer.within(mine.rows))
        if others:
            found.append(Selection.superset(of_fragments(others)))
        return reduce(Selection.or_, found) if found else Selection.exact(NONE)

    def _asked_of(self, snapshot: Snapshot, segment: Index, covered: _Covered) -> Selection:
        """Return what a segment says, by row addresses; of rows that it does not cover, too."""
        opened = cast("ScalarIndex", open_index(snapshot, segment, self.index.kind, self.column))
        if opened.column.type != storage_type(self.column):
            return UNKNOWN
        answer = opened.search(self.question)
        if not covered.by_ids:
            return covered.moves.selection(answer)
        if answer.is_exact:
            return Selection.exact(_addresses(snapshot, segment, answer.may))
        return Selection(
            _addresses(snapshot, segment, answer.must), _addresses(snapshot, segment, answer.may)
        )


@dataclass(frozen=True, slots=True)
class Both:
    """A conjunction of index lookups; ``is_whole``: no conjunct was left out."""

    parts: tuple[Lookup, ...]
    is_whole: bool

    def __str__(self) -> str:
        return reduce("AND({},{})".format, map(str, self.parts))

    def ask(self, snapshot: Snapshot) -> Selection:
        """Return what the indices know together."""
        found = self.parts[0].ask(snapshot)
        for part in self.parts[1:]:
            if found.may.is_empty:
                break
            found = found.and_(part.ask(snapshot))
        return found if self.is_whole else found.and_(UNKNOWN)


@dataclass(frozen=True, slots=True)
class Either:
    """A disjunction of index lookups."""

    parts: tuple[Lookup, ...]

    def __str__(self) -> str:
        return reduce("OR({},{})".format, map(str, self.parts))

    def ask(self, snapshot: Snapshot) -> Selection:
        """Return what the indices know together."""
        return reduce(Selection.or_, (part.ask(snapshot) for part in self.parts))


Lookup: TypeAlias = Leaf | Both | Either


# --- planning -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IndexLookup:
    """The questions that a condition makes to indices."""

    asked: Lookup

    def __str__(self) -> str:
        return str(self.asked)

    def ask(self, snapshot: Snapshot) -> Selection:
        """Return what indices know of the rows of a version's fragments."""
        if snapshot.meter is None:
            return self.asked.ask(snapshot)
        with watched(snapshot.meter):
            return self.asked.ask(snapshot)

    def choose_rows(
        self, snapshot: Snapshot, tasks: Sequence[ScanTask], found: Selection | None = None
    ) -> list[ScanTask]:
        """Return what indices leave of tasks, in order: parts of them, or rows one by one.

        ``found``: what they know, if they were asked before.  Nothing is known of the fragments of other versions.
        """
        found = self.ask(snapshot) if found is None else found
        alive = _alive(snapshot)
        if not alive.issuperset([task.fragment.id for task in tasks]):
            others = of_fragments(
                task.fragment.id for task in tasks if task.fragment.id not in alive
            )
            found = found.or_(Selection.superset(others))
        return rows_of_tasks(snapshot, tasks, found)


def plan_lookup(snapshot: Snapshot, condition: Expression) -> IndexLookup | None:
    """Return what indices are asked of a condition; None if none knows anything.

    Reads nothing, but lists the folders of indices of releases up to 0.19, which do not say their kinds.
    """
    indices = usable_indices(snapshot)
    asked = _Planner(snapshot.manifest.schema.fields, indices).plan(condition) if indices else None
    return None if asked is None else IndexLookup(asked)


def usable_indices(snapshot: Snapshot) -> Mapping[FieldId, Sequence[ColumnIndex]]:
    """Return the indices that can be asked, by their fields: best ones first."""
    if not snapshot.manifest.indices:
        return {}
    return snapshot.remember(INDICES, partial(_usable, snapshot))


def _usable(snapshot: Snapshot) -> Mapping[FieldId, Sequence[ColumnIndex]]:
    named: dict[tuple[str, FieldId, str | None], list[Index]] = {}
    for index in known_indices(snapshot):
        if len(index.field_ids) == 1 and index.fragment_ids is not None:
            path, target = json_target(index)
            named.setdefault((index.name, index.field_ids[0], path), []).append(target)
    found: dict[FieldId, list[ColumnIndex]] = {}
    for (name, field_id, path), segments in named.items():
        kinds = {kind_of(each) for each in segments}
        kind = next(iter(kinds))
        if len(kinds) == 1 and kind is not None:
            found.setdefault(field_id, []).append(ColumnIndex(name, kind, tuple(segments), path))
    for indices in found.values():
        indices.sort(key=lambda each: (_ORDER[each.kind.name], each.name))
    return found


class _Planner:
    """Finds the leaves of a condition."""

    def __init__(
        self, fields: Sequence[Field], indices: Mapping[FieldId, Sequence[ColumnIndex]]
    ) -> None:
        self._fields = fields
        self._indices = indices

    def plan(self, node: Expression) -> Lookup | None:
        """Return what is asked of a condition."""
        return self._leaf(node) or self._inner(node)

    def _leaf(self, node: Expression) -> Leaf | None:
        paths = paths_of(node)
        if len(paths) != 1 or not is_constant(node):
            return None
        for index in self._indices.get(self._field_id(paths[0]), ()):
            asked = index.asked_of(node)
            if asked is not None:
                return Leaf(asked, index)
        return None

    def _inner(self, node: Expression) -> Lookup | None:
        if not isinstance(node, Call):
            return None
        if node.function == "NOT":
            inside = _negated(node.arguments[0])
            return None if inside is None else self.plan(inside)
        if node.function not in {"AND", "OR"}:
            return None
        parts = list(self._parts(node))
        known = tuple(part for part in parts if part is not None)
        is_whole = len(known) == len(parts)
        if node.function == "OR":
            return Either(known) if is_whole else None
        return Both(known, is_whole) if known else None

    def _parts(self, node: Call) -> Iterator[Lookup | None]:
        """Yield what is asked of the parts of an AND or OR: of those of one column together, if possible."""
        for group in _by_column(node):
            whole = Call(node.function, tuple(group), node.type)
            leaf = self._leaf(whole) if len(group) > 1 else None
            if leaf is not None:
                yield leaf
            else:
                yield from map(self.plan, group)

    def _field_id(self, path: Sequence[str]) -> FieldId:
        fields, field_id = self._fields, FieldId(-1)
        for name in path:
            found = next((each for each in fields if each.name == name), None)
            if found is None:
                return FieldId(-1)
            fields, field_id = found.children, found.id
        return field_id


def _by_column(node: Call) -> Iterable[list[Expression]]:
    """Return the parts of an AND or OR; those of one column stand together."""
    groups: dict[object, list[Expression]] = {}
    waiting: list[Expression] = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Call) and each.function == node.function:
            waiting.extend(reversed(each.arguments))
            continue
        paths = paths_of(each)
        groups.setdefault(paths[0] if len(paths) == 1 else object(), []).append(each)
    return groups.values()


def _negated(node: Expression) -> Expression | None:
    """Return NOT of a condition with the NOT further down; None if that goes no further."""
    if not isinstance(node, Call):
        return None
    if node.function == "NOT":
        return node.arguments[0]
    if node.function not in {"AND", "OR"}:
        return None
    parts = tuple(Call("NOT", (each,), node.type) for each in node.arguments)
    return Call("OR" if node.function == "AND" else "AND", parts, node.type)


# --- asking ---------------------------------------------------------------------------------------


def open_index(snapshot: Snapshot, segment: Index, kind: Kind, column: pa.DataType) -> OpenIndex:
    """Return a segment of an index on a column of a type, opened now or before.

    Raises FormatError, NotFoundError or UnsupportedError if it cannot be read.
    """

    def open_now() -> OpenIndex:
        return kind.open_segment(snapshot.index_files(segment, remember), column)

    remember = snapshot.index_parts
    return remember(("index", segment.folder), open_now, lambda opened: opened.size_bytes)


@dataclass(frozen=True, slots=True, eq=False)
class _Covered:
    """The fragments that a segment covers, and that are there; all their rows, and how it names rows."""

    fragment_ids: frozenset[FragmentId]
    rows: RowSet
    moves: MovedRows
    by_ids: bool
    """Whether it has the stable ids of rows, and not their addresses."""


def _coverage(snapshot: Snapshot, segment: Index) -> _Covered:
    """Return what a segment covers."""

    def find() -> _Covered:
        fragment_ids = covered_now(snapshot, segment) & _alive(snapshot)
        by_ids = snapshot.manifest.has_stable_row_ids and stores_row_ids(segment)
        return _Covered(fragment_ids, of_fragments(fragment_ids), moved_rows(snapshot), by_ids)

    return snapshot.remember(COVERAGE, find, segment.folder)


def _alive(snapshot: Snapshot) -> frozenset[FragmentId]:
    return snapshot.remember(
        FRAGMENT_IDS, lambda: frozenset(each.id for each in snapshot.manifest.fragments)
    )


def _addresses(snapshot: Snapshot, segment: Index, ids: RowSet) -> RowSet:
    """Return the addresses of rows of stable ids in the fragments that a segment covers."""
    found, covered = [], covered_now(snapshot, segment)
    for fragment in snapshot.manifest.fragments:
        if fragment.id not in covered:
            continue
        known = snapshot.row_ids(fragment, FragmentReader(snapshot, fragment).physical_rows())
        offsets = np.flatnonzero(ids.contains(known)).astype(np.uint64)
        found.append(offsets | np.uint64(fragment.id << 32))
    return RowSet.of(np.concatenate([np.empty(0, np.uint64), *found]))
