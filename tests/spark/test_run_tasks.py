"""The runner of tasks: one message a task in order, with retries; `test_modes` runs it elsewhere."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from pennon.io import open_store
from pennon.spark import worker_daemon
from pennon.spark.placement import keys_of_partitions
from pennon.spark.run_tasks import message_of, run_on_rows, run_tasks
from tests.spark.failing import CountingTask, DyingTask, FailingTask
from tests.unit.io.power_cut import watched_disk


def test_run_tasks_returns_messages_in_task_order(spark: SparkSession, tmp_path: Path) -> None:
    task = DyingTask(str(tmp_path / "died"))
    squares = [str(number * number).encode() for number in range(20)]
    assert run_tasks(spark, task, 20) == squares
    assert Path(task.marker).exists()
    assert run_tasks(spark, task, 0) == []


class WritingTask:
    """Writes a file of a table at the level ``commit``, which another process commits."""

    def run(self, uri: str) -> str:
        """Write the file."""
        open_store(uri, {"durability": "commit"}).put("data/x.lance", b"rows")
        return "data/x.lance"

    def to_bytes(self, answer: str) -> bytes:
        """Return the answer as bytes."""
        return answer.encode()

    def from_bytes(self, message: bytes) -> str:
        """Return the answer."""
        return message.decode()


def test_files_of_a_task_are_synced_before_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watched_disk(tmp_path, monkeypatch) as disk:
        assert message_of(WritingTask(), str(tmp_path / "t.lance")) == b"data/x.lance"
    assert disk.cuts[-1].lost == {"t.lance/data/x.lance": b"rows"}


def test_workers_of_the_worker_daemon_start_with_pennon_loaded(spark: SparkSession) -> None:
    def facts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        loaded = {"pandas", "pennon.spark.source.writer"} <= sys.modules.keys()
        seen = [loaded, gc.get_freeze_count() > 0]
        for _ in batches:
            yield pa.record_batch({"is_true": seen})

    assert spark.conf.get("spark.python.daemon.module") == worker_daemon.__name__
    rows = spark.range(1, numPartitions=1).mapInArrow(facts, "is_true boolean").collect()
    assert [row.is_true for row in rows] == [True, True]


def test_run_tasks_reports_progress_until_the_last_task(
    spark: SparkSession, tmp_path: Path
) -> None:
    Path(tmp_path / "died").touch()
    told: list[tuple[int, int]] = []
    context = spark.sparkContext
    context.setJobGroup("mine", "of the caller")
    task = DyingTask(str(tmp_path / "died"), seconds=0.2)
    run_tasks(spark, task, 12, progress=lambda done, of: told.append((done, of)))
    assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    assert told == sorted(told)
    assert (told[-1], {of for _, of in told}) == ((12, 12), {12})
    assert any(0 < done < 12 for done, _ in told)


def test_run_tasks_raises_the_error_of_a_failed_task(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="task 3 fails on purpose"):
        run_tasks(spark, FailingTask(3), 5)


def test_run_on_rows_returns_one_answer_per_partition(spark: SparkSession) -> None:
    assert run_on_rows(spark.range(0, 100, 1, 4), CountingTask()) == [25] * 4


def test_keys_of_partitions_are_placed_there_by_spark(spark: SparkSession) -> None:
    keys = keys_of_partitions(7)
    placed = spark.createDataFrame(list(enumerate(keys)), "number int, key int")
    found = placed.repartition(7, "key").select("number", sf.spark_partition_id()).collect()
    assert sorted(map(tuple, found)) == [(number, number) for number in range(7)]
