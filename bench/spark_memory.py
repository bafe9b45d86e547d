"""``make bench-spark-memory``: the memory that a merge on Spark takes, by the rows of the table.

Each size is a process of its own, with a session of two cores.  A table of as many rows is made, and rows, of eleven
ten match, are merged into it: so many as ``--merged`` says, or 11 % of the table's.  The highest anonymous memory of
each kind of process is told apart: the driver, its JVM, and the workers in Python, one by one.  Pages of files that
the system maps are not counted; they are not the process's own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from page import heads, row
from process_memory import DRIVER, JVM, WORKER, Peaks

SIZES = (100_000, 1_000_000, 10_000_000)
FILE_ROWS = 500_000
HEAP = "1g"


def merge(rows: int, merged: int, folder: Path) -> dict[str, float]:
    """Make a table, merge into it, and return the seconds and the highest memory of the merge, in MB."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only a worker needs it
    from spark_side import COLUMNS, CONF  # noqa: PLC0415

    from pennon.spark import LanceTable, write  # noqa: PLC0415

    builder = SparkSession.builder.master("local[2]")
    for key, value in {**CONF, "spark.driver.memory": HEAP, "spark.local.dir": str(folder)}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    uri = str(folder / "table")
    write(spark.range(rows).selectExpr(*COLUMNS), uri, max_rows_per_file=FILE_ROWS)
    end = rows + merged // 11
    source = spark.range(end - merged, end).selectExpr(*COLUMNS)
    table = LanceTable.forPath(spark, uri)
    with Peaks(os.getpid()) as peaks:
        start = time.perf_counter()
        clauses = table.alias("t").merge(source.alias("s"), "t.i64 = s.i64")
        clauses.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        seconds = time.perf_counter() - start
    if table.count() != end:
        message = f"{table.count()} rows after the merge, not {end}"
        raise RuntimeError(message)
    spark.stop()
    return {"seconds": round(seconds, 1)} | {part: each / 1e6 for part, each in peaks.bytes.items()}


def measure(rows: int, merged: int) -> dict[str, float]:
    """Run a merge in a process of its own."""
    folder = Path(tempfile.mkdtemp(prefix="pennon-memory-"))
    try:
        command = [sys.executable, __file__, "--worker", str(rows), str(merged), str(folder)]
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        found: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
        return found
    finally:
        shutil.rmtree(folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all sizes, and print a table of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES, help="sizes of the table")
    parser.add_argument(
        "--merged", type=int, help="rows that are merged; by default 11 %% of the table's"
    )
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.worker is not None:
        rows, merged, folder = chosen.worker
        print(json.dumps(merge(int(rows), int(merged), Path(folder))))
        return
    print(
        "\n".join(
            heads(
                "rows of the table",
                "merged",
                "seconds",
                *(f"{part}, MB" for part in (DRIVER, JVM, WORKER)),
            )
        )
    )
    for size in chosen.rows:
        count = chosen.merged or size * 11 // 100
        found = measure(size, count)
        cells = [
            f"{found['seconds']:.1f}",
            *(f"{found[part]:,.0f}" for part in (DRIVER, JVM, WORKER)),
        ]
        print(row(f"{size:,}", f"{count:,}", *cells), flush=True)


if __name__ == "__main__":
    main()
