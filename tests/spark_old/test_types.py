"""Types that Spark 4.0 or 3.5 lacks."""

from __future__ import annotations

from datetime import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pennon
import pennon.spark
from pennon.errors import UnsupportedError
from pennon.spark.pyspark_classes import RELEASE


def test_time_of_day_is_refused_and_other_columns_are_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    uri = str(tmp_path / "times.lance")
    rows = {"id": [1, 2], "at": pa.array([time(1), time(2)], pa.time64("us"))}
    pennon.write_dataset(pa.table(rows), uri)
    with pytest.raises(
        UnsupportedError, match=r"column 'at', which is time64\[us\], needs Spark 4\.1"
    ):
        pennon.spark.read(spark, uri)
    assert pennon.spark.read(spark, uri, ["id"]).count() == 2


def test_variant_is_kept_in_4_0_and_refused_in_3_5(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "variants.lance")
    if RELEASE >= (4, 0):
        rows = spark.range(3).selectExpr("id", "parse_json(concat('{\"a\": ', id, '}')) AS v")
        pennon.spark.write(rows, uri)
        found = pennon.spark.read(spark, uri).selectExpr("variant_get(v, '$.a', 'int')")
        assert sorted(row[0] for row in found.collect()) == [0, 1, 2]
        return
    parts = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary())])
    mark = {"pennon:logical-type": "variant"}
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("v", parts, metadata=mark)])
    rows = pa.table([[1], [{"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}]], schema=schema)
    pennon.write_dataset(rows, uri)
    with pytest.raises(UnsupportedError, match=r"column 'v', a VARIANT, needs Spark 4\.0"):
        pennon.spark.read(spark, uri)
