"""The same story in every run mode, as a program of its own: ``python -m tests.spark.modes``.

PySpark holds one session a process, so each mode but that of the tests' own session gets a process.
The program prints one line of JSON with what it saw; `test_modes` judges it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import pennon.spark
from demo.flights import QUERIES, TABLES, answer, use_tables
from pennon.spark import LanceTable, upsert_batches
from pennon.spark.session import DEFAULTS

# Each query runs once: the JVM's second compiler would take as much processor time as all the
# rest, and gain nothing.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONF = {
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.sql.adaptive.enabled": "false",
}


def start(mode: str) -> SparkSession:
    """Start a session; ``connect`` brings up a Connect server on a free port and talks to it.

    Connect has the settings of `pennon.spark.local_session`, too, and the others have Spark's own.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONWARNINGS"] = "ignore"
    if mode != "connect":
        builder = SparkSession.builder.master(mode)
    else:
        os.environ["SPARK_TESTING"] = "1"  # a free port, not 15002
        builder = SparkSession.builder.remote("local[2]")
    for key, value in (CONF if mode != "connect" else {**DEFAULTS, **CONF}).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def answers_of(spark: SparkSession, folder: Path, kind: str) -> dict[str, str]:
    """Ask the demo's questions of the tables of one format; each answer as JSON."""
    use_tables(spark, folder, kind)
    return {query.title: str(answer(spark, query).to_json(date_format="iso")) for query in QUERIES}


def tell(spark: SparkSession, parquet: Path, folder: Path) -> dict[str, Any]:
    """Write the demo's tables from Parquet, ask the demo's questions, append, travel, prune."""
    for name in TABLES:
        rows = spark.read.parquet(str(parquet / f"{name}.parquet"))
        if name == "flights":
            rows = rows.repartition(4)
        rows.write.format("lance").mode("append").save(str(folder / f"{name}.lance"))
    uri = str(folder / "flights.lance")
    answers = answers_of(spark, folder, "lance")
    spark.sql("INSERT INTO airlines VALUES ('ZZ', 'Test Air')")
    reader = spark.read.format("lance")
    return {
        "answers": answers,
        "inserted": reader.load(str(folder / "airlines.lance")).where("carrier = 'ZZ'").count(),
        "travelled": reader.option("version", 1).load(str(folder / "airlines.lance")).count(),
        "pruned": spark.read.format("lance").schema("origin string").load(uri).columns,
        "read": pennon.spark.read(spark, uri, ["distance"]).groupBy().sum().collect()[0][0],
        "filtered": pennon.spark.read(spark, uri, ["origin"], filter="distance > 4000").count(),
        "written": pennon.spark.write(spark.range(10).repartition(2), str(folder / "range.lance")),
        "changed": changed(spark, str(folder / "airlines.lance")),
        "converted": converted(spark, str(folder / "range.lance")),
        "asked": asked(spark, uri),
        "overwritten": overwritten(spark, str(folder / "days.lance")),
        "named": named(spark, str(folder / "days.lance")),
        "streamed": streamed(spark, folder),
        "searched": searched(spark, str(folder / "texts.lance")),
        "queried": queried(spark, folder),
        "message": message_of_a_missing_table(spark, folder),
    }


def changed(spark: SparkSession, uri: str) -> list[Any]:
    """Delete, update and merge rows of a table; return how many each changed, and a few of them."""
    table = LanceTable.forPath(spark, uri)
    counts = [
        table.delete("carrier = 'ZZ'").first(),
        table.delete(sf.lower("carrier") == "9e").first(),
        table.update("carrier = 'AA'", {"name": "'one'"}).first(),
        table.update(sf.col("carrier") == "AS", {"name": sf.upper("name")}).first(),
    ]
    rows = spark.createDataFrame([("AA", "two"), ("YY", "new")], "carrier string, name string")
    merge = table.alias("t").merge(rows.alias("s"), "t.carrier = s.carrier")
    merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
    counts.append(merge.whenNotMatchedBySourceDelete("t.carrier = 'B6'").execute().first())
    left = table.toDF().where("carrier IN ('ZZ', '9E', 'AA', 'AS', 'YY', 'B6')").orderBy("carrier")
    compacted = table.optimize().executeCompaction().first()
    return [
        [list(each or ()) for each in counts],
        [list(row) for row in left.collect()],
        compacted is not None and compacted.metrics.numFilesAdded,
        table.history(1).collect()[0].operation,
    ]


def streamed(spark: SparkSession, folder: Path) -> list[int]:
    """Stream a table into another one and into sums, twice; return the rows of these, their sum and the changes."""
    source, copy, sums = (str(folder / f"{name}.lance") for name in ("source", "copy", "sums"))
    for number in range(2):
        rows = spark.range(10 * number, 10 * number + 10).withColumn("n", sf.col("id") % 3)
        pennon.spark.write(rows, source, "append")
        stream = spark.readStream.format("lance").load(source)
        writer = stream.writeStream.format("lance").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(folder / "copy-checkpoint"))
        writer.start(copy).awaitTermination()
        writer = stream.groupBy("n").count().writeStream.outputMode("update")
        writer = writer.option("checkpointLocation", str(folder / "sums-checkpoint"))
        upsert = upsert_batches(sums, on=["n"], app="sums", enable_stable_row_ids=True)
        writer.foreachBatch(upsert).trigger(availableNow=True).start().awaitTermination()
    feed = spark.read.format("lance").option("readChangeFeed", "true")
    changes = feed.option("startingVersion", "2").load(sums).count()
    total = pennon.spark.read(spark, sums).groupBy().sum("count").collect()[0][0]
    counts = [pennon.spark.read(spark, uri).count() for uri in (copy, sums)]
    return [*counts, total, changes]


def overwritten(spark: SparkSession, uri: str) -> list[Any]:
    """Let a table grow, overwrite parts of it in all ways; return its rows and its version."""
    days = spark.sql(
        "SELECT * FROM VALUES ('a', 1), ('b', 2), ('c', 3), ('d', 4), ('e', 5) AS t(day, n)"
    )
    pennon.spark.write(days.repartition(2), uri, "ignore", enable_stable_row_ids=True)
    wider = spark.sql("SELECT 'f' AS DAY, 1L << 40 AS n, true AS late")
    pennon.spark.write(wider, uri, "append", merge_schema=True)
    new = spark.sql("SELECT 'a' AS day, 10 AS n")
    pennon.spark.write(new, uri, "overwrite", where="day = 'a' OR day = 'b'")
    pennon.spark.write(new, uri, "overwrite", where=sf.upper("day") == "A")
    pennon.spark.write(
        spark.sql("SELECT 'c' AS day, 30 AS n"), uri, "overwrite", overwrite_by=["day"]
    )
    writer = spark.sql("SELECT 'd' AS day, 40 AS n").write.format("lance").mode("overwrite")
    writer.option("replaceWhere", "day = 'd'").save(uri)
    writer = spark.sql("SELECT 'e' AS day, 50 AS n").write.format("lance").mode("overwrite")
    writer.option("overwrite_by", "day").save(uri)
    writer = spark.sql("SELECT 'g' AS day, 1.5 AS x").write.format("lance").mode("append")
    writer.option("mergeSchema", "true").save(uri)
    rows = pennon.spark.read(spark, uri, ["day", "n", "late"]).orderBy("day").collect()
    return [[list(row) for row in rows], pennon.dataset(uri).version]


def named(spark: SparkSession, uri: str) -> list[Any]:
    """Name a version, leave it on a branch, take a row by its id, change columns; return what is seen then."""
    table = LanceTable.forPath(spark, uri)
    table.tags.create("whole")
    side = table.branches.create("side")
    side.delete("day = 'a'")
    row = table.read(["day"], with_row_id=True, filter="day = 'c'").first()
    taken = table.takeRows([] if row is None else [row["_rowid"]], ["day", "n"]).collect()
    table.delete("day = 'f'")
    compacted = table.compact(data_storage_version="2.0").first()
    table.dropColumns("x")
    table.renameColumn("late", "is_late")
    table.alterColumn("n", dataType="int")
    return [
        [list(each) for each in taken],
        compacted is not None and compacted.metrics.numFilesAdded,
        [list(each) for each in table.toDF().dtypes],
        table.read(tag="whole").columns,
        [side.count(), table.count(), table.versions().count()],
        [[each.rows, each.files] for each in table.fragments().collect()],
        [[each.file_version, each.fields] for each in table.files().collect()],
        [[each.tag, each.version] for each in table.tags.toDF().collect()],
        [[each.branch, each.parent_version] for each in table.branches.toDF().collect()],
    ]


def searched(spark: SparkSession, uri: str) -> list[Any]:
    """Return what queries find in a small table by their vectors, and by vectors and words."""
    rows = spark.range(0, 60, 1, 2).selectExpr(
        "id", "array(float(id), float(id % 7)) AS vec", "IF(id % 3 = 0, 'red fox', 'owl') AS text"
    )
    pennon.spark.write(rows, uri, fixed_size_list={"vec": 2})
    table = LanceTable.forPath(spark, uri)
    table.createIndex("text", "INVERTED")
    queries = spark.sql(
        "SELECT * FROM VALUES ('a', array(3, 3), 'fox'), ('b', array(50, 1), 'fox') AS t(name, q, words)"
    )
    near = table.nearest(queries, 2, columns=["id"])
    both = table.hybrid(queries, 2, words="words", columns=["id"])
    return [
        sorted(map(list, found.select("name", "_rank", "id").collect())) for found in (near, both)
    ]


def queried(spark: SparkSession, folder: Path) -> list[Any]:
    """Run SQL over tables by name; return what statements say, rows, and views that are left."""
    lake = pennon.spark.attach(spark, str(folder))
    made = "CREATE TABLE lake.words AS SELECT id, concat('w', id % 3) AS word FROM range(30)"
    merge = "MERGE INTO words w USING (SELECT 5L AS id UNION ALL SELECT 99L) s ON w.id = s.id"
    answers = [
        pennon.spark.sql(spark, text, least=7).first()
        for text in (
            f"{made} WHERE id >= :least - 7",
            "DELETE FROM words WHERE id IN (SELECT id FROM words WHERE word = 'w1' AND id > :least)",
            f"{merge} WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id * :least)",
        )
    ]
    joined = pennon.spark.sql(
        spark,
        "SELECT a.id FROM words a JOIN words VERSION AS OF 1 b ON a.id = b.id WHERE a.id < 9 AND b.word <> 'w0'",
    )
    lake.detach()
    rows = joined.where("id > 1").orderBy("id").collect()
    views = [each.name for each in spark.catalog.listTables() if "pennon_" in each.name]
    return [[list(each or ()) for each in answers], [row.id for row in rows], views]


def converted(spark: SparkSession, uri: str) -> tuple[int, int, int]:
    """Convert a table, and return the version made, and what the progress said last."""
    told: list[tuple[int, int]] = []
    version = pennon.spark.convert(spark, uri, "2.0", progress=lambda *each: told.append(each))
    return (version, *told[-1])


def asked(spark: SparkSession, uri: str) -> list[Any]:
    """Return what does without rows in Spark, and what SQL knows of a table."""
    table = LanceTable.forPath(spark, uri)
    longest = table.read(aggregate={"distance": "max", "*": "count"}, group_by=["origin"])
    pennon.spark.view(spark, uri, "far", ["distance"], filter="distance > 4000")
    pennon.spark.register(spark)
    listed = spark.sql(f"SELECT count(*) FROM lance_fragments('{uri}')").first()
    looked = spark.sql(f"SELECT count(*) FROM lance_at('{uri.replace('flights', 'airlines')}', 1)")
    return [
        table.count(),
        table.count("distance > 4000"),
        sorted(map(list, longest.collect())),
        len(table.read(limit=7).collect()),
        spark.table("far").count(),
        list(listed or ()),
        list(looked.first() or ()),
    ]


def message_of_a_missing_table(spark: SparkSession, folder: Path) -> str:
    """Return what the user sees."""
    try:
        spark.read.format("lance").load(str(folder / "nothing.lance")).count()
    except Exception as error:  # noqa: BLE001 - every mode has its own class
        return str(error)
    return ""


def main() -> None:
    """Run one mode: ``MODE PARQUET_FOLDER FOLDER``."""
    mode, parquet, folder = sys.argv[1:]
    spark = start(mode)
    seen = tell(spark, Path(parquet), Path(folder))
    print(json.dumps(seen), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
