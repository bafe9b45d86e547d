"""Executors die, tasks fail, drivers are killed: the old version or the new one, each row once."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from pyspark.sql import SparkSession

import pennon
from pennon.spark import LanceTable
from tests.spark.changes import NEW_ROWS, OPERATIONS, ROWS, files, named, rows_of
from tests.spark.failing import trouble
from tests.spark.kills import WHIMS

ROOT = Path(__file__).parents[2]
VERSIONS = {"compaction": 3, "z-order": 3}  # one that reserves ids
WRITES = set(OPERATIONS) - {"delete", "delete by statistics"}
"""They leave data files behind when an attempt is lost; others leave deletion files."""


def run(module: str, *arguments: str, dies: bool = False) -> dict[str, Any]:
    """Run a program of this folder, and return what it saw."""
    command = [sys.executable, "-m", f"tests.spark.{module}", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False
    )
    if dies:
        assert done.returncode == -9, done.stderr[-4000:]
        return {}
    assert done.returncode == 0, done.stderr[-4000:]
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("deed", "names"),
    [
        ("kills", ["merge"]),
        pytest.param("kills", sorted(set(OPERATIONS) - {"merge"}), marks=pytest.mark.slow),
    ],
)
def test_operations_succeed_after_executor_loss(
    deed: str, names: list[str], tmp_path: Path
) -> None:
    seen = run("kills", deed, str(tmp_path), *names)
    for name in names:
        told = seen[name]
        assert (told["failed"], told["happened"]) == ("", True), (name, told)
        assert told["version"] == VERSIONS.get(name, 2), name
        assert told["orphans"] > 0 or name not in WRITES, name
        uri = str(tmp_path / f"{name}.lance")
        assert OPERATIONS[name].seen(uri) == OPERATIONS[name].after, name
        cleaned(uri)
        assert OPERATIONS[name].seen(uri) == OPERATIONS[name].after, name


def cleaned(uri: str) -> None:
    """Clean up, and see that what no version names is gone."""
    pennon.dataset(uri).cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert files(uri) == named(uri)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_nondeterministic_source_with_lost_executor_writes_each_row_once(tmp_path: Path) -> None:
    """An executor dies when some tasks are done, and what it had shuffled is computed anew, otherwise.

    Spark gives the job up then, which begins anew.
    """
    told = run("kills", "kills", str(tmp_path), WHIMS)[WHIMS]
    assert (told["failed"], told["happened"]) == ("", True), told
    uri = str(tmp_path / f"{WHIMS}.lance")
    assert (told["version"], told["said"]) == (2, NEW_ROWS)
    assert len(rows_of(uri)) == ROWS + NEW_ROWS
    cleaned(uri)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_succeed_when_first_task_attempts_fail_after_writing(
    spark: SparkSession, uri: str, name: str, tmp_path: Path
) -> None:
    OPERATIONS[name].make(uri)
    with trouble("fails", tmp_path / "trouble"):
        OPERATIONS[name].run(LanceTable.forPath(spark, uri))
    assert OPERATIONS[name].seen(uri) == OPERATIONS[name].after
    assert lance.dataset(uri).version == VERSIONS.get(name, 2)


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=() if each == "merge" else pytest.mark.slow) for each in OPERATIONS],
)
def test_speculative_task_attempts_count_once(
    spark: SparkSession, uri: str, name: str, tmp_path: Path
) -> None:
    """As where Spark speculates, which it does on several machines alone; the others' files are orphans."""
    it = OPERATIONS[name]
    it.make(uri)
    with trouble("doubles", tmp_path / "trouble"):
        it.run(LanceTable.forPath(spark, uri))
    assert it.seen(uri) == it.after
    assert lance.dataset(uri).version == VERSIONS.get(name, 2)
    assert (files(uri) > named(uri)) == (name in WRITES)
    cleaned(uri)
    assert it.seen(uri) == it.after


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_driver_is_killed_at_its_commit(
    spark: SparkSession, uri: str, name: str, when: str
) -> None:
    run("driver_kills", when, name, uri, dies=True)
    is_done = when == "after"
    last = VERSIONS.get(name, 2)
    assert pennon.dataset(uri).version == (last if is_done else last - 1)
    it = OPERATIONS[name]
    assert it.seen(uri) == (it.after if is_done else it.before)
    if not is_done:
        cleaned(uri)
        assert it.seen(uri) == it.before
        it.run(LanceTable.forPath(spark, uri))
        assert it.seen(uri) == it.after
