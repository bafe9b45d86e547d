"""Streams that are killed: flights come in day by day, and each is counted once.

Run by ``make demo-stream``.  Another process runs two streams: one from a folder of files into a Lance table, and one from
that table into totals of each airline, which it upserts.  It is killed twice in the middle of its work, while the table is
compacted; the program ends with status 1 if a flight is lost or counted twice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from flights import Account, find_csv_files, run
from pyspark.sql import functions as sf

import pennon
import pennon.spark
from pennon.errors import NotFoundError
from pennon.spark import LanceTable, upsert_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

COLUMNS = ["carrier", "flight", "day", "dep_delay"]
SCHEMA = "number bigint, carrier string, flight bigint, day bigint, dep_delay double"
KILLS = (9, 20)
"""After so many days of January the streams are killed."""
LAST_DAY = 31
PATIENCE_SECONDS = 90


@dataclass(frozen=True, slots=True)
class Places:
    """The folder of the demo: files that come in, tables, and what the streams keep."""

    folder: Path

    @property
    def incoming(self) -> Path:
        """Return the folder of files."""
        return self.folder / "incoming"

    @property
    def flights(self) -> str:
        """Return the table of all flights."""
        return str(self.folder / "flights.lance")

    @property
    def totals(self) -> str:
        """Return the table of totals."""
        return str(self.folder / "totals.lance")

    @property
    def end(self) -> Path:
        """Return the file that tells the streams that no more will come."""
        return self.folder / "end"

    def rows(self) -> int:
        """Return how many flights the table has."""
        try:
            return pennon.dataset(self.flights).count_rows()
        except NotFoundError:
            return 0


# --- the process with the streams ------------------------------------------------------------------


def stream(places: Places) -> None:
    """Run both streams until the end is told, and all that came in is done."""
    spark = pennon.spark.local_session(
        conf={"spark.log.level": "OFF", "spark.sql.shuffle.partitions": "2"}
    )
    incoming = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1")
    rows = incoming.parquet(str(places.incoming))
    queries = [_start(rows.writeStream.format("lance"), places, "flights", places.flights)]
    while not places.rows():
        time.sleep(0.2)  # until the first batch made the table
    added = spark.readStream.format("lance").load(places.flights)
    totals = added.groupBy("carrier").agg(
        sf.count("*").alias("flights"), sf.sum("dep_delay").alias("minutes")
    )
    upsert = upsert_batches(places.totals, on=["carrier"], enable_stable_row_ids=True)
    writer = totals.writeStream.outputMode("update").foreachBatch(upsert)
    queries.append(_start(writer, places, "totals"))
    while not places.end.exists():
        time.sleep(0.2)
    for query in queries:  # in this order: the second one reads what the first one wrote
        query.processAllAvailable()
        query.stop()
    spark.stop()


def _start(writer: object, places: Places, name: str, uri: str | None = None) -> StreamingQuery:
    checkpoint = str(places.folder / f"{name}-checkpoint")
    made = writer.option("checkpointLocation", checkpoint)  # type: ignore[attr-defined]
    query: StreamingQuery = made.trigger(processingTime="200 milliseconds").start(uri)
    return query


# --- the story -------------------------------------------------------------------------------------


def start_streams(places: Places) -> subprocess.Popen[bytes]:
    """Start the process with the streams, and Spark's JVM in its process group."""
    command = [sys.executable, __file__, str(places.folder)]
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started, at once."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for(places: Places, rows: int) -> bool:
    """Wait until the table has so many rows."""
    until = time.monotonic() + PATIENCE_SECONDS
    while places.rows() < rows:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def put(places: Places, day: pd.DataFrame) -> None:
    """Let the flights of a day come in, as one file that is there at once."""
    name = f"{int(day['day'].iloc[0]):02}.parquet"
    hidden = places.incoming / f".{name}"
    pq.write_table(pa.Table.from_pandas(day, preserve_index=False), hidden)
    hidden.rename(places.incoming / name)


def days_of_january(folder: Path) -> list[pd.DataFrame]:
    """Return the flights of each day, with a number for each flight."""
    flights = pd.read_csv(find_csv_files(folder)["flights"], usecols=["month", *COLUMNS])
    january = flights[flights["month"] == 1][COLUMNS].reset_index(drop=True)
    january.insert(0, "number", range(len(january)))
    return [day for _, day in january.groupby("day")]


def tell(account: Account, spark: SparkSession, folder: Path) -> None:
    """Run the demo: streams, two kills, and the check that each flight was counted once."""
    places = Places(folder)
    places.incoming.mkdir()
    days = days_of_january(folder)
    come = 0
    begun = 0
    for number, last in enumerate((*KILLS, LAST_DAY), start=1):
        with account.step(f"Days {begun + 1} to {last} come in"):
            streams = start_streams(places)
            for day in days[begun:last]:
                put(places, day)
            before = come
            come += sum(len(day) for day in days[begun:last])
            begun = last
            if last == LAST_DAY:
                places.end.touch()
                account.check("the streams end well", streams.wait(PATIENCE_SECONDS) == 0)
                continue
            half = wait_for(places, (before + come) // 2)
            kill(streams)
            account.check(
                f"killed for the {number}. time: {places.rows():,} of {come:,} flights are in the table",
                half,
            )
            pennon.dataset(places.flights).optimize.compact_files()
    everything = pd.concat(days)
    with account.step("Is each flight there once?"):
        found = pennon.dataset(places.flights).to_table()["number"].to_pylist()
        account.check(
            f"{len(found):,} flights, each once", sorted(found) == everything["number"].tolist()
        )
    with account.step("Do the totals count each flight once?"):
        expected = everything.groupby("carrier")["dep_delay"].agg(["size", "sum"])
        totals = pennon.dataset(places.totals).to_table().to_pandas().set_index("carrier")
        totals = totals.sort_index()
        same = totals["flights"].tolist() == expected["size"].tolist()
        account.check(f"flights of {len(totals)} airlines", same)
        account.check(
            "and their minutes of delay", totals["minutes"].tolist() == expected["sum"].tolist()
        )
    with account.step("What did the totals change?"):
        table = LanceTable.forPath(spark, places.totals)
        changes = table.changes(0)
        account.show(changes.groupBy("_change_type").count().orderBy("_change_type").toPandas())
        sign = sf.expr("IF(_change_type IN ('insert', 'update_postimage'), flights, -flights)")
        total = changes.agg(sf.sum(sign)).collect()[0][0]
        account.check(f"the changes add up to {total:,} flights", total == len(everything))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        stream(Places(Path(sys.argv[1])))
    else:
        sys.exit(run("streams that are killed, and count each flight once", tell))
