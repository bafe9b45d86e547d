"""Overwriting a part of a table from a session: new rows and deletions are written by executors.

The rows are written first, and checked on the way: the DataFrame is computed once, whatever it gives the
second time.  Where columns say which rows go, their values are read of the new files, not of the DataFrame.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from pennon.ops.rows.change_rows import Change, Clause, plan_change
from pennon.ops.rows.deletion_vectors import Removal
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.spark.changes.chosen_values import CLAUSE
from pennon.spark.changes.row_changes import analysed, run_changes
from pennon.spark.changes.rows_found import delete_found, translated
from pennon.spark.frames.scan import ADDRESS, address_frame, frame_of, reads_whole_fragments
from pennon.spark.names import find_name, quoted
from pennon.spark.run_tasks import run_on_rows
from pennon.spark.session import is_case_sensitive
from pennon.spark.source.conditions import Condition, as_column, columns_named, system_columns_named
from pennon.spark.source.options import ReadOptions, WriteOptions
from pennon.spark.source.replaced_rows import (
    commit_replaced,
    key_columns,
    plan_replacement,
    uncommitted,
)
from pennon.spark.source.row_write import (
    CheckedWrite,
    TablePlan,
    TableWrite,
    accepted,
    commit_fragments,
)
from pennon.spark.stream_query import pass_over
from pennon.spark.types import spark_schema
from pennon.table.fragment import Fragment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SATISFIES: Final = "__pennon_satisfies"
_KEY: Final = "__pennon_key"


def overwrite_where(df: DataFrame, options: WriteOptions, condition: Condition) -> int:
    """Replace the rows for which a condition is true by those of a DataFrame; return the version made.

    Raises ArgumentError if the condition is not true for each row of the DataFrame, before anything is
    committed.
    """
    plan = plan_replacement(options, df.schema)
    if plan.known_version is not None:
        pass_over(df)
        return plan.known_version
    write = CheckedWrite(TableWrite(plan.write.task))
    written = run_on_rows(_tested(df, plan, condition), write)
    fragments = accepted(written, str(condition))
    if plan.base is None:
        return commit_fragments(plan, fragments)

    def find(snapshot: Snapshot) -> Sequence[Removal]:
        return _delete_where(df.sparkSession, snapshot, condition)

    system = system_columns_named([condition], plan.base.schema.names, None)
    return commit_replaced(plan, fragments, find, str(condition), system)


def _tested(df: DataFrame, plan: TablePlan, condition: Condition) -> DataFrame:
    """Return the rows, and in a last column whether the condition is true.

    A column of the table that the DataFrame lacks is NULL.  New rows have no row id and no address yet, so a
    condition that names these says only which rows go.
    """
    rows = df
    table = () if plan.base is None else spark_schema(schema_to_arrow(plan.base.schema)).fields
    cases = is_case_sensitive(df.sparkSession)
    names = [field.name for field in table]
    named = columns_named([condition], names, None)
    for field in table:
        is_given = find_name(field.name, df.columns, case_sensitive=cases) is not None
        if field.name in named and not is_given:
            rows = rows.withColumn(field.name, sf.lit(None).cast(field.dataType))
    passes = sf.lit(True)  # noqa: FBT003 - a literal
    if not system_columns_named([condition], names, None):
        passes = sf.coalesce(as_column(condition), sf.lit(False))  # noqa: FBT003 - a literal
    return rows.select(*(sf.col(quoted(name)) for name in df.columns), passes.alias(_SATISFIES))


def _delete_where(
    spark: SparkSession, snapshot: Snapshot, condition: Condition
) -> Sequence[Removal]:
    """Delete the rows of a version for which a condition is true; nothing is committed."""
    predicate = translated(snapshot, condition, None)
    if predicate is not None:
        return delete_found(spark, snapshot, predicate)[1]
    names = schema_to_arrow(snapshot.manifest.schema).names

    def build(columns: Sequence[str]) -> DataFrame:
        return address_frame(spark, snapshot, columns).where(as_column(condition))

    system = system_columns_named([condition], names, None)
    few = [*columns_named([condition], names, None), *system]
    found = analysed(build, few, [*names, *system])
    return _deleted(snapshot, found, is_placed=reads_whole_fragments(spark, snapshot))


def overwrite_keys(df: DataFrame, options: WriteOptions) -> int:
    """Replace the rows that have the values that rows of a DataFrame have in some columns.

    Those are ``options.overwrite_by``; NULL counts as a value.  Returns the version made.
    """
    plan = plan_replacement(options, df.schema)
    if plan.known_version is not None:
        pass_over(df)
        return plan.known_version
    names = key_columns(plan, options)
    written = run_on_rows(df, TableWrite(plan.write.task))
    fragments = [each for several in written for each in several]
    if plan.base is None:
        return commit_fragments(plan, fragments)

    def find(snapshot: Snapshot) -> Sequence[Removal]:
        return _delete_keys(df.sparkSession, plan, snapshot, fragments, names) if fragments else ()

    return commit_replaced(plan, fragments, find, f"({', '.join(names)}) as in the new rows")


def _delete_keys(
    spark: SparkSession,
    plan: TablePlan,
    snapshot: Snapshot,
    fragments: Sequence[Fragment],
    names: Sequence[str],
) -> Sequence[Removal]:
    """Delete the rows of a version whose keys are among those of new rows; nothing is committed."""
    new = frame_of(
        spark, uncommitted(plan, fragments), ReadOptions(snapshot.store.uri, columns=tuple(names))
    )
    keys = new.distinct().toDF(*(f"{_KEY}{at}" for at in range(len(names))))
    target = address_frame(spark, snapshot, names)
    same = [target[quoted(name)].eqNullSafe(keys[f"{_KEY}{at}"]) for at, name in enumerate(names)]
    return _deleted(snapshot, target.join(keys, reduce(and_, same), "left_semi"))


def _deleted(snapshot: Snapshot, rows: DataFrame, *, is_placed: bool = False) -> Sequence[Removal]:
    """Delete the rows whose addresses a DataFrame has; nothing is committed.  See `run_changes`."""
    task = plan_change(snapshot, [Clause(Change.DELETE)])
    going = rows.select(sf.col(ADDRESS), sf.lit(0).alias(CLAUSE))
    changed = run_changes(task, going, is_placed=is_placed)
    return [removal for each in changed for removal in each.removals]
