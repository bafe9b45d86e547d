"""The rows that a merge changes: the table's keys joined with the source, the clause of each row, its values.

Of the table, the columns that conditions and values name are read, and the rows' addresses; what a row keeps
the task that writes it reads by address.  Spark chooses the join, spills, and splits what is skewed.  NULL
keys never match, for NULL = NULL is not true; Spark's joins take NaN for equal to NaN and -0.0 to 0.0.

A name means a column of any side.  Where both sides have it, clauses for new rows mean the source, and clauses for
rows that the source does not match mean the table, as in Delta: they are looked at `MergeRows._apart`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from pennon.errors import SchemaMismatchError
from pennon.ops.rows.change_rows import Change
from pennon.schema.arrow import schema_to_arrow
from pennon.spark.changes.assignments import TableNames, Values, assigned_columns, assigned_values
from pennon.spark.changes.chosen_values import CLAUSE, choose_values
from pennon.spark.changes.merge_clauses import Merge, MergeClause, When
from pennon.spark.frames.scan import ADDRESS, address_frame
from pennon.spark.names import find_name, quoted
from pennon.spark.session import is_case_sensitive
from pennon.spark.source.conditions import as_column, columns_named
from pennon.spark.source.table_fit import FitRule
from pennon.spark.types import spark_schema
from pennon.table.storage_version import storage_version

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pennon.scan.snapshot import Snapshot
    from pennon.spark.changes.merge_keys import KeyedMerge

_SOURCE: Final = "__pennon_source"
_PLACE: Final = "__pennon_place"
_GIVEN: Final = "__pennon_given"
_TABLE: Final = "__pennon_table"


@dataclass(frozen=True, slots=True)
class _Joined:
    """The table joined with the source, and the kind of each row."""

    rows: DataFrame
    table: DataFrame
    columns: Sequence[str]
    places: Mapping[When, Column]


class MergeRows:
    """The rows that the clauses of a merge change; see `rows`.

    ``grown`` is the version with the columns that the merge brings; rows are read of ``snapshot``.
    """

    def __init__(self, snapshot: Snapshot, merge: Merge, grown: Snapshot) -> None:
        self.grown = grown
        self._snapshot = snapshot
        self._merge = merge
        self._arrow = schema_to_arrow(grown.manifest.schema)
        self._before = schema_to_arrow(snapshot.manifest.schema).names
        spark = merge.source.sparkSession
        case_sensitive = is_case_sensitive(spark)
        before, now = (
            spark_schema(schema_to_arrow(each.manifest.schema)) for each in (snapshot, grown)
        )
        self._table = TableNames(before, now, merge.alias, case_sensitive)
        self._rule = FitRule(
            storage_version(grown.manifest), case_sensitive=case_sensitive, assigns=True
        )
        self._given = [self._values(each) for each in merge.clauses]

    def _values(self, clause: MergeClause) -> Mapping[str, Values]:
        """Return what a clause makes of columns; a column of the source by its name there."""
        if clause.values is not None:
            return assigned_values(clause.values, self._table)
        source, found = self._merge.source, {}
        for name in self._arrow.names:
            given = find_name(name, source.columns, case_sensitive=self._table.case_sensitive)
            if given is not None:
                found[name] = source[quoted(given)]
            elif not self._merge.evolves:
                message = (
                    f"the source has no column {name!r}, which the table has; name the columns to set, "
                    "or merge withSchemaEvolution()"
                )
                raise SchemaMismatchError(message)
        return found

    def names_set(self, number: int) -> Iterator[str]:
        """Yield the columns that a clause gives a value."""
        yield from self._given[number]

    def columns_needed(self) -> tuple[list[str], list[str]]:
        """Return the columns of the table that the merge seems to name, and all that it can name."""
        merge = self._merge
        named = columns_named(merge.conditions, self._before, merge.alias)
        system = merge.system_columns(self._before)
        return [*named, *system], [*self._before, *system]

    def rows(
        self, keyed: KeyedMerge | None, columns: Sequence[str], *, apart: bool = False
    ) -> DataFrame:
        """Return the rows that change, with the clause of each and its values.

        ``apart``: clauses for rows of one side see the columns of that side alone, so a name that both have is
        not ambiguous there.
        """
        merge = self._merge
        tasks = None if keyed is None else keyed.tasks
        target = address_frame(merge.source.sparkSession, self._snapshot, columns, tasks)
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
        both = _Joined(joined, target, columns, places)
        return self._apart(both) if apart else self._together(both)

    def _together(self, both: _Joined) -> DataFrame:
        clause = self._clause(both.places, tuple(When))
        values = [self._columns(number, both.table) for number in range(len(self._merge.clauses))]
        return self._chosen(both.rows.withColumn(CLAUSE, clause), values)

    def _apart(self, both: _Joined) -> DataFrame:
        """Decide on one kind of rows after another, among the columns that its clauses may mean.

        What is decided stays beside the rows; the table's columns have other names where they are not meant.
        """
        source, alias = self._merge.source, self._merge.alias
        marks = {each: f"{_PLACE}_{at}" for at, each in enumerate(When)}
        frame = both.rows.select("*", *(both.places[each].alias(marks[each]) for each in When))
        kept = [ADDRESS, *marks.values()]
        values: list[dict[str, Column]] = [{} for _ in self._merge.clauses]
        for kind, mark in marks.items():
            if kind is When.NOT_MATCHED:
                own = [source[quoted(name)] for name in source.columns]
                own += [
                    both.table[quoted(name)].alias(f"{_TABLE}_{at}")
                    for at, name in enumerate(both.columns)
                ]
                frame = frame.select(*kept, *own)
            elif kind is When.NOT_MATCHED_BY_SOURCE:
                own = [sf.col(f"{_TABLE}_{at}").alias(n) for at, n in enumerate(both.columns)]
                frame = frame.select(*kept, *own)
                frame = frame if alias is None else frame.alias(alias)
            clause = f"{CLAUSE}_{len(kept)}"
            frame = frame.withColumn(clause, self._clause({kind: sf.col(mark)}, (kind,)))
            kept.append(clause)
            table = both.table if kind is When.MATCHED else frame
            made = []
            for number, each in enumerate(self._merge.clauses):
                if each.when is kind:
                    is_its = sf.col(clause) == number
                    for at, (name, value) in enumerate(self._columns(number, table).items()):
                        made.append(sf.when(is_its, value).alias(f"{_GIVEN}_{number}_{at}"))
                        values[number][name] = sf.col(f"{_GIVEN}_{number}_{at}")
            frame = frame.select("*", *made)
            kept += [name for name in frame.columns if name.startswith(_GIVEN) and name not in kept]
        clauses = [sf.col(name) for name in kept if name.startswith(CLAUSE)]
        return self._chosen(frame.withColumn(CLAUSE, sf.coalesce(*clauses)), values)

    def _clause(self, places: Mapping[When, Column], kinds: Sequence[When]) -> Column:
        """Return the number of the first clause, of some kinds, that is for a row."""
        clause = sf.lit(None).cast("int")
        for number, each in reversed(list(enumerate(self._merge.clauses))):
            if each.when in kinds:
                applies = places[each.when]
                if each.condition is not None:
                    applies &= as_column(each.condition)
                clause = sf.when(applies, sf.lit(number)).otherwise(clause)
        return clause

    def _columns(self, number: int, table: DataFrame) -> dict[str, Column]:
        """Return the values that a clause gives columns of the table; ``table`` has the old ones."""
        is_new = self._merge.clauses[number].change is Change.INSERT

        def old(name: str) -> Column | None:
            return None if is_new or name not in self._before else table[quoted(name)]

        return assigned_columns(self._given[number], self._table, old)

    def _chosen(self, rows: DataFrame, values: Sequence[Mapping[str, Column]]) -> DataFrame:
        decided = rows.where(sf.col(CLAUSE).isNotNull())
        return choose_values(decided, self._arrow, values, self._rule)
