"""A table of version 0.1 converted by Spark: each fragment a task, one commit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import pennon
import pennon.spark


def test_convert_of_0_1_table_keeps_rows_and_fragments(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table(
        {"id": range(100), "word": [f"w{n}" for n in range(100)], "l": [[n, n] for n in range(100)]}
    )
    pennon.write_dataset(rows, uri, data_storage_version="legacy", max_rows_per_file=30)
    assert pennon.spark.convert(spark, uri, "2.1") == 2
    converted = pennon.dataset(uri)
    assert converted.data_storage_version == "2.1"
    assert converted.to_table().equals(rows)
    assert [f.count_rows() for f in converted.get_fragments()] == [30, 30, 30, 10]
    assert pennon.spark.read(spark, uri).count() == 100


def test_convert_keeps_stable_row_ids_and_row_versions(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    table = pennon.write_dataset(
        pa.table({"id": range(100)}),
        uri,
        data_storage_version="2.0",
        max_rows_per_file=30,
        enable_stable_row_ids=True,
    )
    table.delete("id % 3 = 1")
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    before = pennon.dataset(uri).to_table(columns=columns)
    pennon.spark.convert(spark, uri, "2.1")
    assert pennon.dataset(uri).to_table(columns=columns) == before
