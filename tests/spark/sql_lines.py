"""A Spark session that answers SQL: ``sql_lines.py CLASS_PATH FOLDER`` under another Python.

It says ``ready``; then each line of stdin is a statement, and its answer a line of JSON: rows, or the
error.  The folder
is the root of lance-spark's catalog, so ``lance.default.t`` is the table ``FOLDER/t.lance``.
"""

from __future__ import annotations

import json
import os
import sys

from pyspark.sql import SparkSession

CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.extensions": "com.lancedb.lance.spark.extensions.LanceSparkSessionExtensions",
    "spark.sql.catalog.lance": "com.lancedb.lance.spark.LanceNamespaceSparkCatalog",
    "spark.sql.catalog.lance.impl": "dir",
}


def main() -> None:
    """Answer until stdin ends."""
    class_path, folder = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints is no answer
    builder = SparkSession.builder.master("local[2]").appName("lance-spark")
    own = {
        "spark.driver.extraClassPath": class_path,
        "spark.sql.catalog.lance.root": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }
    for key, value in {**CONF, **own}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        try:
            told: dict[str, object]
            told = {"rows": [list(row) for row in spark.sql(json.loads(line)).collect()]}
        except Exception as error:  # noqa: BLE001 - the test says what may fail
            told = {"error": str(error)}
        print(json.dumps(told), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
