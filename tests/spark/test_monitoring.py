"""Spans of Spark's workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_spans_of_tasks_in_workers_have_the_ids_of_spark(tmp_path: Path) -> None:
    spans = tmp_path / "spans"
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(
            [str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        ),
        "PENNON_OTEL_SETUP": "tests.spark.monitoring:start",
        "SPANS": str(spans),
        "TABLE": str(tmp_path / "table.lance"),
    }
    subprocess.run([sys.executable, "-m", "tests.spark.monitoring"], env=environment, check=True)
    found = [json.loads(line) for line in spans.read_text().splitlines()]
    tasks = [attributes for name, attributes in found if name == "pennon.task"]
    assert {each["kind"] for each in tasks} >= {"read"}
    assert all(each["spark.stage.id"] >= 0 for each in tasks)
    assert all(each["spark.partition.id"] >= 0 for each in tasks)
    assert all(each["spark.task.attempt.number"] == 0 for each in tasks)
