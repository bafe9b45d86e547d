"""The common part of takes of the same columns of a version, computed once.

A take of one row is so little work that looking up columns, fragments and files would take longer.
So a version remembers, for each set of columns that rows were taken of, which fields these are, and
how they are read from the fragments touched lately.

Plans belong to one process: a child of a fork makes its own, because they hold open files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.cached_property import cached_property
from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_pools import map_all
from pennon.expr.evaluate import evaluate
from pennon.expr.tree import Expression, paths_of
from pennon.scan.deletion_mask import LiveRows
from pennon.scan.plan.query import parse_columns
from pennon.scan.projection import MetaColumn, Projection, plan_take_projection
from pennon.scan.read.fragment_reader import FragmentReader, PreparedRead
from pennon.scan.read.tasks import live_row_counts
from pennon.scan.snapshot import Key, Same, Snapshot
from pennon.schema.field import Schema
from pennon.schema.project import quoted
from pennon.table.fragment import Fragment
from pennon.table.fragments import Fragments

MAX_FRAGMENTS: Final = 256
"""Prepared fragments keep their files open, whatever else is forgotten."""
TWICE: Final = -1
"""The place of fragments of which two have one id."""
_MARK: Final = "\0"
_NOT_STORED: Final = frozenset(meta.value for meta in MetaColumn)
TAKE: Final[Key[TakePlan]] = Key("take")
LIVE_ENDS: Final[Key[Int64Array]] = Key("live ends")
FRAGMENT_NUMBERS: Final[Key[dict[int, int]]] = Key("fragment numbers")


@dataclass(frozen=True, slots=True, eq=False)
class FragmentColumns:
    """The columns of a take in one fragment, ready to be read."""

    fragment: Fragment
    live: LiveRows
    columns: PreparedRead
    is_mapped: bool


@dataclass(frozen=True, slots=True)
class TakenExpressions:
    """Expressions, the columns they need, and the names of all that is shown, in order.

    The columns that expressions need are taken beside those that are shown, under marked names:
    shown columns may have the names of others.
    """

    expressions: Mapping[str, Expression]
    needed: tuple[str, ...]
    order: tuple[str, ...]

    def show(self, taken: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns that were asked for, of those that were read."""
        marked = [_MARK + name for name in self.needed]
        inputs = taken.select(marked).rename_columns(list(self.needed))
        arrays = [
            evaluate(self.expressions[name], inputs)
            if name in self.expressions
            else taken.column(name)
            for name in self.order
        ]
        fields = [
            pa.field(name, array.type) if name in self.expressions else taken.schema.field(name)
            for name, array in zip(self.order, arrays, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, taken.schema.metadata))


@dataclass(eq=False)
class TakePlan:
    """A set of columns, and how they are read from each fragment touched lately."""

    projection: Projection
    computed: TakenExpressions | None = None
    _fragments: dict[int, FragmentColumns] = field(default_factory=dict)

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the schema of the result."""
        return self.projection.arrow

    @cached_property
    def tops(self) -> list[int] | None:
        """Return the number of the field that each column is, None if one is not a field as read."""
        columns = self.projection.columns
        if any(column.meta is not None or column.path for column in columns):
            return None
        return [column.top for column in columns]

    def show(self, taken: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns that were asked for, of those that were read."""
        return taken if self.computed is None else self.computed.show(taken)

    def open(self, snapshot: Snapshot, fragments: Sequence[Fragment]) -> None:
        """Open the files of fragments side by side, for a remote store makes each of them wait."""
        missing = [fragment for fragment in fragments if fragment.id not in self._fragments]
        map_all(partial(self.of, snapshot), missing, snapshot.pool_spec)

    def of(self, snapshot: Snapshot, fragment: Fragment) -> FragmentColumns:
        """Return the columns of a fragment; two of a damaged table may have the same id."""
        found = self._fragments.get(fragment.id)
        if found is None or found.fragment.files != fragment.files:
            live, columns = FragmentReader(snapshot, fragment).find(self.projection.read.fields)
            found = FragmentColumns(fragment, live, columns, columns.is_mapped)
            while len(self._fragments) >= MAX_FRAGMENTS:
                self._fragments.pop(next(iter(self._fragments)), None)
            self._fragments[fragment.id] = found
        return found


def plan_take(
    snapshot: Snapshot,
    columns: tuple[str, ...] | Mapping[str, str] | None,
    *,
    blobs_as_bytes: bool = False,
) -> TakePlan:
    """Return the plan of a take, made now or before; see `plan_take_projection`."""
    names = tuple(columns.items()) if isinstance(columns, Mapping) else columns

    def make() -> TakePlan:
        shown = snapshot.manifest.schema if blobs_as_bytes else snapshot.shown_schema
        return _plan(snapshot, shown, columns)

    return snapshot.remember_take(TAKE, make, names, blobs_as_bytes)


def plan_projection(snapshot: Snapshot, projection: Projection) -> TakePlan:
    """Return the plan of a take of the columns of a scan, made now or before.

    A version remembers the projections of scans: the same columns are the same object, which the plan keeps.
    """
    return snapshot.remember_take(TAKE, partial(TakePlan, projection), Same(projection))


def _plan(
    snapshot: Snapshot, schema: Schema, columns: tuple[str, ...] | Mapping[str, str] | None
) -> TakePlan:
    """Return the plan of a take of columns, or of expressions, of the fields of ``schema``.

    Raises ArgumentError for what is neither a column nor an expression.
    """
    if not isinstance(columns, Mapping):
        return TakePlan(plan_take_projection(schema, columns))
    stored, expressions = parse_columns(snapshot, columns, schema)
    if not expressions:
        return TakePlan(plan_take_projection(schema, columns))
    paths = chain.from_iterable(map(paths_of, expressions.values()))
    needed = tuple(dict.fromkeys(path[0] for path in paths))
    marked = {_MARK + name: _quoted(name) for name in needed}
    computed = TakenExpressions(expressions, needed, tuple(columns))
    return TakePlan(plan_take_projection(schema, {**stored, **marked}), computed)


def _quoted(name: str) -> str:
    """Return a top-level name as it is written among columns."""
    if name in _NOT_STORED:
        return name
    return quoted(name)


def live_ends(snapshot: Snapshot) -> Int64Array:
    """Return the number of live rows up to the end of each fragment."""
    return snapshot.remember(
        LIVE_ENDS, lambda: np.cumsum(np.array(live_row_counts(snapshot), np.int64))
    )


def fragment_numbers(snapshot: Snapshot) -> dict[int, int]:
    """Return the place of each fragment in the scan order, by its id; `TWICE` if two have that id."""
    return snapshot.remember(FRAGMENT_NUMBERS, partial(_fragment_numbers, snapshot))


def _fragment_numbers(snapshot: Snapshot) -> dict[int, int]:
    fragments = snapshot.manifest.fragments
    ids = fragments.ids() if isinstance(fragments, Fragments) else [f.id for f in fragments]
    numbers = {number: place for place, number in enumerate(ids)}
    if len(numbers) < len(ids):  # Lance 0.16.0 could do that
        numbers |= {number: TWICE for number, count in Counter(ids).items() if count > 1}
    return numbers
