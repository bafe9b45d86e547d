"""`LanceTable.optimize`: rows put in order on the executors."""

from __future__ import annotations

import json
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pennon
from pennon.errors import ArgumentError, RetryableConflict, UnsupportedError
from pennon.spark import LanceTable

ROWS = 1000


@pytest.fixture
def scattered(spark: SparkSession, uri: str) -> LanceTable:
    """A table of four fragments, of whose columns none is in order, with stable row ids."""
    rows = pa.table({
        "x": pa.array([n * 37 % ROWS for n in range(ROWS)], pa.uint64()),
        "y": [n * 91 % ROWS for n in range(ROWS)],
        "time": pa.array([n * 10**9 + n for n in range(ROWS)], pa.timestamp("ns")),
        "list": [[n] for n in range(ROWS)],
    })  # fmt: skip
    pennon.write_dataset(rows, uri, max_rows_per_file=250, enable_stable_row_ids=True)
    pennon.dataset(uri).delete("x < 100")
    pennon.dataset(uri).update({"list": "NULL"}, "y = 7")
    return LanceTable.forPath(spark, uri)


def seen(uri: str) -> list[dict[str, Any]]:
    """Rows, ids and versions as pylance sees them."""
    table = lance.dataset(uri)
    table.validate()
    extra = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    rows = table.to_table(columns=["x", "y", "time", "list", *extra])
    return sorted(rows.to_pylist(), key=lambda row: row["x"])


def share_to_read(uri: str, column: str) -> float:
    """The share of the fragments in whose range a value is, on average of a few values."""
    parts = [each.to_table(columns=[column]) for each in lance.dataset(uri).get_fragments()]
    numbers = [part[column].to_pylist() for part in parts]
    asked = range(150, ROWS, 50)
    hits = sum(min(each) <= value <= max(each) for each in numbers for value in asked)
    return hits / len(numbers) / len(asked)


def test_z_order_keeps_rows_ids_and_versions(scattered: LanceTable, uri: str) -> None:
    before = seen(uri)
    assert min(share_to_read(uri, "x"), share_to_read(uri, "y")) > 0.75
    result = scattered.optimize().executeZOrderBy(["x", "y"], target_rows_per_fragment=50)
    (metrics,) = (row.metrics for row in result.collect())
    assert (metrics.numFilesAdded, metrics.numFilesRemoved) == (15, 5)
    assert (metrics.totalConsideredFiles, metrics.totalFilesSkipped) == (5, 0)
    stats = metrics.zOrderStats
    assert (stats.strategyName, stats.inputOtherFiles.num, stats.mergedFiles.num) == ("all", 5, 5)
    assert seen(uri) == before
    assert max(share_to_read(uri, "x"), share_to_read(uri, "y")) < 0.5
    (line,) = scattered.history(1).collect()
    assert line.operation == "OPTIMIZE"
    assert json.loads(line.operationParameters["zOrderBy"]) == ["x", "y"]


@pytest.mark.parametrize("columns", [["x"], ["time"]])
def test_z_order_of_one_column_sorts_by_it(
    scattered: LanceTable, uri: str, columns: list[str]
) -> None:
    before = seen(uri)
    scattered.optimize().executeZOrderBy(columns, target_rows_per_fragment=300)
    assert seen(uri) == before
    values = lance.dataset(uri).to_table(columns=columns).column(0).to_pylist()
    assert values == sorted(values)
    (line,) = scattered.history(1).collect()
    assert json.loads(line.operationParameters["zOrderBy"]) == columns


def test_sort_of_some_fragments(scattered: LanceTable, uri: str) -> None:
    before = seen(uri)
    first = [each.fragment_id for each in lance.dataset(uri).get_fragments()]
    scattered.optimize().where("time < timestamp'1970-01-01 00:08:20'").executeSortBy("y")
    assert seen(uri) == before
    parts = lance.dataset(uri).get_fragments()
    assert [each.fragment_id for each in parts[:-1]] == first[2:4]
    values = parts[-1].to_table(columns=["y"])["y"].to_pylist()
    early = [row["y"] for row in before if row["time"].minute * 60 + row["time"].second < 500]
    assert values == sorted(early)


def test_sort_by_after_concurrent_delete_is_a_conflict(scattered: LanceTable, uri: str) -> None:
    builder = scattered.optimize()
    pennon.dataset(uri).delete("x = 500")
    with pytest.raises(RetryableConflict):
        builder.executeSortBy("x")
    assert len(seen(uri)) == 899


@pytest.mark.parametrize(
    ("columns", "options", "error", "words"),
    [
        (["no"], {}, ArgumentError, "no"),
        ([], {}, ArgumentError, "at least one column"),
        (["list"], {}, UnsupportedError, "cannot be sorted by"),
        (["x"], {"batch_size": 3}, ArgumentError, "executeZOrderBy has no option batch_size"),
    ],
)
def test_zorder_by_wrong_columns_is_refused(
    scattered: LanceTable, columns: list[str], options: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        scattered.optimize().executeZOrderBy(*columns, **options)
