"""A merge as Spark plans it: the table's keys joined with the source, what becomes of each row, new values.

Of the table, the columns that conditions and values name are read, and the rows' addresses; what a row keeps
the task that writes it reads by address.  Spark chooses the join, spills, and splits what is skewed.  NULL
keys never match, for NULL = NULL is not true; Spark's joins take NaN for equal to NaN and -0.0 to 0.0.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from pennon.errors import ArgumentError, SchemaMismatchError
from pennon.ops.columns.add import plan_null_columns
from pennon.ops.rows.change_rows import Change, ChangeTask, Clause, plan_change
from pennon.schema.arrow import schema_to_arrow
from pennon.spark.conditions import Condition, as_column, columns_named
from pennon.spark.names import meanings
from pennon.spark.row_changes import CLAUSE, analysed, choose_values, quoted
from pennon.spark.scan_frame import ADDRESS, address_frame
from pennon.spark.types import lance_schema
from pennon.table.storage_version import storage_version

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pennon.scan.snapshot import Snapshot
    from pennon.spark.merge_keys import KeyedMerge

_SOURCE: Final = "__pennon_source"


class When(Enum):
    """Which rows a clause is for."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """One WHEN of a merge.  ``values`` None: each column that the source has takes the source's value."""

    when: When
    change: Change
    condition: Condition | None = None
    values: Mapping[str, Condition] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge: the source's rows, when they match, and what happens then."""

    source: DataFrame
    condition: Condition
    alias: str | None = None
    clauses: tuple[MergeClause, ...] = ()
    evolves: bool = False

    def check(self) -> None:
        """Raise ArgumentError for clauses of which one can never come to its turn, or none at all."""
        if not self.clauses:
            message = "a merge has at least one WHEN clause"
            raise ArgumentError(message)
        for when in When:
            mine = [each for each in self.clauses if each.when is when]
            if any(each.condition is None for each in mine[:-1]):
                message = (
                    f"of several WHEN clauses for rows that are {when.value} only the last may have no "
                    "condition"
                )
                raise ArgumentError(message)

    @property
    def join(self) -> str:
        """Return the join, the table at the left, that has all rows that a clause is for."""
        kinds = {each.when for each in self.clauses}
        if When.NOT_MATCHED_BY_SOURCE in kinds:
            return "full_outer" if When.NOT_MATCHED in kinds else "left"
        return "right" if When.NOT_MATCHED in kinds else "inner"

    @property
    def needs_others(self) -> bool:
        """Return whether a clause is for rows of the table that match nothing."""
        return any(each.when is When.NOT_MATCHED_BY_SOURCE for each in self.clauses)

    @property
    def deletes_whatever_matches(self) -> bool:
        """Return whether it does not matter how many rows of the source match a row."""
        mine = [each for each in self.clauses if each.when is When.MATCHED]
        return len(mine) == 1 and mine[0].change is Change.DELETE and mine[0].condition is None


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge changes: the rows, as `pennon.spark.row_changes` takes them, and their task."""

    task: ChangeTask
    rows: DataFrame
    planned_ns: int


def plan_merge(snapshot: Snapshot, merge: Merge, keyed: KeyedMerge | None = None) -> MergePlan:
    """Plan a merge; ``keyed`` is what the source's keys leave of the table.

    Raises ArgumentError or SchemaMismatchError for clauses that do not fit the table, and what Spark
    raises for conditions that are none.
    """
    planned_ns = time.time_ns()
    merge.check()
    bound = _Bound(snapshot, merge)
    assigned = [bound.values(each) for each in merge.clauses]
    changes = [
        Clause(each.change, tuple(values))
        for each, values in zip(merge.clauses, assigned, strict=True)
    ]
    task = plan_change(snapshot, changes, once=merge.deletes_whatever_matches)
    build = partial(_rows, snapshot, merge, assigned, keyed)
    return MergePlan(task, analysed(build, bound.columns_needed(), bound.names), planned_ns)


def _rows(
    snapshot: Snapshot,
    merge: Merge,
    assigned: Sequence[Mapping[str, Column]],
    keyed: KeyedMerge | None,
    columns: Sequence[str],
) -> DataFrame:
    """Return the rows that change, with the clause of each and its values."""
    tasks = None if keyed is None else keyed.tasks
    target = address_frame(merge.source.sparkSession, snapshot, columns, tasks)
    if merge.alias is not None:
        target = target.alias(merge.alias)
    source = (merge.source if keyed is None else keyed.source).withColumn(_SOURCE, sf.lit(1))
    joined = target.join(source, as_column(merge.condition), merge.join)
    is_old, is_given = sf.col(ADDRESS).isNotNull(), sf.col(_SOURCE).isNotNull()
    places = {
        When.MATCHED: is_old & is_given,
        When.NOT_MATCHED: ~is_old,
        When.NOT_MATCHED_BY_SOURCE: ~is_given,
    }
    clause = sf.lit(None).cast("int")
    for number, each in reversed(list(enumerate(merge.clauses))):
        applies = places[each.when]
        if each.condition is not None:
            applies &= as_column(each.condition)
        clause = sf.when(applies, sf.lit(number)).otherwise(clause)
    decided = joined.withColumn(CLAUSE, clause).where(sf.col(CLAUSE).isNotNull())
    return choose_values(decided, snapshot, assigned)


class _Bound:
    """The clauses of a merge with the columns of the table and the source."""

    def __init__(self, snapshot: Snapshot, merge: Merge) -> None:
        self.names = list(schema_to_arrow(snapshot.manifest.schema).names)
        self._merge = merge
        self._given = {name.lower(): name for name in merge.source.columns}

    def values(self, clause: MergeClause) -> dict[str, Column]:
        """Return what a clause makes of columns."""
        if clause.change is Change.DELETE:
            return {}
        if clause.values is not None:
            return assigned_columns(clause.values, self.names, self._merge.alias)
        found = {}
        for name in self.names:
            given = self._given.get(name.lower())
            if given is not None:
                found[name] = self._merge.source[quoted(given)]
            elif not self._merge.evolves:
                message = (
                    f"the source has no column {name!r}, which the table has; name the columns to set, "
                    "or merge withSchemaEvolution()"
                )
                raise SchemaMismatchError(message)
        return found

    def columns_needed(self) -> list[str]:
        """Return the columns of the table that the merge may name."""
        return columns_named(self._said(), self.names, self._merge.alias)

    def _said(self) -> Iterator[Condition]:
        yield self._merge.condition
        for clause in self._merge.clauses:
            if clause.condition is not None:
                yield clause.condition
            for name, value in (clause.values or {}).items():
                yield value
                if assigned_path(name, self.names, self._merge.alias)[1]:
                    yield name


# --- columns that are assigned --------------------------------------------------------------------


def assigned_columns(
    values: Mapping[str, Condition], names: Sequence[str], alias: str | None
) -> dict[str, Column]:
    """Return what columns become; a part of a struct makes the struct anew, with the rest as it was.

    Raises ArgumentError for a column that is not there, or gets two values.
    """
    found: dict[str, Column] = {}
    parts: set[str] = set()
    for said, value in values.items():
        name, path = assigned_path(said, names, alias)
        if name in found and not (path and name in parts):
            message = f"column {name!r} gets two values"
            raise ArgumentError(message)
        if path:
            parts.add(name)
            whole = found.get(
                name, sf.col(".".join(quoted(each) for each in (alias, name) if each))
            )
            found[name] = whole.withField(path, as_column(value))
        else:
            found[name] = as_column(value)
    return found


def assigned_path(said: str, names: Sequence[str], alias: str | None) -> tuple[str, str]:
    """Return the column that a name means, and the path inside of it (empty: the whole).

    The table's alias may stand before it.  Raises ArgumentError if there is none.
    """
    lower = {name.lower(): name for name in names}
    for top, *rest in meanings(said, alias):
        if top.lower() in lower:
            return top if top in names else lower[top.lower()], ".".join(map(quoted, rest))
    message = f"the table has no column {said!r}; it has {', '.join(names)}"
    raise ArgumentError(message)


# --- columns that the source brings ---------------------------------------------------------------


def evolved(snapshot: Snapshot, merge: Merge) -> Snapshot:
    """Return the version as it would be with the columns that the merge sets and the table lacks.

    Nothing is committed: their old rows have no file for them, so they are NULL there.
    """
    names = {name.lower() for name in schema_to_arrow(snapshot.manifest.schema).names}
    takes_all = any(each.values is None for each in merge.clauses)
    set_names = {
        parts[0].lower()
        for each in merge.clauses
        for said in each.values or {}
        for parts in meanings(said, merge.alias)
        if len(parts) == 1
    }
    new = [
        field
        for field in merge.source.schema.fields
        if field.name.lower() not in names and (takes_all or field.name.lower() in set_names)
    ]
    if not new:
        return snapshot
    schema = type(merge.source.schema)(new)
    version = storage_version(snapshot.manifest)
    plan = plan_null_columns(snapshot, lance_schema(schema, {}, version))
    return snapshot.at(replace(snapshot.manifest, schema=plan.schema))
