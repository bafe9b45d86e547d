"""Another writer commits between the plan of a change and its commit: a function that Spark calls does it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pennon
from pennon.errors import ArgumentError, IncompatibleConflict, RetryableConflict
from pennon.spark import LanceTable
from tests.spark.failing import Interloper
from tests.spark.small_table import ROWS, rows_of

Act = Callable[[LanceTable, Any, DataFrame], DataFrame]


def delete(table: LanceTable, meets: Any, _: DataFrame) -> DataFrame:
    return table.delete(meets("key") == "a")


def update(table: LanceTable, meets: Any, _: DataFrame) -> DataFrame:
    return table.update(meets("key") == "a", {"value": "-value"})


def merge(table: LanceTable, meets: Any, source: DataFrame) -> DataFrame:
    met = source.select(meets("k").alias("k"), "v")
    builder = table.merge(met, "key = k").whenMatchedUpdate("k = 'a'", {"value": "v"})
    return builder.whenNotMatchedInsert("k = 'e'", {"key": "k", "value": "v"}).execute()


AFTER: dict[Act, list[tuple[str, int]]] = {
    delete: ROWS[1:],
    update: [("a", -1), *ROWS[1:]],
    merge: [("a", -1), *ROWS[1:], ("e", -5)],
}


MEANWHILE = [
    ("delete key = 'b'", ["a", "c", "d", "e"], 3),  # another row of the same fragment: united
    ("delete key = 'a'", ["b", "c", "d", "e"], 3),  # the same row: planned anew
    ("compact", ["a", "b", "c", "d", "e"], 4),  # the fragments are gone: planned anew
    ("append x", ["a", "b", "c", "d", "e", "x"], 3),  # a key that a merge may have inserted
]


@pytest.mark.parametrize(
    ("act", "meanwhile", "left", "versions"),
    [
        pytest.param(act, *each, marks=[] if act is chosen else pytest.mark.slow)
        for each, chosen in zip(MEANWHILE, [delete, update, merge, merge], strict=True)
        for act in AFTER
    ],
)
def test_spark_changes_and_concurrent_commits_are_applied_once(
    spark: SparkSession,
    table: LanceTable,
    source: DataFrame,
    uri: str,
    tmp_path: Path,
    act: Act,
    meanwhile: str,
    left: list[str],
    versions: int,
) -> None:
    interloper = Interloper(uri, meanwhile, str(tmp_path / "calls"))
    (counts,) = act(table, sf.udf(interloper, "string"), source).collect()
    assert interloper.has_come()
    want = [row for row in AFTER[act] if row[0] in left] + [("x", 0)] * ("x" in left)
    if act is merge and "a" not in left:
        want = [row for row in want if row[0] != "a"]
    assert rows_of(uri) == sorted(want)
    assert pennon.dataset(uri).version == versions
    assert counts.num_affected_rows == len(set(AFTER[act]) ^ set(ROWS)) - (act is not delete) - (
        "a" not in left
    )


def test_conflict_is_raised_after_the_configured_retries(
    spark: SparkSession, table: LanceTable, uri: str, tmp_path: Path
) -> None:
    always = Interloper(uri, "update", str(tmp_path / "calls"), times=10)
    with pytest.raises(RetryableConflict, match=r"given up after 4 attempts"):
        table.update(sf.udf(always, "string")("key") == "a", {"value": "0"})
    assert rows_of(uri)[1:] == ROWS[1:]
    spark.conf.set("spark.pennon.conflictRetries", "never")
    with pytest.raises(ArgumentError, match=r"conflictRetries is a number"):
        table.delete()
    spark.conf.unset("spark.pennon.conflictRetries")


def test_delete_with_concurrent_overwrite_is_incompatible(
    spark: SparkSession, table: LanceTable, uri: str, tmp_path: Path
) -> None:
    interloper = Interloper(uri, "overwrite", str(tmp_path / "calls"))
    with pytest.raises(IncompatibleConflict):
        table.delete(sf.udf(interloper, "string")("key") == "a")
    assert rows_of(uri) == [("x", 0)]
