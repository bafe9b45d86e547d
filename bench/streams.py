"""``make bench-streams``: what a batch of a stream costs, by the fragments of its tables, and a stream that lags.

The first table: a stream reads a table and appends to another one, both of as many fragments, all of one small file.
Each batch is one row.  The times are medians of Spark's own, of all of a batch and of its parts.

The second table: batches of Parquet files through a stream's sink; through `foreachBatch` with `pennon.spark.write`; through
a sink that drops the rows, which is Spark's own price; and by `pennon.spark.write` without a stream.

The third table: a stream begins at the first version of a table whose versions have one row each.  It plans its batches
of 1,000 fragments, as Spark's planner process does, without reading rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
from page import heads, row
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from spark_floor import Floor
from spark_side import COLUMNS, CONF, QUICK_SOCKETS

import pennon
import pennon.spark
from pennon.io import open_store
from pennon.scan.changes.stream import Position, StreamLimits, StreamRules, TableStream
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore

FRAGMENTS = (100, 1_000, 10_000, 100_000)
VERSIONS = 10_000
BATCHES = 25
WARM_UP = 5
STEP = StreamLimits(fragments=1000)
ROWS = (10_000, 100_000, 1_000_000)
TURNS, UNCOUNTED = 7, 3
PARTS = ("triggerExecution", "latestOffset", "queryPlanning", "addBatch", "walCommit")


def one_row(number: int) -> pa.Table:
    """Return a row."""
    return pa.table({"id": [number], "k": ["x"]})


def table_of(uri: str, fragments: int) -> None:
    """Make a table of as many fragments, all of which are one file."""
    first = pennon.write_dataset(pa.table({"id": range(10), "k": ["x"] * 10}), uri)
    (fragment,) = [each.metadata for each in first.get_fragments()]
    operation = pennon.LanceOperation.Append([fragment] * (fragments - 1))
    pennon.LanceDataset.commit(uri, operation, read_version=1)


def batches(spark: SparkSession, folder: Path, fragments: int) -> dict[str, float]:
    """Return the medians of the parts of a batch, in milliseconds."""
    source, target = str(folder / "source.lance"), str(folder / "target.lance")
    for uri in (source, target):
        table_of(uri, fragments)
    rows = spark.readStream.format("lance").option("startingVersion", "latest").load(source)
    writer = rows.writeStream.format("lance").trigger(processingTime="0 seconds")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start(target)
    try:
        for number in range(WARM_UP + BATCHES):
            pennon.write_dataset(one_row(number), source, mode="append")
            query.processAllAvailable()
        done: list[Any] = [each for each in query.recentProgress if each["numInputRows"]]
    finally:
        query.stop()
    if pennon.dataset(target).version != 2 + len(done):
        message = f"{len(done)} batches made {pennon.dataset(target).version - 2} versions"
        raise RuntimeError(message)
    spans = [each["durationMs"] for each in done[WARM_UP:]]
    return {part: median(span.get(part, 0) for span in spans) for part in PARTS}


def lag(folder: Path, versions: int) -> Iterator[tuple[int, float, int, float]]:
    """Yield of each planned batch: its versions, seconds, requests, and the highest memory so far in MB."""
    uri = folder / "lag.lance"
    for number in range(versions):
        pennon.write_dataset(one_row(number), uri, mode="append")
    store = CountingStore(open_store(uri))
    snapshot = Snapshot(store, read_manifest(store))
    stream = TableStream(snapshot, snapshot.manifest.schema, StreamRules())
    newest, at = stream.newest(), Position(1)
    tracemalloc.start()
    while at.version <= newest:
        store.reset()
        began = time.perf_counter()
        end, _ = stream.advance(at, newest, STEP)
        parts = sum(len(part.fragments) for part in stream.parts(at, end))
        seconds = time.perf_counter() - began
        if parts != end.version - at.version:
            message = f"{parts} fragments of {end.version - at.version} versions"
            raise RuntimeError(message)
        yield parts, seconds, store.counts.requests, tracemalloc.get_traced_memory()[1] / 1e6
        at = end
    tracemalloc.stop()


def sinks(spark: SparkSession, folder: Path, rows: int) -> list[float]:
    """Return the medians of a batch of so many rows: by the sink, `foreachBatch`, a sink that drops rows, and without a stream."""
    spark.dataSource.register(Floor)
    uris = [str(folder / f"{name}.lance") for name in ("sink", "each", "write")]
    streamed, each, written = uris
    writes = []

    def write_each(batch: DataFrame, _: int) -> None:
        pennon.spark.write(batch, each, mode="append")

    def write(batch: DataFrame) -> None:
        began = time.perf_counter()
        pennon.spark.write(batch, written, mode="append")
        writes.append(1000 * (time.perf_counter() - began))

    floor = through(spark, folder / "floor", rows, lambda to: to.format("floor"), write)
    by_each = through(spark, folder / "each", rows, lambda to: to.foreachBatch(write_each))
    by_sink = through(
        spark, folder / "sink", rows, lambda to: to.format("lance").option("path", streamed)
    )
    counts = [pennon.dataset(uri).count_rows() for uri in uris]
    if counts != [rows * (UNCOUNTED + TURNS)] * 3:
        message = f"{counts} rows are in the tables"
        raise RuntimeError(message)
    return [by_sink, by_each, floor, median(writes[UNCOUNTED:])]


def through(
    spark: SparkSession,
    folder: Path,
    rows: int,
    sink: Callable[[DataStreamWriter], DataStreamWriter],
    after: Callable[[DataFrame], None] = lambda _: None,
) -> float:
    """Return the median of a batch of so many rows through a sink, in milliseconds; ``after`` gets it, too."""
    inputs = folder / "in"
    inputs.mkdir(parents=True)
    made = spark.range(0, rows, 1, 2).selectExpr(*COLUMNS)
    source = spark.readStream.schema(made.schema).parquet(str(inputs / "*"))
    writer = sink(source.writeStream).trigger(processingTime="0 seconds")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        for number in range(UNCOUNTED + TURNS):
            made.write.parquet(str(folder / "next"))
            (folder / "next").rename(inputs / str(number))  # all its files at once
            query.processAllAvailable()
            after(spark.read.schema(made.schema).parquet(str(inputs / str(number))))
        done: list[Any] = [each for each in query.recentProgress if each["numInputRows"]]
    finally:
        query.stop()
    spans: list[float] = [each["durationMs"]["triggerExecution"] for each in done[UNCOUNTED:]]
    return median(spans)


@contextmanager
def a_folder() -> Iterator[Path]:
    """Give a folder that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="pennon-streams-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print three tables of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fragments", type=int, nargs="*", default=FRAGMENTS)
    parser.add_argument("--versions", type=int, default=VERSIONS)
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    chosen = parser.parse_args(arguments)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for key, value in {**CONF, **QUICK_SOCKETS}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    print("\n".join(heads("fragments", *(f"{part}, ms" for part in PARTS))))
    for count in chosen.fragments:
        with a_folder() as folder:
            spans = batches(spark, folder, count)
            print(row(f"{count:,}", *(f"{spans[part]:,.0f}" for part in PARTS)), flush=True)
    print()
    ways = ("sink", "`foreachBatch`, `write`", "Spark's floor", "`write` alone")
    print("\n".join(heads("rows a batch", *(f"{way}, ms" for way in ways), "foreachBatch / sink")))
    for count in chosen.rows:
        with a_folder() as folder:
            found = sinks(spark, folder, count)
            ratio = f"{found[1] / found[0]:.2f}"
            print(row(f"{count:,}", *(f"{each:,.0f}" for each in found), ratio), flush=True)
    spark.stop()
    print()
    print("\n".join(heads("batch", "versions", "seconds", "requests", "peak memory, MB")))
    with a_folder() as folder:
        for number, each in enumerate(lag(folder, chosen.versions)):
            versions, seconds, requests, peak = each
            cells = (f"{versions:,}", f"{seconds:.2f}", f"{requests:,}", f"{peak:.1f}")
            print(row(str(number), *cells), flush=True)


if __name__ == "__main__":
    main()
