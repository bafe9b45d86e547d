"""The runner of tasks: a message of each number, whatever dies on the way; `test_modes` runs it elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pennon.spark.run_tasks import run_on_rows, run_tasks
from tests.spark.failing import CountingTask, DyingTask, FailingTask


def test_messages_come_in_the_order_of_the_numbers(spark: SparkSession, tmp_path: Path) -> None:
    task = DyingTask(str(tmp_path / "died"))
    squares = [str(number * number).encode() for number in range(20)]
    assert run_tasks(spark, task, 20) == squares
    assert Path(task.marker).exists()
    assert run_tasks(spark, task, 0) == []


def test_progress_is_told_up_to_the_end(spark: SparkSession, tmp_path: Path) -> None:
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


def test_a_task_that_fails_fails_the_run(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="task 3 fails on purpose"):
        run_tasks(spark, FailingTask(3), 5)


def test_each_partition_of_rows_has_an_answer(spark: SparkSession) -> None:
    assert run_on_rows(spark.range(0, 100, 1, 4), CountingTask()) == [25] * 4
