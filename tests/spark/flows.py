"""Streams that tests run: a folder of Parquet files, a table, and the checkpoint between them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import pennon

SCHEMA = "id bigint, k string"


def drop(inputs: Path, ids: Sequence[int]) -> None:
    """Put a file with some rows into a folder that a stream reads."""
    inputs.mkdir(exist_ok=True)
    rows = pa.table({"id": pa.array(ids, pa.int64()), "k": [f"k{n}" for n in ids]})
    number = len(list(inputs.iterdir()))
    pq.write_table(rows, inputs / f".{number}.parquet")
    (inputs / f".{number}.parquet").rename(inputs / f"{number}.parquet")


class Flow:
    """A folder of Parquet files, a stream from it into a table, and the stream's checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.inputs = folder / "in"
        self.checkpoint = folder / "checkpoint"
        self.uri = str(folder / "t.lance")

    def source(self) -> DataFrame:
        """Return the stream of rows, one file a batch."""
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1")
        return reader.parquet(str(self.inputs))

    def run(
        self, rows: DataFrame, mode: str = "append", kind: str = "lance", **options: str
    ) -> None:
        """Write all that there is to the table."""
        writer = rows.writeStream.format(kind).outputMode(mode).options(**options)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        finish(writer.trigger(availableNow=True).start(self.uri))

    def forget_last_commit(self) -> None:
        """Make Spark run the last batch again, as after a crash behind the table's commit."""
        commits = sorted((self.checkpoint / "commits").glob("[0-9]*"), key=lambda at: int(at.name))
        commits[-1].unlink()
        commits[-1].with_name(f".{commits[-1].name}.crc").unlink()

    def ids(self) -> list[int]:
        """Return the ids that the table has, sorted."""
        return sorted(pennon.dataset(self.uri).to_table()["id"].to_pylist())


def finish(query: StreamingQuery) -> None:
    """Wait for the end of a query, and raise what it raised."""
    query.awaitTermination(120)
    assert not query.isActive


def write(uri: str, ids: Sequence[int], **options: Any) -> None:
    """Append rows, or make the table."""
    rows = pa.table({"id": pa.array(ids, pa.int64()), "k": [f"k{n}" for n in ids]})
    pennon.write_dataset(rows, uri, mode="append" if Path(uri).exists() else "create", **options)
