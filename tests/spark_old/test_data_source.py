"""``format("lance")``, streams and table functions: in Spark 4.0 but for one kind of stream, in 3.5 not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import pennon
import pennon.spark
from pennon.errors import UnsupportedError
from pennon.spark.pyspark_classes import RELEASE

HAS_SOURCES = RELEASE >= (4, 0)


def test_format_lance_reads_and_writes_in_4_0_and_is_not_found_in_3_5(
    spark: SparkSession, rows: DataFrame, uri: str, tmp_path: Path
) -> None:
    copy = str(tmp_path / "copy.lance")

    def both() -> int:
        writer = rows.write.format("lance").mode("append").option("fixed_size_list", "vector:2")
        writer.save(copy)
        assert pennon.dataset(copy).count_rows() == 100
        return spark.read.format("lance").load(uri).where("id < 5").count()

    if HAS_SOURCES:
        assert both() == 5
        feed = spark.read.format("lance").option("readChangeFeed", "true")
        assert feed.option("startingVersion", "1").load(uri).count() == 100
    else:
        with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
            both()


def test_stream_out_of_a_table_works_in_4_0_and_a_stream_into_one_is_refused(
    spark: SparkSession, uri: str, tmp_path: Path
) -> None:
    copy, checkpoint = str(tmp_path / "copy.lance"), str(tmp_path / "checkpoint")

    def started(writer: Any) -> Any:
        return writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)

    def stream() -> DataFrame:
        return spark.readStream.format("lance").load(uri).select("id", "n")

    if not HAS_SOURCES:
        with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
            stream()
        return

    def each(batch: DataFrame, _: int) -> None:
        pennon.spark.write(batch, copy, "append")

    started(stream().writeStream.foreachBatch(each)).start().awaitTermination()
    assert pennon.dataset(copy).count_rows() == 100
    checkpoint += "-2"
    with pytest.raises(Exception, match=r"needs Spark 4\.1; this is Spark 4\.0: call pennon"):
        started(stream().writeStream.format("lance")).start(copy).awaitTermination()


def test_table_functions_are_registered_in_4_0_and_refused_in_3_5(
    spark: SparkSession, uri: str
) -> None:
    if HAS_SOURCES:
        pennon.spark.register(spark)
        assert spark.sql(f"SELECT count(*) FROM lance_fragments('{uri}')").collect()[0][0] == 2
        assert spark.sql(f"SELECT count(*) FROM lance_at('{uri}', 1)").collect()[0][0] == 100
    else:
        with pytest.raises(UnsupportedError, match=r"needs Spark 4\.0; this is Spark 3\.5"):
            pennon.spark.register(spark)
