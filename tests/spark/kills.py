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
from tests.spark.changes import OPERATIONS, make
from tests.spark.failing import trouble
from tests.spark.modes import CONF

EXTRA = {
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
}


def start(*, speculates: bool) -> SparkSession:
    """Start two executors of one core each."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    here = {"spark.executorEnv.PYTHONPATH": _python_path(), "spark.speculation": str(speculates)}
    for key, value in {**CONF, **EXTRA, **here}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _python_path() -> str:
    root = str(Path(__file__).parents[2])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


def act(spark: SparkSession, deed: str, name: str, uri: str) -> dict[str, Any]:
    """Do one operation, while the deed is done to it."""
    make(uri)
    table, folder = LanceTable.forPath(spark, uri), Path(uri + ".trouble")
    failed = ""
    with trouble(deed, folder, OPERATIONS[name].done):
        try:
            OPERATIONS[name].run(table)
        except PySparkException as error:
            failed = str(error)[:500]
    now = pennon.dataset(uri)
    named = sum(len(each.data_files()) for each in now.get_fragments())
    written = len(list(Path(uri, "data").iterdir()))
    return {
        "failed": failed,
        "happened": any(path.name in ("slow", "killed") for path in folder.iterdir()),
        "version": now.version,
        "orphans": written - named,
    }


def main() -> None:
    """Do all operations named."""
    deed, folder, *names = sys.argv[1:]
    spark = start(speculates=deed == "straggles")
    seen = {name: act(spark, deed, name, str(Path(folder, f"{name}.lance"))) for name in names}
    print(json.dumps(seen), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
