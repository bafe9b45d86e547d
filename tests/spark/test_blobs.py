"""Blob columns of version 2 on Spark: read as bytes, wherever they are stored, and kept by changes of other columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import pennon
import pennon.spark
from pennon.spark import LanceTable

BLOBS = (b"small", None, b"x" * 100_000, b"y" * 5_000_000, b"")
"""Inline, NULL, packed with others, in a file of its own, empty."""


@pytest.fixture
def images(tmp_path: Path) -> str:
    """A table of two fragments with a blob column beside the ids."""
    schema = pa.schema([pa.field("id", pa.int64()), pennon.blob_field("image")])
    uri = str(tmp_path / "images.lance")
    for first in (0, len(BLOBS)):
        ids = pa.array(range(first, first + len(BLOBS)), pa.int64())
        rows = pa.table([ids, pennon.blob_array(list(BLOBS))], schema=schema)
        pennon.write_dataset(
            rows, uri, mode="append" if first else "create", data_storage_version="2.2"
        )
    return uri


def sizes(frame: DataFrame) -> list[tuple[int, int | None]]:
    """Return ids and the lengths of blobs."""
    rows = frame.orderBy("id").collect()
    return [(row.id, None if row.image is None else len(row.image)) for row in rows]


def test_blobs_of_version_2_are_read_as_bytes(spark: SparkSession, images: str) -> None:
    expected = [(n, None if blob is None else len(blob)) for n, blob in enumerate(BLOBS * 2)]
    assert sizes(spark.read.format("lance").load(images)) == expected
    assert sizes(pennon.spark.read(spark, images).where("id > 2")) == expected[3:]
    found = pennon.spark.sql(spark, f"SELECT id, image FROM lance.`{images}` WHERE id IN (2, 7)")
    assert [bytes(row.image) for row in found.orderBy("id").collect()] == [BLOBS[2]] * 2
    assert pennon.spark.read(spark, images, columns=["image"]).columns == ["image"]


def test_blobs_of_version_2_stay_when_other_columns_change(
    spark: SparkSession, images: str
) -> None:
    table = LanceTable.forPath(spark, images)
    table.update("id = 3", {"id": "33"})
    table.delete("id = 2")
    table.optimize().executeCompaction()
    lengths = {n: None if blob is None else len(blob) for n, blob in enumerate(BLOBS * 2)}
    lengths[33] = lengths.pop(3)
    del lengths[2]
    assert dict(sizes(table.toDF())) == lengths
