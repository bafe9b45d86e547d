"""Changes that another database, or a change feed, tells, applied to a table: SCD type 1 and 2.

Type 1 keeps the last state of each key.  Type 2 keeps all states, each with the time when it began and ended::

    told                          type 1        type 2
    1  a = x                      a = y         a = x   from 1 to 2
    2  a = y                                    a = y   from 2
    3  b deleted                                b = …   ends at 3

Events of one key count in the order of a sequence, however they come within a batch.  One that is older than what the
table has of its key is passed over.  Each batch is one merge: one commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as sf

from pennon.errors import ArgumentError
from pennon.ops.rows.change_rows import Change
from pennon.scan.changes.columns import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    ChangeType,
)
from pennon.spark.changes.merge_clauses import Merge, MergeClause, When
from pennon.spark.names import quoted
from pennon.spark.source.conditions import Condition, as_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pennon.scan.snapshot import Snapshot

START, END = "__START_AT", "__END_AT"
"""Of a row of type 2: the sequence of the event that made it, and of the one that ended it."""
_SEQUENCE: Final = "__pennon_sequence"
_DELETES: Final = "__pennon_deletes"
_RANK: Final = "__pennon_rank"
_CLOSES: Final = "__pennon_closes"


@dataclass(frozen=True, slots=True)
class Events:
    """The events of a source: rows with their keys and values, when each happened, and which of them delete."""

    rows: DataFrame
    keys: tuple[str, ...]
    values: tuple[str, ...]

    @classmethod
    def of(
        cls,
        source: DataFrame,
        keys: Sequence[str],
        sequence_by: Condition | None,
        deletes: Condition | None,
        left_out: Sequence[str],
    ) -> Events:
        """Return the events of a DataFrame; those of a change feed say themselves when they happened, and which delete.

        Raises ArgumentError if a key is not there, or no sequence is said.
        """
        missing = [name for name in keys if name not in source.columns]
        if missing or not keys:
            named = f"no column {missing[0]!r}; it has" if missing else "no keys; the columns are"
            message = f"the source has {named} {', '.join(source.columns)}"
            raise ArgumentError(message)
        rows, is_feed = source, CHANGE_TYPE in source.columns
        if is_feed:
            rows = rows.where(sf.col(CHANGE_TYPE) != ChangeType.BEFORE_UPDATE.value)
            left_out = [*left_out, CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP]
            deletes = deletes or sf.col(CHANGE_TYPE) == ChangeType.DELETE.value
            sequence_by = sequence_by or COMMIT_VERSION
        if sequence_by is None:
            message = "sequenceBy says in which order the events of one key happened, and is needed"
            raise ArgumentError(message)
        never = sf.expr("false")
        is_delete = never if deletes is None else sf.coalesce(as_column(deletes), never)
        rows = rows.withColumn(_SEQUENCE, as_column(sequence_by)).withColumn(_DELETES, is_delete)
        values = [name for name in source.columns if name not in (*keys, *left_out)]
        return cls(rows, tuple(keys), tuple(values))

    def last(self) -> DataFrame:
        """Return the last event of each key; of one moment, one that does not delete."""
        by_key = Window.partitionBy(*self._keys()).orderBy(
            sf.col(_SEQUENCE).desc(), sf.col(_DELETES).asc()
        )
        ranked = self.rows.withColumn(_RANK, sf.row_number().over(by_key))
        return ranked.where(sf.col(_RANK) == 1).drop(_RANK)

    def states(self) -> DataFrame:
        """Return the state that each event begins, with the sequence at which the next one of its key ends it.

        A deletion begins none, but ends the one before.  Of several events of one moment the last one counts.
        """
        at_once = Window.partitionBy(*self._keys(), sf.col(_SEQUENCE)).orderBy(
            sf.col(_DELETES).asc()
        )
        rows = self.rows.withColumn(_RANK, sf.row_number().over(at_once))
        rows = rows.where(sf.col(_RANK) == 1).drop(_RANK)
        by_key = Window.partitionBy(*self._keys()).orderBy(sf.col(_SEQUENCE))
        return rows.withColumn(END, sf.lead(_SEQUENCE).over(by_key))

    def _keys(self) -> list[Column]:
        return [sf.col(quoted(name)) for name in self.keys]


def same_keys(keys: Sequence[str], left: str, right: str) -> Column:
    """Return the condition that two sides have the same keys; NULL is equal to NULL."""
    pairs = [
        sf.col(f"{left}.{quoted(name)}").eqNullSafe(sf.col(f"{right}.{quoted(name)}"))
        for name in keys
    ]
    return reduce(and_, pairs)


def _changes_of_type_2(events: Events, table: DataFrame) -> DataFrame:
    """Return the rows of the merge that brings a table of type 2 up to date.

    Of each key that has an event: a row that ends its open state, and a row for each state that begins.  The first has
    the key, the others have none to match by.  Events that are not newer than the open state are left out.
    """
    is_open = table.where(sf.col(END).isNull())
    began = is_open.select(
        *(sf.col(quoted(name)) for name in events.keys), sf.col(START).alias(_RANK)
    ).alias("o")
    told = Events(events.rows.alias("e"), events.keys, events.values)
    joined = told.rows.join(began, same_keys(events.keys, "e", "o"), "left")
    newer = joined.where(sf.col(f"o.{_RANK}").isNull() | (sf.col(_SEQUENCE) > sf.col(f"o.{_RANK}")))
    states = Events(newer.select("e.*"), events.keys, events.values).states()
    keys = [sf.col(quoted(name)) for name in events.keys]
    values = [sf.col(quoted(name)) for name in events.values]
    begins = states.where(~sf.col(_DELETES)).select(
        *keys, *values, sf.col(_SEQUENCE).alias(START), sf.col(END), sf.lit(0).alias(_CLOSES)
    )
    ends = states.groupBy(*keys).agg(sf.min(_SEQUENCE).alias(END))
    ends = ends.select(
        *keys,
        *(sf.lit(None).cast(begins.schema[name].dataType).alias(name) for name in events.values),
        sf.lit(None).cast(begins.schema[START].dataType).alias(START),
        sf.col(END),
        sf.lit(1).alias(_CLOSES),
    )
    return begins.unionByName(ends)


def merge_of_type_1(snapshot: Snapshot, events: Events, newer_than: str | None) -> Merge:
    """Return the merge that keeps the last state of each key.

    ``newer_than``: the column of the table that has the sequence of each row.
    """
    _check_columns(snapshot, [*events.keys, *events.values])
    deletes = sf.col(f"s.{_DELETES}")
    is_newer = sf.expr("true")
    if newer_than is not None:
        known = sf.col(f"t.{quoted(newer_than)}")
        is_newer = known.isNull() | (sf.col(f"s.{_SEQUENCE}") > known)
    values = {name: sf.col(f"s.{quoted(name)}") for name in events.values}
    keys = {name: sf.col(f"s.{quoted(name)}") for name in events.keys}
    clauses = [
        MergeClause(When.MATCHED, Change.DELETE, deletes & is_newer, {}),
        MergeClause(When.MATCHED, Change.UPDATE, is_newer, values),
        MergeClause(When.NOT_MATCHED, Change.INSERT, ~deletes, {**keys, **values}),
    ]
    if not values:
        del clauses[1]
    return Merge(
        events.last().alias("s"), same_keys(events.keys, "t", "s"), "t", clauses=tuple(clauses)
    )


def merge_of_type_2(snapshot: Snapshot, events: Events, table: DataFrame) -> Merge:
    """Return the merge that keeps all states of each key; ``table`` has the rows of the snapshot."""
    _check_columns(snapshot, [*events.keys, *events.values, START, END])
    changes = _changes_of_type_2(events, table)
    is_open = same_keys(events.keys, "t", "s") & sf.col(f"t.{END}").isNull()
    named = [*events.keys, *events.values, START, END]
    clauses = (
        MergeClause(When.MATCHED, Change.UPDATE, None, {END: sf.col(f"s.{END}")}),
        MergeClause(
            When.NOT_MATCHED,
            Change.INSERT,
            sf.col(f"s.{_CLOSES}") == 0,
            {name: sf.col(f"s.{quoted(name)}") for name in named},
        ),
    )
    closes = sf.col(f"s.{_CLOSES}") == 1
    return Merge(changes.alias("s"), is_open & closes, "t", clauses=clauses)


def _check_columns(snapshot: Snapshot, names: Sequence[str]) -> None:
    """Raise ArgumentError for a column that the table does not have."""
    known = snapshot.manifest.schema.names
    missing = [name for name in names if name not in known]
    if missing:
        message = (
            f"the table has no column {missing[0]!r}; it has {', '.join(known)}; exceptColumns leaves columns of the "
            "source out"
        )
        raise ArgumentError(message)
