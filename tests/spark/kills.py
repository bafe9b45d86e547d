"""Operations on a cluster where something goes wrong in each: ``python -m tests.spark.kills DEED FOLDER NAME…``.

The program prints one line of JSON with what it saw; `test_kills` judges it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import pennon
from pennon.spark import LanceTable
from tests.spark.changes import OPERATIONS, files, make, merge_whims, named
from tests.spark.failing import trouble
from tests.spark.modes import CONF

EXTRA = {
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
WHIMS = "merge of whims"


def start() -> SparkSession:
    """Start a session on two executors of one core each."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    here = {"spark.executorEnv.PYTHONPATH": _python_path()}
    for key, value in {**CONF, **EXTRA, **here}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _python_path() -> str:
    root = str(Path(__file__).parents[2])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


def act(spark: SparkSession, deed: str, name: str, uri: str) -> dict[str, Any]:
    """Do one operation, while the deed is done to it."""
    make(uri) if name == WHIMS else OPERATIONS[name].make(uri)
    table, folder = LanceTable.forPath(spark, uri), Path(uri + ".trouble")
    said, failed = 0, ""
    with trouble(deed, folder, 3 if name == WHIMS else OPERATIONS[name].done):
        try:
            if name == WHIMS:
                said = merge_whims(table)
            else:
                OPERATIONS[name].run(table)
        except PySparkException as error:
            failed = str(error)[:500]
    return {
        "said": said,
        "failed": failed,
        "happened": (folder / "killed").exists(),
        "version": pennon.dataset(uri).version,
        "orphans": len(files(uri) - named(uri)),
    }


def main() -> None:
    """Do all operations named."""
    deed, folder, *names = sys.argv[1:]
    spark = start()
    seen = {name: act(spark, deed, name, str(Path(folder, f"{name}.lance"))) for name in names}
    print(json.dumps(seen), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
