"""Times without a time zone, in a session with another zone than the machine."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import pennon
import pennon.spark
from pennon.spark import LanceTable

ZONE = "spark.sql.session.timeZone"
TOKYO = ZoneInfo("Asia/Tokyo")


@pytest.fixture(params=["Asia/Tokyo", "+09:00"])
def tokyo(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The session, in another time zone."""
    before = str(spark.conf.get(ZONE))
    spark.conf.set(ZONE, request.param)
    yield spark
    spark.conf.set(ZONE, before)


@pytest.fixture
def between(uri: str) -> datetime:
    """A time between the two versions of a table."""
    first = pennon.write_dataset(pa.table({"a": [1]}), uri)
    made = first.versions()[0]["timestamp"].astimezone(UTC)
    while datetime.now(UTC) <= made + timedelta(microseconds=2):
        pass
    pennon.write_dataset(pa.table({"a": [2]}), uri, mode="append")
    return made + timedelta(microseconds=1)


def test_timestamps_without_zone_use_the_session_zone(
    tokyo: SparkSession, uri: str, between: datetime, tmp_path: Path
) -> None:
    said = between.astimezone(TOKYO).replace(tzinfo=None).isoformat(" ")
    table = LanceTable.forPath(tokyo, uri)
    assert pennon.spark.read(tokyo, uri, asof=said).count() == 1
    assert table.read(asof=said).count() == 1
    assert pennon.spark.read(tokyo, uri, aggregate={"*": "count"}, asof=said).first() == (1,)
    assert pennon.spark.view(tokyo, uri, "then", asof=said).version == 1
    assert tokyo.table("then").count() == 1
    tokyo.catalog.dropTempView("then")
    table.cloneAtTimestamp(said, str(tmp_path / "copy.lance"))
    assert pennon.dataset(tmp_path / "copy.lance").count_rows() == 1
    table.restoreToTimestamp(said)
    assert pennon.dataset(uri).count_rows() == 1


def test_data_source_timestamp_without_time_zone_is_refused(
    tokyo: SparkSession, uri: str, between: datetime
) -> None:
    source = tokyo.read.format("lance")
    said = between.astimezone(TOKYO)
    assert source.option("timestampAsOf", said.isoformat()).load(uri).count() == 1
    bare = tokyo.read.format("lance").option("timestampAsOf", said.replace(tzinfo=None).isoformat())
    with pytest.raises(PySparkException, match="no time zone"):
        bare.load(uri)
