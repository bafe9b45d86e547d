"""`LanceTable`: Delta's methods over a Lance table, each change one version, with the rows of Spark's SQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pennon
from pennon.errors import (
    ArgumentError,
    MatchError,
    SchemaMismatchError,
)
from pennon.ops.rows.change_rows import Change
from pennon.spark import LanceTable
from pennon.spark.changes.merge_plan import Merge, MergeClause, When, plan_merge
from pennon.spark.changes.row_changes import commit_changes, rows_of_clauses, run_changes
from tests.spark.failing import DyingChangeTask
from tests.spark.small_table import ROWS, clauses, make, rows_of


def affected(result: DataFrame) -> int:
    return int(result.collect()[0].num_affected_rows)


# --- delete and update ------------------------------------------------------------------------------


def test_delete_by_text_by_column_and_of_all(table: LanceTable, uri: str) -> None:
    assert affected(table.delete("key = 'a'")) == 1
    assert rows_of(uri) == ROWS[1:]
    assert affected(table.delete((sf.col("key") == sf.lit("b")) | (sf.col("value") > 3))) == 2
    assert rows_of(uri) == [("c", 3)]
    assert affected(table.delete("upper(key) = 'X'")) == 0
    assert affected(table.delete()) == 1
    assert rows_of(uri) == []
    assert pennon.dataset(uri).version == 5


def test_delete_by_condition_runs_without_shuffle(
    spark: SparkSession, table: LanceTable, uri: str
) -> None:
    context, tracker = spark.sparkContext, spark.sparkContext.statusTracker()
    context.setLocalProperty("spark.jobGroup.id", uri)
    found = table.delete("value % 2 = 0")
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    assert affected(found) == 2
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(uri)]
    assert [len(job.stageIds) for job in jobs if job] == [1]
    assert rows_of(uri) == [("a", 1), ("c", 3)]


@pytest.mark.parametrize("broadcasts", ["-1", "10MB"])
def test_delete_by_subquery_with_shuffle_or_broadcast_join(
    spark: SparkSession, table: LanceTable, uri: str, broadcasts: str
) -> None:
    pairs = [(each, each) for each in range(64)]
    spark.createDataFrame(pairs, "v bigint, w bigint").createOrReplaceTempView("going")
    setting = "spark.sql.autoBroadcastJoinThreshold"
    before = spark.conf.get(setting)
    try:
        spark.conf.set(setting, broadcasts)
        found = table.delete("value IN (SELECT v FROM going WHERE w % 4 <> 3)")
    finally:
        spark.conf.set(setting, str(before))
    assert affected(found) == 3
    assert rows_of(uri) == [("c", 3)]
    assert pennon.dataset(uri).version == 2


def test_a_fragment_without_rows_leaves_the_table(table: LanceTable, uri: str) -> None:
    table.delete(sf.col("key") < "c")
    (fragment,) = pennon.dataset(uri).get_fragments()
    assert (fragment.fragment_id, fragment.count_rows()) == (1, 2)


def test_update_by_text_and_by_column(table: LanceTable, uri: str) -> None:
    assert affected(table.update("key = 'a' or key = 'b'", {"value": "value * 10"})) == 2
    assert rows_of(uri) == [("a", 10), ("b", 20), ("c", 3), ("d", 4)]
    table.alias("t").update(sf.expr("t.key > 'c'"), {"t.value": sf.lit(0), "key": sf.upper("key")})
    assert rows_of(uri) == [("D", 0), ("a", 10), ("b", 20), ("c", 3)]
    assert affected(table.update(set={"value": "NULL"})) == 4
    assert {value for _, value in rows_of(uri)} == {None}


def test_an_update_of_a_field_keeps_the_rest_of_the_struct(spark: SparkSession, uri: str) -> None:
    points = [{"x": 1, "y": 2}, {"x": 3, "y": 4}]
    pennon.write_dataset(pa.table({"id": [0, 1], "p": points}), uri)
    LanceTable.forPath(spark, uri).update("id = 1", {"p.y": "p.x + 10"})
    assert rows_of(uri) == [(0, points[0]), (1, {"x": 3, "y": 13})]


@pytest.mark.parametrize(
    ("condition", "values", "error", "words"),
    [
        ({"value": "1"}, None, ValueError, "cannot be None"),
        (None, 1, TypeError, "must be a dict"),
        (1, {}, TypeError, "must be a Spark SQL Column or a string"),
        (None, {"value": 1}, TypeError, "Values of dict in .* must contain only"),
        (None, {1: ""}, TypeError, "Keys of dict in .* must contain only"),
        (None, {"nope": "1"}, ArgumentError, "no column 'nope'; it has key, value"),
        (None, {"value": "'text'"}, SchemaMismatchError, "'value' is bigint .* get string"),
        ("nope = 1", {"value": "1"}, AnalysisException, "nope"),
    ],
)
def test_update_with_invalid_arguments_is_refused(
    table: LanceTable, condition: Any, values: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        table.update(condition, values)
    assert pennon.dataset(table.uri).version == 1


def test_update_with_overflowing_number_commits_no_version(spark: SparkSession, uri: str) -> None:
    pennon.write_dataset(pa.table({"n": pa.array([1], pa.int32())}), uri)
    with pytest.raises(PySparkException, match="'n' cannot become int32"):
        LanceTable.forPath(spark, uri).update(set={"n": "n + 3000000000"})
    assert pennon.dataset(uri).version == 1


# --- merge ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [str, sf.expr], ids=["text", "column"])
def test_a_merge_of_all_clauses(
    table: LanceTable, source: DataFrame, uri: str, kind: Callable[[str], Any]
) -> None:
    (counts,) = clauses(table.merge(source, kind("key = k"))).execute().collect()
    assert counts.asDict() == {
        "num_affected_rows": 5,
        "num_updated_rows": 2,
        "num_deleted_rows": 2,
        "num_inserted_rows": 1,
    }
    assert rows_of(uri) == [("a", -1), ("c", 6), ("e", -5)]
    assert pennon.dataset(uri).version == 2


@pytest.mark.parametrize(
    ("clauses", "rows"),
    [
        (lambda m: m.whenMatchedUpdate("key = 'a'", {"value": "5"}).whenMatchedUpdate(set={"value": "0"}),
         [("a", 5), ("b", 0), ("c", 3), ("d", 4)]),
        (lambda m: m.whenMatchedDelete("key = 'a'").whenMatchedUpdate(set={"value": "6"}),
         [("b", 6), ("c", 3), ("d", 4)]),
        (lambda m: m.whenNotMatchedBySourceDelete(), [("a", 1), ("b", 2)]),
        (lambda m: m.whenNotMatchedInsert(values={"key": "upper(k)"}),
         [*ROWS, ("E", None), ("F", None)]),
    ],
    ids=["two updates", "delete before update", "by source", "insert"],
)  # fmt: skip
def test_merge_applies_the_first_matching_clause(
    table: LanceTable,
    source: DataFrame,
    uri: str,
    clauses: Callable[[Any], Any],
    rows: list[Any],
) -> None:
    clauses(table.merge(source, "key = k")).execute()
    assert rows_of(uri) == sorted(rows, key=repr)


def test_an_upsert_with_aliases_takes_all_columns(
    table: LanceTable, source: DataFrame, uri: str
) -> None:
    news = source.selectExpr("cast(v as int) AS value", "k AS key").alias("s")
    merge = table.alias("t").merge(news, "t.key = s.key")
    merge.whenMatchedUpdateAll("s.value < 0").whenNotMatchedInsertAll().execute()
    assert rows_of(uri) == [("a", -1), ("b", 2), ("c", 3), ("d", 4), ("e", -5), ("f", -6)]


def test_merge_with_several_source_rows_for_one_row_is_refused(
    table: LanceTable, source: DataFrame, uri: str
) -> None:
    twice = source.union(source)
    with pytest.raises(MatchError, match="several rows of the source match one row"):
        table.merge(twice, "key = k").whenMatchedUpdate(set={"value": "v"}).execute()
    assert pennon.dataset(uri).version == 1
    (counts,) = table.merge(twice, "key = k").whenMatchedDelete().execute().collect()
    assert (counts.num_deleted_rows, rows_of(uri)) == (2, ROWS[2:])


def test_a_merge_into_an_empty_table(spark: SparkSession, source: DataFrame, uri: str) -> None:
    table = (
        LanceTable.create(spark)
        .location(uri)
        .addColumn("key", "string")
        .addColumn("value", "int")
        .execute()
    )
    merge = table.merge(source, "key = k").whenMatchedDelete()
    merge.whenNotMatchedInsert("v < 0", {"key": "k", "value": "v"}).execute()
    assert rows_of(uri) == [("a", -1), ("e", -5), ("f", -6)]


def test_merge_reads_only_the_columns_in_its_clauses(
    spark: SparkSession, source: DataFrame, uri: str
) -> None:
    wide = {"key": ["a", "b"], "value": [1, 2], "text": ["x" * 100, "y" * 100], "more": [5, 6]}
    pennon.write_dataset(pa.table(wide), uri)
    clause = MergeClause(When.MATCHED, Change.UPDATE, sf.col("value") * 2 > 2, {"value": "v"})
    merge = Merge(source, "key = k", None, (clause,))
    rows = plan_merge(pennon.dataset(uri).snapshot, merge).rows
    plan = rows._jdf.queryExecution().toString()
    assert "value" in plan
    assert not any(name in plan for name in ("text", "more"))


def test_delete_by_condition_with_thousands_of_literals(table: LanceTable, uri: str) -> None:
    numbers = [str(number) for number in range(2000)]
    assert affected(table.delete(~sf.col("key").isin(numbers) & (sf.col("value") > 2))) == 2
    assert rows_of(uri) == ROWS[:2]


def test_null_keys_never_match(spark: SparkSession, uri: str) -> None:
    rows = pa.table({"key": pa.array(["a", None]), "value": [1, 2]})
    pennon.write_dataset(rows, uri)
    news = spark.createDataFrame([(None, 8), ("a", 9)], "key string, value bigint").alias("s")
    merge = LanceTable.forPath(spark, uri).alias("t").merge(news, "t.key = s.key")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert rows_of(uri) == [("a", 9), (None, 2), (None, 8)]


def test_merge_with_schema_evolution_adds_source_columns(
    table: LanceTable, source: DataFrame, uri: str
) -> None:
    news = source.toDF("key", "extra").alias("s")
    merge = table.alias("t").merge(news, "t.key = s.key")
    evolving = merge.whenMatchedUpdate(set={"extra": "-1"}).whenNotMatchedInsertAll()
    with pytest.raises(ArgumentError, match="no column 'extra'"):
        evolving.execute()
    evolving.withSchemaEvolution().execute()
    assert rows_of(uri) == [
        ("a", 1, -1), ("b", 2, -1), ("c", 3, None), ("d", 4, None), ("e", None, -5), ("f", None, -6),
    ]  # fmt: skip
    assert pennon.dataset(uri).version == 2
    assert pennon.dataset(uri, version=1).schema.names == ["key", "value"]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_merge_with_schema_evolution_keeps_row_ids(
    spark: SparkSession, source: DataFrame, uri: str, version: str
) -> None:
    make(uri, data_storage_version=version, enable_stable_row_ids=True)
    before = {row["key"]: row["_rowid"] for row in ids_of(uri)}
    news = source.toDF("key", "extra").alias("s")
    merge = LanceTable.forPath(spark, uri).alias("t").merge(news, "t.key = s.key")
    merge = merge.whenMatchedUpdate(set={"extra": "s.extra"}).whenNotMatchedInsertAll()
    merge.whenNotMatchedBySourceDelete("t.key = 'c'").withSchemaEvolution().execute()
    after = {row["key"]: row["_rowid"] for row in ids_of(uri)}
    assert after == {key: before.get(key, after[key]) for key in "abdef"}
    assert len(set(after.values()) | set(before.values())) == 6
    assert rows_of(uri) == [
        ("a", 1, -1), ("b", 2, 0), ("d", 4, None), ("e", None, -5), ("f", None, -6),
    ]  # fmt: skip
    (fragment, *_) = pennon.dataset(uri).get_fragments()
    assert fragment.fragment_id == 1  # of the first nothing is left
    created = lance.dataset(uri).to_table(["key", "_row_created_at_version"]).to_pylist()
    assert {row["key"]: row["_row_created_at_version"] for row in created} == {
        "a": 1, "b": 1, "d": 1, "e": 2, "f": 2,
    }  # fmt: skip


def ids_of(uri: str) -> list[dict[str, Any]]:
    return list(lance.dataset(uri).to_table(["key"], with_row_id=True).to_pylist())


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda t, s: t.merge(1, "key = k"), TypeError, "must be DataFrame"),
        (lambda t, s: t.merge(s, 1), TypeError, "must be a Spark SQL Column or a string"),
        (lambda t, s: t.merge(s, "key = k").execute(), ArgumentError, "at least one WHEN clause"),
        (
            lambda t, s: t.merge(s, "key = k").whenMatchedDelete().whenMatchedDelete().execute(),
            ArgumentError,
            "only the last may have no condition",
        ),
        (lambda t, s: t.merge(s, "key = k").whenMatchedUpdate({"value": "v"}), ValueError, "cannot be None"),
        (lambda t, s: t.merge(s, "key = k").whenNotMatchedInsert("k = 'a'"), ValueError, "cannot be None"),
        (lambda t, s: t.merge(s, "key = k").whenMatchedUpdate(set={"value": 1}), TypeError, "Values of dict"),
        (
            lambda t, s: t.merge(s, "key = k").whenMatchedUpdateAll().execute(),
            SchemaMismatchError,
            "the source has no column 'key'",
        ),
    ],
)  # fmt: skip
def test_merge_with_invalid_arguments_is_refused(
    table: LanceTable,
    source: DataFrame,
    act: Callable[[Any, Any], Any],
    error: type[Exception],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        act(table, source)
    assert pennon.dataset(table.uri).version == 1


def test_merge_after_concurrent_delete_in_same_fragment(
    spark: SparkSession, table: LanceTable, source: DataFrame, uri: str
) -> None:
    merge = table.merge(source, "key = k").whenMatchedUpdate("k = 'a'", {"value": "v"})
    same = table.merge(source, "key = k").whenMatchedUpdate("k = 'b'", {"value": "v"})
    pennon.dataset(uri).delete("key = 'b'")
    merge.execute()
    assert rows_of(uri) == [("a", -1), ("c", 3), ("d", 4)]
    spark.conf.set("spark.pennon.conflictRetries", "0")
    with pytest.raises(pennon.errors.RetryableConflict):
        same.execute()
    spark.conf.unset("spark.pennon.conflictRetries")
    assert rows_of(uri) == [("a", -1), ("c", 3), ("d", 4)]
    assert same.execute().first().num_affected_rows == 0
    assert rows_of(uri) == [("a", -1), ("c", 3), ("d", 4)]


def test_merge_task_retried_after_writing_counts_once(
    spark: SparkSession, source: DataFrame, uri: str, tmp_path: Path
) -> None:
    make(uri)
    snapshot = pennon.dataset(uri).snapshot
    clauses = (
        MergeClause(When.MATCHED, Change.UPDATE, None, {"value": "v"}),
        MergeClause(When.NOT_MATCHED, Change.INSERT, None, {"key": "k", "value": "v"}),
    )
    plan = plan_merge(snapshot, Merge(source, "key = k", None, clauses))
    marker = tmp_path / "died"
    task = DyingChangeTask(snapshot, plan.task.clauses, plan.task.write, marker=str(marker))
    changed = run_changes(task, plan.rows)
    assert marker.exists()
    assert rows_of_clauses(changed, 2) == [2, 2]
    assert rows_of(uri) == ROWS
    commit_changes(task, changed, {}, planned_ns=plan.planned_ns, adds_keys=True)
    assert rows_of(uri) == [("a", -1), ("b", 0), ("c", 3), ("d", 4), ("e", -5), ("f", -6)]
    named = {file.path for fragment in changed for new in fragment.new for file in new.files}
    written = {path.name for path in Path(uri, "data").iterdir()}
    assert len(written) > len(named) + 2  # of the dead attempt: orphans
    assert named < written
