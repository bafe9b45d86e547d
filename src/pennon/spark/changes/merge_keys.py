"""Rows of the table that the keys of a merge's source exclude, before any of its rows is read.

::

    condition   t.id = s.id AND …              a column of each side
    source      the distinct values of s.id    a thousand at most, else the least and the greatest
    driver      statistics, indices of t.id    which rows of which fragments may match

The source is asked twice then, so it is persisted.  Where Spark has lost a part of that and computed it again, with
other keys, these would seem to match nothing: a key outside of what was asked for ends the job, and the merge
begins anew without all this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import sqlglot
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf
from pyspark.sql import types as st
from sqlglot import exp

from pennon.expr.tree import Call, Column, Expression, Literal, is_among
from pennon.index.kind import Kind, LookupCost
from pennon.index.kinds import kind_of
from pennon.scan.plan.known_indices import known_indices
from pennon.scan.plan.pruning import read_bounds_of
from pennon.scan.plan.query import ScanOptions, bind_condition, bind_query, choose_rows
from pennon.scan.predicate import SqlPredicate
from pennon.scan.read.tasks import ScanTask, plan_tasks
from pennon.schema.arrow import field_to_arrow
from pennon.spark.names import quoted
from pennon.spark.source.conditions import Condition
from pennon.spark.types import INTEGERS, is_plain_text

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from pennon.scan.snapshot import Snapshot
    from pennon.schema.field import Field

R = TypeVar("R")

MOST_KEYS: Final = 1000
"""So many keys are asked for one by one; of more, the range."""
_OTHER_KEYS: Final = "pennon: the source of a merge has other keys than it had before"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A column of the table, and the SQL of what the source has that it must equal."""

    column: str
    source: str


@dataclass(frozen=True, slots=True)
class SourceKeys:
    """The keys of a source: all of them, or the least and the greatest.  None of them is NULL."""

    values: tuple[Any, ...]
    is_range: bool

    def condition(self, column: Column) -> Expression:
        """Return what is true for rows of a table that may match."""
        if not self.is_range:
            return is_among(column, pa.array(self.values, column.type))
        low, high = (Literal(pa.scalar(each, column.type)) for each in self.values)
        above, below = (
            Call(sign, (column, end), pa.bool_()) for sign, end in ((">=", low), ("<=", high))
        )
        return Call("AND", (above, below), pa.bool_())

    def holds(self, key: SparkColumn) -> SparkColumn:
        """Return whether a key of the source is one of these, or NULL."""
        if not self.values:
            return key.isNull()
        if self.is_range:
            low, high = map(_literal, self.values)
            return key.isNull() | key.between(low, high)
        if isinstance(self.values[0], date):
            key = key.cast("string")
        return key.isNull() | key.isin(*map(_text_of_date, self.values))


def _literal(value: Any) -> SparkColumn:
    """Return a key as Spark's literal; py4j's of a date before the year 1000 is none."""
    text = _text_of_date(value)
    return sf.lit(text).cast("date") if isinstance(value, date) else sf.lit(value)


def _text_of_date(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


@dataclass(frozen=True, slots=True)
class KeyedMerge:
    """The rows of a table that a source can match, and the source, which ends the job with another key."""

    tasks: Sequence[ScanTask]
    source: DataFrame


def with_known_keys(
    snapshot: Snapshot,
    source: DataFrame,
    condition: Condition,
    alias: str | None,
    merge: Callable[[KeyedMerge | None], R],
) -> R:
    """Return what ``merge`` does with what the source's keys leave of the table; None: with all of it.

    They are asked for where something may rule rows out by them: statistics or an index of the column.
    """
    pair = _key_pair(snapshot, source, condition, alias)
    if pair is None:
        return merge(None)
    was_stored = source.storageLevel.useMemory or source.storageLevel.useDisk
    if not was_stored:
        source.persist()
    try:
        keyed = _keyed(snapshot, source, pair)
        try:
            return merge(keyed)
        except Exception as error:  # py4j's in classic sessions, PySpark's own over Connect
            if _OTHER_KEYS not in str(error):
                raise
            return merge(None)
    finally:
        if not was_stored:
            source.unpersist()


def _keyed(snapshot: Snapshot, source: DataFrame, pair: KeyPair) -> KeyedMerge | None:
    key = sf.expr(pair.source)
    try:
        keys = _keys_of(source.select(key.alias("key")).where("key IS NOT NULL"))
        known = keys.holds(key)
    except Exception:  # noqa: BLE001 - nothing needs this step: a date that Python has not, py4j's of a literal, ...
        return None
    # Spark would ask this of the table's keys too, as they equal the source's; what is random it does not move.
    words = sf.concat(sf.lit(_OTHER_KEYS), sf.lit(" "), sf.rand().cast("string"))
    refused = sf.raise_error(words).cast("boolean")
    checked = source.where(sf.when(known, sf.lit(True)).otherwise(refused))  # noqa: FBT003 - a literal
    return KeyedMerge(matching_tasks(snapshot, pair.column, keys), checked)


def _keys_of(keys: DataFrame) -> SourceKeys:
    few = keys.distinct().limit(MOST_KEYS + 1).collect()
    if len(few) <= MOST_KEYS:
        return SourceKeys(tuple(sorted(row.key for row in few)), is_range=False)
    ends = keys.agg(sf.min("key").alias("low"), sf.max("key").alias("high")).collect()[0]
    return SourceKeys((ends.low, ends.high), is_range=True)


def _fitting(keys: SourceKeys, kind: pa.DataType) -> SourceKeys:
    """Return the keys that a column can hold; whole numbers may be of a wider type."""
    if not pa.types.is_integer(kind):
        return keys
    most = (1 << (kind.bit_width - 1)) - 1
    if keys.is_range:
        low, high = keys.values
        ends = max(low, -most - 1), min(high, most)
        return replace(keys, values=ends) if ends[0] <= ends[1] else SourceKeys((), is_range=False)
    return replace(keys, values=tuple(key for key in keys.values if -most - 1 <= key <= most))


def matching_tasks(snapshot: Snapshot, name: str, keys: SourceKeys) -> Sequence[ScanTask]:
    """Return the rows of a table among which may be some of these keys, as far as it is known without them."""
    field = _field(snapshot, name)
    column = Column((name,), field_to_arrow(field).type)
    fitting = _fitting(keys, column.type)
    if not fitting.values:
        return ()
    condition = fitting.condition(column)
    query = bind_query(snapshot, ScanOptions(columns=(name,)))
    bound = bind_condition(snapshot, SqlPredicate(str(condition), condition), query.source)
    asks = not keys.is_range or all(
        kind.lookup_cost is LookupCost.RANGE for kind in _kinds_asked(snapshot, field)
    )
    found = choose_rows(replace(query, condition=bound, uses_indices=asks), plan_tasks(snapshot))
    if all(task.chosen is None for task in found):
        return found
    ids = {task.fragment.id for task in found}
    return [task for task in plan_tasks(snapshot) if task.fragment.id in ids]


# --- which columns --------------------------------------------------------------------------------


def _key_pair(
    snapshot: Snapshot, source: DataFrame, condition: Condition, alias: str | None
) -> KeyPair | None:
    """Return columns that must be equal, if the table's one may exclude rows; None without any."""
    if len(snapshot.manifest.fragments) < 2 or not isinstance(condition, str):
        return None
    for pair in key_pairs(
        condition, [f.name for f in snapshot.manifest.schema.fields], source, alias
    ):
        field = _field(snapshot, pair.column)
        try:
            given = source.select(sf.expr(pair.source).alias("key")).schema[0].dataType
        except AnalysisException:
            continue
        if _is_same_kind(field, given) and knows_keys(snapshot, pair.column):
            return pair
    return None


def key_pairs(
    condition: str, names: Sequence[str], source: DataFrame, alias: str | None
) -> Iterator[KeyPair]:
    """Yield the pairs of columns that a condition, or one that is joined by AND, compares with ``=``."""
    try:
        tree = sqlglot.parse_one(condition, dialect="spark")
    except sqlglot.errors.SqlglotError:
        return
    known = {name.lower() for name in source.columns}
    for each in _joined_by_and(tree):
        if not isinstance(each, exp.EQ):
            continue
        for mine, other in ((each.this, each.expression), (each.expression, each.this)):
            if not isinstance(mine, exp.Column) or not isinstance(other, exp.Column):
                continue
            if _is_of_table(mine, names, known, alias) and _is_of_source(
                other, names, known, alias
            ):
                yield KeyPair(mine.name, _named(other))


def _joined_by_and(tree: exp.Expr) -> Iterator[exp.Expr]:
    inner = tree.unnest()
    if isinstance(inner, exp.And):
        yield from _joined_by_and(inner.this)
        yield from _joined_by_and(inner.expression)
    else:
        yield inner


def _is_of_table(
    tree: exp.Column, names: Sequence[str], given: set[str], alias: str | None
) -> bool:
    if tree.args.get("db") or tree.name not in names:
        return False
    if tree.table:
        return alias is not None and tree.table.lower() == alias.lower()
    return tree.name.lower() not in given


def _is_of_source(
    tree: exp.Column, names: Sequence[str], given: set[str], alias: str | None
) -> bool:
    if tree.args.get("db") or tree.name.lower() not in given:
        return False
    if tree.table:
        return alias is None or tree.table.lower() != alias.lower()
    return tree.name.lower() not in {name.lower() for name in names}


def _named(tree: exp.Column) -> str:
    return ".".join(quoted(each) for each in (tree.table, tree.name) if each)


def _field(snapshot: Snapshot, name: str) -> Field:
    return next(each for each in snapshot.manifest.schema.fields if each.name == name)


def _is_same_kind(field: Field, given: st.DataType) -> bool:
    """Return whether equality of the two is that of their values, to Spark and to statistics."""
    kind = field_to_arrow(field).type
    if pa.types.is_signed_integer(kind):
        return isinstance(given, INTEGERS)
    if pa.types.is_string(kind):
        return is_plain_text(given)
    return bool(pa.types.is_date32(kind)) and isinstance(given, st.DateType)


def knows_keys(snapshot: Snapshot, name: str) -> bool:
    """Return whether an index, or statistics of the first or the last fragment, know a column's values."""
    field = _field(snapshot, name)
    if _kinds_asked(snapshot, field):
        return True
    tasks = plan_tasks(snapshot)
    ends = tasks[:: max(len(tasks) - 1, 1)]
    return any(read_bounds_of(snapshot, each, {(name,): field}) for each in ends)


def _kinds_asked(snapshot: Snapshot, field: Field) -> set[Kind]:
    mine = (each for each in known_indices(snapshot) if each.field_ids == (field.id,))
    kinds = (kind_of(each) for each in mine)
    return {kind for kind in kinds if kind and kind.lookup_cost is not LookupCost.NONE}
