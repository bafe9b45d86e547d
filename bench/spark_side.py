"""One side of the comparison on Spark, in a process and, for a peer, in an interpreter of its own.

``spark_side.py NAME FOLDER CLASS_PATH`` starts a session, reads one JSON task a line from stdin,
runs it, and answers with one JSON line; the first line says ``ready``.  It imports nothing but PySpark before it knows its name:
a peer's environment has no more.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

Task: TypeAlias = "dict[str, Any]"

COLUMNS = (
    "id AS i64",
    "CAST(id % 1000 AS INT) AS i32",
    "id * 0.5D AS f64",
    "concat('name ', id % 5000) AS text",
    "IF(id % 3 = 0, NULL, id * 7) AS nulls",
)
TOTAL = ("sum(i64)", "sum(i32)", "sum(f64)", "count(text)", "max(text)", "count(nulls)")
FILES = 4
SMALL_FILES = 64
BATCHES = 10
SCHEMA = "i64 bigint, i32 int, f64 double, text string, nulls bigint"
CONF = {
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.log.level": "ERROR",
}
QUICK_SOCKETS = {"spark.python.unix.domain.socket.enabled": "true"}
"""What docs/spark.md asks for; of Python alone, so it is nothing to the other sides."""
CONF_OF_SIDE = {
    "pennon": QUICK_SOCKETS,
    "format": QUICK_SOCKETS,
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
        "spark.databricks.delta.snapshotPartitions": "2",
    },
    "lance-spark": {
        "spark.sql.extensions": "com.lancedb.lance.spark.extensions.LanceSparkSessionExtensions",
        "spark.sql.catalog.lance": "com.lancedb.lance.spark.LanceNamespaceSparkCatalog",
        "spark.sql.catalog.lance.impl": "dir",
    },
}


class Format:
    """A format of Spark's reader and writer, which changes no rows."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.spark = spark
        self.name = name

    def write(self, rows: DataFrame, path: str) -> None:
        """Write a new table."""
        rows.write.format(self.name).save(path)

    def load(self, path: str, columns: Sequence[str] | None, condition: str | None) -> DataFrame:
        """Return the rows of a table."""
        rows = self.spark.read.format(self.name).load(path)
        rows = rows if condition is None else rows.where(condition)
        return rows if columns is None else rows.select(*columns)

    has_sink = True
    """Streams can make a table."""


class PythonFormat(Format):
    """``format("lance")`` of Pennon: Spark tells a source in Python only the columns of a schema."""

    def write(self, rows: DataFrame, path: str) -> None:
        """Write a new table."""
        rows.write.format(self.name).mode("append").save(path)

    def load(self, path: str, columns: Sequence[str] | None, condition: str | None) -> DataFrame:
        """Return the rows of a table."""
        reader = self.spark.read.format(self.name)
        if columns is not None:
            reader = reader.option("columns", ", ".join(columns))
        rows = reader.load(path)
        return rows if condition is None else rows.where(condition)


class Tables(Format):
    """A format with a class of Delta's shape, that changes rows, and has streams."""

    def source(self, path: str) -> DataFrame:
        """Return a table as a stream, one file a batch."""
        return self.spark.readStream.format(self.name).option("maxFilesPerTrigger", "1").load(path)

    def write_with_feed(self, rows: DataFrame, path: str) -> None:
        """Write a new table that keeps a feed of changes."""
        rows.write.format(self.name).option("delta.enableChangeDataFeed", "true").save(path)

    def changes(self, path: str) -> DataFrame:
        """Return what came behind the first version."""
        feed = self.spark.read.format(self.name).option("readChangeFeed", "true")
        return feed.option("startingVersion", self.second).load(path)

    second = "1"
    """The number of the version behind the first one."""

    def __init__(self, spark: SparkSession, name: str, tables: Any) -> None:
        super().__init__(spark, name)
        self.tables = tables

    def delete(self, path: str, condition: str) -> None:
        """Delete rows."""
        self.tables.forPath(self.spark, path).delete(condition)

    def update(self, path: str, condition: str, column: str, value: str) -> None:
        """Give a column of some rows another value."""
        self.tables.forPath(self.spark, path).update(condition, {column: value})

    def merge(self, path: str, source: DataFrame) -> None:
        """Merge rows by their first column."""
        table = self.tables.forPath(self.spark, path)
        merge = table.alias("t").merge(source.alias("s"), "t.i64 = s.i64")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def compact(self, path: str) -> None:
        """Make few files of many."""
        self.tables.forPath(self.spark, path).optimize().executeCompaction()


class Pennon(Tables):
    """`pennon.spark`: its functions, and `LanceTable`."""

    def __init__(self, spark: SparkSession) -> None:
        import pennon.spark  # noqa: PLC0415 - only this side has it

        super().__init__(spark, "lance", pennon.spark.LanceTable)
        self.functions = pennon.spark

    def write(self, rows: DataFrame, path: str) -> None:
        """Write a new table."""
        self.functions.write(rows, path)

    def load(self, path: str, columns: Sequence[str] | None, condition: str | None) -> DataFrame:
        """Return the rows of a table."""
        return self.functions.read(self.spark, path, columns, filter=condition)

    def write_with_feed(self, rows: DataFrame, path: str) -> None:
        """Write a new table; with stable row ids an update is known from a deletion and an insertion."""
        self.functions.write(rows, path, enable_stable_row_ids=True)

    second = "2"

    def totals(self, path: str) -> DataFrame:
        """Return `TOTAL`, worked out where the table is read."""
        parts = {
            "i64": "sum",
            "i32": "sum",
            "f64": "sum",
            "text": ["count", "max"],
            "nulls": "count",
        }
        return self.functions.read(self.spark, path, aggregate=parts)


class LanceSpark(Format):
    """lance-spark, by its catalog: the folder is its root, and rows are changed by SQL."""

    has_sink = False

    def write(self, rows: DataFrame, path: str) -> None:
        """Write a new table."""
        rows.writeTo(named(path)).create()

    def load(self, path: str, columns: Sequence[str] | None, condition: str | None) -> DataFrame:
        """Return the rows of a table."""
        rows = self.spark.table(named(path))
        rows = rows if condition is None else rows.where(condition)
        return rows if columns is None else rows.select(*columns)

    def delete(self, path: str, condition: str) -> None:
        """Delete rows."""
        self.spark.sql(f"DELETE FROM {named(path)} WHERE {condition}")

    def update(self, path: str, condition: str, column: str, value: str) -> None:
        """Give a column of some rows another value."""
        self.spark.sql(f"UPDATE {named(path)} SET {column} = {value} WHERE {condition}")

    def merge(self, path: str, source: DataFrame) -> None:
        """Merge rows by their first column."""
        source.createOrReplaceTempView("source")
        self.spark.sql(
            f"MERGE INTO {named(path)} t USING source s ON t.i64 = s.i64 "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )


def named(path: str) -> str:
    """Return the name that the catalog has for a table."""
    return f"lance.default.{Path(path).stem}"


def form_of(name: str, spark: SparkSession) -> Any:
    """Return the format of a side."""
    if name == "pennon":
        return Pennon(spark)
    if name == "delta":
        from delta.tables import (  # type: ignore[import-not-found]  # noqa: PLC0415 - a peer's
            DeltaTable,
        )

        return Tables(spark, "delta", DeltaTable)
    kinds = {"format": PythonFormat, "lance-spark": LanceSpark, "parquet": Format}
    return kinds[name](spark, "parquet" if name == "parquet" else "lance")


class Side:
    """A running session, and the tables that it made."""

    def __init__(self, name: str, folder: Path, class_path: str) -> None:
        conf = {**CONF, **CONF_OF_SIDE.get(name, {}), "spark.sql.warehouse.dir": str(folder / "w")}
        if name == "lance-spark":
            conf["spark.sql.catalog.lance.root"] = str(folder)
        if class_path:
            conf["spark.driver.extraClassPath"] = class_path
        builder = SparkSession.builder.master("local[2]").appName(name)
        for key, value in conf.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.form = form_of(name, self.spark)
        self.folder = folder
        self.made = 0

    def answer(self, task: Task) -> dict[str, Any]:
        """Run one task; a side that fails says why."""
        try:
            return self.run(task)
        except Exception as error:  # noqa: BLE001 - whatever a peer raises goes onto the page
            return {"cannot": f"{type(error).__name__}: {error}"[:600]}

    def run(self, task: Task) -> dict[str, Any]:
        """Run one task; return its seconds and what it found, or that this side cannot do it."""
        prepare: Callable[[Task], tuple[Callable[[], Any], Callable[[], Any]] | None]
        prepare = getattr(self, f"prepare_{task['do']}")
        works = prepare(task)
        if works is None:
            return {"cannot": ""}
        work, look = works
        self.spark._jvm.java.lang.System.gc()  # type: ignore[union-attr]  # noqa: SLF001 - no other way to ask the JVM
        started = time.perf_counter()
        found = work()
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "found": look() if found is None else found}

    def prepare_write(self, task: Task) -> Any:
        """Write a new table."""
        path = self._fresh()
        rows = self._rows(task["rows"], FILES)
        return (lambda: self.form.write(rows, path)), (lambda: self._total(path))

    def prepare_scan(self, task: Task) -> Any:
        """Read columns of a table, all or those of rows that a condition keeps; sum them."""
        path = self._base(task["rows"], FILES)
        sums, columns = task.get("sums", TOTAL), task.get("columns")
        is_pushed = task.get("is_pushed", False) and isinstance(self.form, Pennon)

        def work() -> Any:
            if is_pushed:
                found = self.form.totals(path)
            else:
                found = self.form.load(path, columns, task.get("condition")).selectExpr(*sums)
            return [str(value) for value in found.collect()[0]]

        return work, None

    def prepare_delete(self, task: Task) -> Any:
        """Delete the rows of a condition."""
        return self._change("delete", task, task["condition"])

    def prepare_update(self, task: Task) -> Any:
        """Change one column of the rows of a condition."""
        return self._change("update", task, task["condition"], "f64", "f64 + 1")

    def prepare_merge(self, task: Task) -> Any:
        """Merge a tenth as many rows: of eleven, ten are in the table."""
        source = self.spark.range(0, task["rows"] // 10, 1, FILES).selectExpr("id * 11 AS id")
        return self._change("merge", task, source.selectExpr(*COLUMNS))

    def prepare_compact(self, task: Task) -> Any:
        """Compact a table of many small files."""
        return self._change("compact", {**task, "files": SMALL_FILES})

    def prepare_stream_in(self, task: Task) -> Any:
        """Write a stream of Parquet files into a new table, a file a batch."""
        if not self.form.has_sink:
            return None
        path, files = self._fresh(), self._input(task["rows"])
        rows = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1").parquet(files)
        return (lambda: self._finish(rows.writeStream.format(self.form.name), path) and None), (
            lambda: self._total(path)
        )

    def prepare_stream_out(self, task: Task) -> Any:
        """Read a table as a stream, a file a batch."""
        if not hasattr(self.form, "source"):
            return None
        rows, path = self.form.source(self._base(task["rows"], FILES)), self._fresh()
        writer = rows.writeStream.format("noop")

        def work() -> list[int]:
            query = self._finish(writer, path)
            return [sum(each["numInputRows"] for each in query.recentProgress)]

        return work, None

    def prepare_feed(self, task: Task) -> Any:
        """Read what changed since a table was written: 1 % of its rows were updated, 1 % deleted."""
        if not hasattr(self.form, "changes"):
            return None
        path = str(self.folder / f"feed_{task['rows']}.lance")
        if not Path(path).exists():
            self.form.write_with_feed(self._rows(task["rows"], FILES), path)
            self.form.update(path, "i64 % 100 = 7", "f64", "f64 + 1")
            self.form.delete(path, "i64 % 100 = 8")

        def work() -> list[str]:
            row = self.form.changes(path).selectExpr("count(*)", *TOTAL).collect()[0]
            return [str(value) for value in row]

        return work, None

    def _finish(self, writer: Any, path: str) -> Any:
        """Run a stream to its end, and return its query; its checkpoint is beside the table."""
        writer = writer.option("checkpointLocation", f"{path}-checkpoint").trigger(
            availableNow=True
        )
        query = writer.start(path)
        query.awaitTermination()
        if query.exception() is not None:
            raise query.exception()
        return query

    def _input(self, rows: int) -> str:
        """Return a folder of Parquet files, one for each batch."""
        path = self.folder / f"input_{rows}"
        if not path.exists():
            self._rows(rows, BATCHES).write.parquet(str(path))
        return str(path)

    def _change(self, what: str, task: Task, *arguments: Any) -> Any:
        change = getattr(self.form, what, None)
        if change is None:
            return None
        path = self._fresh()
        shutil.copytree(self._base(task["rows"], task.get("files", FILES)), path)
        return (lambda: change(path, *arguments) and None), (lambda: self._total(path))

    def _total(self, path: str) -> list[str]:
        """Return the totals of a table, which is then taken away."""
        row = self.form.load(path, None, None).selectExpr("count(*)", *TOTAL).collect()[0]
        shutil.rmtree(path)
        return [str(value) for value in row]

    def _rows(self, rows: int, files: int) -> DataFrame:
        return self.spark.range(0, rows, 1, files).selectExpr(*COLUMNS)

    def _base(self, rows: int, files: int) -> str:
        """Return a table that is written once."""
        path = self.folder / f"base_{rows}_{files}.lance"
        if not path.exists():
            self.form.write(self._rows(rows, files), str(path))
        return str(path)

    def _fresh(self) -> str:
        """Return a path that was never used: no side remembers anything of it."""
        self.made += 1
        return str(self.folder / f"table_{self.made}.lance")


def main() -> None:
    """Answer tasks until stdin ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints is no answer
    side = Side(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(side.answer(json.loads(line))), file=answers, flush=True)
    side.spark.stop()


if __name__ == "__main__":
    main()
