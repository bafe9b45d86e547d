"""Nondeterministic sources: a merge and an update evaluate them once.

What a lost executor had shuffled is computed again: `test_kills` merges a source of whims while one dies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pennon
import pennon.spark
from pennon.spark import LanceTable
from tests.spark.changes import rows_of

OLD = 40


@pytest.fixture
def numbers(spark: SparkSession, uri: str) -> LanceTable:
    """A table of rows (n, 2.0, NULL), in four fragments."""
    ids = pa.array(range(OLD), pa.int64())
    doubles = pa.array([2.0] * OLD)
    rows = pa.table({"id": ids, "low": doubles, "high": pa.nulls(OLD, pa.float64())})
    pennon.write_dataset(rows, uri, max_rows_per_file=OLD // 4)
    return LanceTable.forPath(spark, uri)


def test_conditions_and_values_of_a_merge_see_the_same_random_numbers(
    spark: SparkSession, uri: str, numbers: LanceTable
) -> None:
    """Of a row the clause was chosen by the number that it gets; all rows come to some clause once."""
    source = spark.range(0, 2 * OLD, 1, 3).selectExpr("id AS k", "rand() AS w")
    merge = numbers.merge(source, "id = k").whenMatchedUpdate("w < 0.5", {"low": "w"})
    merge = merge.whenMatchedUpdate("w >= 0.5", {"high": "w"})
    merge = merge.whenNotMatchedInsert("w < 0.5", {"id": "k", "low": "w"})
    merge = merge.whenNotMatchedInsert("w >= 0.5", {"id": "k", "high": "w"})
    told = merge.execute().first()
    assert told is not None
    assert (told.num_updated_rows, told.num_inserted_rows) == (OLD, OLD)
    rows = rows_of(uri)
    assert rows.keys() == set(range(2 * OLD))
    drawn = [high if low in {None, 2.0} else low for low, high in rows.values()]
    assert len(set(drawn)) == 2 * OLD
    for low, high in rows.values():
        assert low in {None, 2.0} or low < 0.5
        assert high is None or high >= 0.5


def test_an_update_draws_one_number_a_row(uri: str, numbers: LanceTable) -> None:
    numbers.update("id + rand() >= 0", {"low": "rand()", "high": "id + 1.0"})
    rows = rows_of(uri)
    assert len({low for low, _ in rows.values()}) == OLD
    assert [rows[n][1] for n in range(OLD)] == [n + 1.0 for n in range(OLD)]


@dataclass(frozen=True)
class Logged:
    """Hands rows on, and writes down which ones it saw."""

    log: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with Path(self.log).open("a") as log:
                log.writelines(f"{n}\n" for n in batch.column(0).to_pylist())
            yield batch

    def seen(self) -> Counter[int]:
        """How often each row was computed."""
        return Counter(map(int, Path(self.log).read_text().split()))


@pytest.mark.parametrize("adapts", ["true", "false"])
def test_a_merge_computes_each_row_of_its_source_once(
    spark: SparkSession, uri: str, numbers: LanceTable, tmp_path: Path, adapts: str
) -> None:
    """With every clause, and with Spark changing the plan on the way; so nothing can differ the second time."""
    logged = Logged(str(tmp_path / "log"))
    source = spark.range(0, 2 * OLD, 2, 3).mapInArrow(logged, "k long")
    merge = numbers.merge(source.selectExpr("k", "k * 2D AS w"), "id = k")
    merge = merge.whenMatchedUpdate("k % 4 = 0", {"low": "w"}).whenMatchedDelete("k % 4 = 2")
    merge = merge.whenNotMatchedInsert(values={"id": "k", "high": "w"})
    merge = merge.whenNotMatchedBySourceUpdate("id % 3 = 0", {"low": "-1"})
    merge = merge.whenNotMatchedBySourceDelete("id % 3 = 1")
    spark.conf.set("spark.sql.adaptive.enabled", adapts)
    try:
        merge.execute()
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "false")
    assert logged.seen() == Counter(range(0, 2 * OLD, 2))
    odd = {n: (-1.0 if n % 3 == 0 else 2.0, None) for n in range(1, OLD, 2) if n % 3 != 1}
    even = {n: (n * 2.0, None) for n in range(0, OLD, 4)}
    assert rows_of(uri) == odd | even | {n: (None, n * 2.0) for n in range(OLD, 2 * OLD, 2)}
