"""lance-spark beside us in `make bench-sql`: the same queries over the same Lance tables, by its catalog, in its own Spark.

``sql_side.py FOLDER CLASS_PATH`` starts a session, reads one JSON task a line from stdin, ``{"text": …, "parameters": …}``, and
answers with one JSON line of its seconds and its number of rows; the first line says ``ready``.  It imports nothing but PySpark.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from spark_side import CONF, CONF_OF_SIDE

CATALOG = "com.lancedb.lance.spark.LanceNamespaceSparkCatalog"


def session(folder: Path, class_path: str) -> SparkSession:
    """Start a session in which each database is a catalog of lance-spark over a folder of tables."""
    conf = {**CONF, "spark.sql.extensions": CONF_OF_SIDE["lance-spark"]["spark.sql.extensions"]}
    for database in ("tpch", "web"):
        name = f"spark.sql.catalog.{database}"
        conf |= {name: CATALOG, f"{name}.impl": "dir", f"{name}.root": str(folder / database)}
    builder = SparkSession.builder.master("local[2]").appName("lance-spark")
    builder = builder.config("spark.driver.extraClassPath", class_path)
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def run(spark: SparkSession, task: dict[str, Any]) -> dict[str, Any]:
    """Run one query to its last row; one that fails says why."""
    text = task["text"].replace("tpch.", "tpch.default.").replace("web.hits", "web.default.hits")
    try:
        spark._jvm.java.lang.System.gc()  # type: ignore[union-attr]  # noqa: SLF001 - no other way to ask the JVM
        began = time.perf_counter()
        rows = spark.sql(text, task["parameters"] or None).collect()
    except ConnectionError:
        raise  # the JVM has died, so this process ends, and is started anew
    except Exception as error:  # noqa: BLE001 - whatever it raises goes onto the page
        return {"cannot": " ".join(f"{type(error).__name__}: {error}".split())[:400]}
    return {"seconds": time.perf_counter() - began, "rows": len(rows)}


def main() -> None:
    """Answer tasks until stdin ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints is no answer
    spark = session(Path(sys.argv[1]), sys.argv[2])
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(run(spark, json.loads(line))), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
