"""Match target rows with source rows by key, and choose the clause for each.

Fragments are searched in groups, a million rows at a time.  Of these the columns of the key are
read, and those that conditions name; each row then finds the rows of the source that have its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.large_columns import take_rows
from pennon.errors import MatchError
from pennon.expr.evaluate import passing
from pennon.expr.tree import Call, Column, Expression, is_among, paths_of
from pennon.ops.merge_insert.clauses import Clauses, Matched
from pennon.ops.merge_insert.keys import ABSENT
from pennon.ops.merge_insert.source import Source, one_batch, quoted
from pennon.ops.rows.deletion_vectors import Removal, remove_each
from pennon.ops.rows.find_rows import GROUP_ROWS, Rows, bind_search
from pennon.scan.plan.query import plan_query
from pennon.scan.predicate import Predicate, SqlPredicate
from pennon.scan.projection import MetaColumn, Projection, plan_take_projection
from pennon.scan.read.batches import empty_batch
from pennon.scan.read.compute import ROWS_AT_ONCE
from pennon.scan.read.execute import Scan, read_table
from pennon.scan.read.late_materialization import true_rows
from pennon.scan.read.tasks import ScanTask, live_row_counts, plan_tasks
from pennon.scan.run.filter import read_query
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow, schema_to_arrow
from pennon.schema.blob import described_v2
from pennon.schema.field import Schema
from pennon.table.fragment import Fragment

_SOURCE, _TARGET = "source", "target"
_FEW = 4
"""Where the data has fewer keys than the table has rows, so many times, the rows are looked for that may match."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a merge's clauses, bound to the columns of both sides."""

    update: Expression | None = None
    delete: Expression | None = None

    @classmethod
    def of(cls, clauses: Clauses, schema: Schema, data: pa.Schema) -> Conditions:
        """Parse them; raises ArgumentError."""
        if clauses.condition is None and clauses.delete_if is None:
            return cls()
        from pennon.expr.parse import parse_filter  # noqa: PLC0415 - saves sqlglot where a merge has no condition

        target = schema_to_arrow(described_v2(schema))
        sides = pa.schema([(_SOURCE, pa.struct(list(data))), (_TARGET, pa.struct(list(target)))])
        return cls(
            None if clauses.condition is None else parse_filter(clauses.condition, sides),
            None if clauses.delete_if is None else parse_filter(clauses.delete_if, target),
        )

    def columns(self, side: str, every: Sequence[str]) -> list[str]:
        """Return the columns of a side that the condition of updates names."""
        paths = () if self.update is None else paths_of(self.update)
        mine = [path for path in paths if path[0] == side]
        if any(len(path) == 1 for path in mine):
            return list(every)
        return list(dict.fromkeys(path[1] for path in mine))

    @property
    def deleting_columns(self) -> list[str]:
        """Return the columns that the condition of deletes names."""
        paths = () if self.delete is None else paths_of(self.delete)
        return list(dict.fromkeys(path[0] for path in paths))


def plan_among(snapshot: Snapshot, source: Source, clauses: Clauses) -> Predicate | None:
    """Return the condition that few rows pass, and all those that the data matches; None if there is none.

    With it statistics and indices of the key rule rows out, and columns that conditions name are read of few.
    """
    fields = {each.name: field_to_arrow(each).type for each in snapshot.manifest.schema.fields}
    rows = sum(live_row_counts(snapshot))
    if clauses.deletes or len(source.keys) * _FEW > rows:
        return None
    parts = []
    for name, values in zip(source.on, source.keys.values, strict=True):
        if fields[name] != values.type or not _has_one_equality(values.type):
            return None
        parts.append(is_among(Column((name,), values.type), values))
    both = reduce(lambda one, other: Call("AND", (one, other), pa.bool_()), parts)
    return SqlPredicate("the key is one of the data's", both)


def _has_one_equality(kind: pa.DataType) -> bool:
    """Return whether values are equal in conditions just where they are in keys: not so for -0.0 and NaN."""
    is_text = t.is_string(kind) or t.is_large_string(kind)
    is_bytes = t.is_binary(kind) or t.is_large_binary(kind)
    return bool(
        is_text or is_bytes or t.is_integer(kind) or t.is_date(kind) or t.is_timestamp(kind)
    )


@dataclass(frozen=True, slots=True, eq=False)
class FragmentMatches:
    """The changes that a merge makes to a fragment.

    ``updated`` rows take the values of the rows ``source`` of the data.  ``removal`` takes those away,
    and ``deleted`` others; None where updated rows stay in their places, or are the only ones that go.
    """

    updated: Rows
    source: Int64Array
    deleted: int
    removal: Removal | None


@dataclass(frozen=True, slots=True, eq=False)
class GroupMatches:
    """The changes that a merge makes to a group of fragments; ``keys`` are those that occur there."""

    fragments: tuple[FragmentMatches, ...]
    keys: Int64Array


@dataclass(frozen=True, slots=True)
class MatchTask:
    """The rows to match, fragments in groups; it pickles.

    ``in_place``: updated rows will stay where they are, so nothing is taken away.  ``among``: what is true for all
    rows that match and few others; None where all rows have to be read.
    """

    snapshot: Snapshot
    source: Source
    clauses: Clauses
    conditions: Conditions
    groups: tuple[range, ...]
    in_place: bool = False
    among: Predicate | None = None

    @property
    def count(self) -> int:
        """Return how many groups there are."""
        return len(self.groups)

    @property
    def only_updates(self) -> bool:
        """Return whether all rows that go are written anew: deletion files are written beside these, then."""
        return self.clauses.matched is Matched.UPDATE and not self.clauses.deletes

    def run(self, number: int) -> GroupMatches:
        """Match the rows of a group of fragments, and write their deletion files, unless there are only updates.

        Raises MatchError if rows match that must not, or one row matches several of the data.
        """
        fragments = [self.snapshot.manifest.fragments[n] for n in self.groups[number]]
        inputs = self._inputs()
        decided = [self._decide(rows) for rows in self._read(inputs, fragments)]
        is_there = np.zeros(len(self.source.keys), np.bool_)
        for each in decided:
            is_there[each.keys] = True
        return GroupMatches(tuple(self._found(fragments, decided)), np.flatnonzero(is_there))

    # --- reading ----------------------------------------------------------------------------------

    def _inputs(self) -> Projection:
        schema = described_v2(self.snapshot.manifest.schema)
        names = (
            *self.source.on,
            *self.conditions.columns(_TARGET, schema.names),
            *self.conditions.deleting_columns,
        )
        paths = [quoted(name) for name in dict.fromkeys(names)]
        return plan_take_projection(schema, [*paths, MetaColumn.ROW_ADDRESS.value])

    def _slices(self, fragments: Sequence[Fragment]) -> Iterator[tuple[ScanTask, ...]]:
        """Yield the rows of fragments, no more at once than `GROUP_ROWS`."""
        tasks = plan_tasks(self.snapshot, fragments)
        if sum(task.rows for task in tasks) <= GROUP_ROWS:
            yield tuple(tasks)
            return
        for task in tasks:
            for start in range(task.start, task.end, GROUP_ROWS):
                yield (replace(task, start=start, end=min(start + GROUP_ROWS, task.end)),)

    def _read(self, inputs: Projection, fragments: Sequence[Fragment]) -> Iterator[pa.Table]:
        """Yield the rows of fragments that may match, or may be left over; no more at once than `GROUP_ROWS`."""
        if self.among is None:
            for tasks in self._slices(fragments):
                yield read_table(Scan(self.snapshot, inputs, tasks))
            return
        found = bind_search(self.snapshot, self.among)
        scan = replace(found.scan, projection=inputs)
        yield read_query(plan_query(replace(found, scan=scan, schema=inputs.arrow), fragments))

    # --- deciding ---------------------------------------------------------------------------------

    def _decide(self, rows: pa.Table) -> _Decided:
        """Say of each row of a table which row of the data it takes its values from, if it stays."""
        numbers = self.source.keys.find([rows.column(name) for name in self.source.on])
        source = np.full(len(numbers), ABSENT, np.int64)
        goes = np.zeros(len(numbers), np.bool_)
        if self.clauses.matched is not Matched.KEEP:
            places, sources = self._pairs(rows, numbers)
            if self.clauses.matched is Matched.UPDATE:
                source[places] = sources
            goes[places] = True
        if self.clauses.deletes:
            goes[self._left_over(rows, np.flatnonzero(numbers == ABSENT))] = True
        addresses = rows.column(MetaColumn.ROW_ADDRESS.value).to_numpy().astype(np.int64)
        return _Decided(addresses[goes], source[goes], numbers[numbers != ABSENT])

    def _pairs(self, rows: pa.Table, numbers: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the rows that match, each with its row of the data."""
        places, sources = self.source.keys.pairs(numbers)
        if self.clauses.matched is Matched.FAIL and len(sources):
            key = self.source.describe_key(int(sources[0]))
            message = f"a row of the table matches the data, which must not be: {key}"
            raise MatchError(message)
        if self.conditions.update is not None:
            passed = self._passing(rows, places, sources)
            places, sources = places[passed], sources[passed]
        twice = np.flatnonzero(places[1:] == places[:-1])
        if len(twice):
            key = self.source.describe_key(int(sources[twice[0]]))
            message = (
                f"this merge is ambiguous: several rows of the data match one of the table ({key}); "
                "at most one may"
            )
            raise MatchError(message)
        return places, sources

    def _passing(self, rows: pa.Table, places: Int64Array, sources: Int64Array) -> Int64Array:
        """Return the numbers of the pairs for which the condition of updates is true."""
        condition = self.conditions.update
        if condition is None:
            return np.arange(len(places))
        passed = [_NONE]
        for start in range(0, len(places), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            sides = self._sides(rows, places[part], sources[part])
            passed.append(true_rows(passing(condition, sides)) + start)
        return np.concatenate(passed)

    def _sides(self, rows: pa.Table, places: Int64Array, sources: Int64Array) -> pa.RecordBatch:
        """Return pairs of rows as the condition of updates sees them: a struct for each side."""
        given = self.conditions.columns(_SOURCE, self.source.table.column_names)
        names = self.conditions.columns(_TARGET, self.source.schema.names)
        sides = {}
        if given:
            sides[_SOURCE] = _struct(self.source.take(sources, given))
        if names:
            sides[_TARGET] = _struct(one_batch(take_rows(rows.select(names), places)))
        if not sides:
            return empty_batch(pa.schema([]), len(places))
        return pa.RecordBatch.from_pydict(sides)

    def _left_over(self, rows: pa.Table, places: Int64Array) -> Int64Array:
        """Return which of the rows without a match go."""
        condition = self.conditions.delete
        if condition is None:
            return places
        passed = [_NONE]
        for start in range(0, len(places), ROWS_AT_ONCE):
            part = places[start : start + ROWS_AT_ONCE]
            batch = one_batch(take_rows(rows, part))
            passed.append(part[true_rows(passing(condition, batch))])
        return np.concatenate(passed)

    # --- what comes of it -------------------------------------------------------------------------

    def _found(
        self, fragments: Sequence[Fragment], decided: Sequence[_Decided]
    ) -> Iterator[FragmentMatches]:
        addresses = np.concatenate([_NONE, *(each.addresses for each in decided)])
        sources = np.concatenate([_NONE, *(each.source for each in decided)])
        owners = addresses >> 32
        rows, of_data = [], []
        for fragment in fragments:
            mine = owners == fragment.id
            if mine.any():
                rows.append(Rows(fragment, addresses[mine] & 0xFFFFFFFF))
                of_data.append(sources[mine])
        writes = not self.in_place and not self.only_updates
        removals = remove_each(self.snapshot, rows) if writes else repeat(None)
        for each, source, removal in zip(rows, of_data, removals, strict=False):
            is_updated = source != ABSENT
            updated = Rows(each.fragment, each.offsets[is_updated])
            yield FragmentMatches(updated, source[is_updated], len(each) - len(updated), removal)


@dataclass(frozen=True, slots=True, eq=False)
class _Decided:
    """The rows that go from their places, and the rows of the data that replace them, if any.

    ``keys``: those that occur, some more than once.
    """

    addresses: Int64Array
    source: Int64Array
    keys: Int64Array


_NONE: npt.NDArray[np.int64] = np.empty(0, np.int64)


def _struct(batch: pa.RecordBatch) -> pa.StructArray:
    return pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
