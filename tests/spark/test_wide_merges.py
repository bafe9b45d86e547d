"""Merges of many columns of one expression, over which Spark's inference of filters takes minutes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import pennon
from pennon.spark import LanceTable, inference

COLUMNS = 120


def test_a_merge_of_many_equal_columns_is_planned_without_inference(
    spark: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = spark.conf.get(inference.SETTING)
    seen: list[Any] = []
    end = inference._end

    def ended(session: SparkSession) -> None:
        seen.append(session.conf.get(inference.SETTING))
        end(session)

    monkeypatch.setattr(inference, "_end", ended)
    names = [f"c{number}" for number in range(COLUMNS)]
    old = {name: pa.array([1, 2], pa.int32()) for name in names}
    pennon.write_dataset(pa.table({"id": [1, 2], **old}), uri)
    same = [sf.expr("CAST(-id AS INT)").alias(name) for name in names]
    source = spark.range(2, 4).select("id", *same)
    merge = LanceTable.forPath(spark, uri).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    found = pennon.dataset(uri).to_table().sort_by("id").to_pylist()
    assert [[row[name] for name in names] for row in found] == [
        [value] * COLUMNS for value in (1, -2, -3)
    ]
    assert seen == ["false"]
    assert spark.conf.get(inference.SETTING) == before
