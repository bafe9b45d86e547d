"""Streams that fail and are run again, while others change the table: each row once, at both ends."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pennon
from tests.spark.failing import FailingSink
from tests.spark.flows import Flow, drop

SEEDS = 2
MANY_SEEDS = int(os.environ.get("PENNON_STREAM_ATTACKS", "24"))
"""`make stream-attack` tries 200."""
FAULTS = ["before", "after", "gone before", "gone after", "task", "fine"]
MOST_RUNS = 60
WANTED = ["the sink fails", "exited unexpectedly", "EOFException"]
"""What Spark says when the sink raised an error, or its process was gone."""


class Attack:
    """A stream from files to a table, and one from there to another table, both failing by a script."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.first = Flow(spark, folder / "first")
        self.second = Flow(spark, folder / "second")
        for flow in (self.first, self.second):
            flow.inputs.parent.mkdir()
        self.appended: list[int] = []
        self.dropped: list[int] = []
        self.log: list[str] = []

    def drop(self) -> None:
        """Put down new rows for the first stream."""
        ids = list(range(len(self.dropped), len(self.dropped) + self.random.randrange(1, 9)))
        self.dropped += ids
        drop(self.first.inputs, ids)

    def run(self, *, calm: bool = False) -> bool:
        """Run each stream once to its end, or to a failure; return whether both ended well."""
        results = [self._run(self.first, self.first.source(), calm=calm)]
        if self._has_table():
            reader = self.first.spark.readStream.format("lance")
            rows = reader.option("maxFilesPerTrigger", str(self.random.randrange(1, 4)))
            results.append(self._run(self.second, rows.load(self.first.uri), calm=calm))
        return all(results)

    def _has_table(self) -> bool:
        return any(Path(self.first.uri).glob("_versions/*.manifest"))

    def _run(self, flow: Flow, rows: object, *, calm: bool) -> bool:
        script = flow.inputs.parent / "script"
        words = [] if calm else [self.random.choice(FAULTS) for _ in range(2)]
        script.write_text("\n".join(words))
        try:
            flow.run(rows, kind="failing_lance", script=str(script))  # type: ignore[arg-type]
        except Exception as error:
            self.log.append(f"{words}: {str(error)[-300:]}")
            if not any(said in str(error) for said in WANTED):
                raise
            return False
        if not calm and self.random.random() < 0.4:
            self.log.append("the last commit is forgotten")
            flow.forget_last_commit()
            return False
        return True

    def disturb(self) -> None:
        """Change the first table as others do, rows staying what they are."""
        if not self._has_table():
            return
        ds = pennon.dataset(self.first.uri)
        what = self.random.choice(["append", "append by pylance", "compact", "clean up", "nothing"])
        self.log.append(what)
        if what.startswith("append"):
            new = [10_000 + len(self.appended)]
            self.appended += new
            library = lance if what.endswith("pylance") else pennon
            library.write_dataset(
                pa.table({"id": pa.array(new, pa.int64()), "k": ["o"]}), ds.uri, mode="append"
            )
        elif what == "compact":
            ds.optimize.compact_files()
        elif what == "clean up":
            ds.cleanup_old_versions(retain_versions=30, delete_unverified=True)


@pytest.fixture(scope="module", autouse=True)
def failing_sink(spark: SparkSession) -> None:
    """Make the sink known to Spark."""
    spark.dataSource.register(FailingSink)


def check(spark: SparkSession, folder: Path, seed: int) -> None:
    """Check one attack."""
    folder.mkdir(exist_ok=True)
    attack = Attack(spark, folder, seed)
    for _ in range(attack.random.randrange(2, 5)):
        attack.drop()
        attack.run()
        attack.disturb()
    for _ in range(MOST_RUNS):
        if attack.run(calm=True):
            break
    expected = Counter([*attack.dropped, *attack.appended])
    assert Counter(attack.first.ids()) == expected, attack.log
    assert Counter(attack.second.ids()) == expected, attack.log
    found = lance.dataset(attack.first.uri).to_table()["id"].to_pylist()
    assert Counter(found) == expected, attack.log


@pytest.mark.parametrize("seed", range(SEEDS))
def test_streams_that_fail_write_and_read_each_row_once(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    check(spark, tmp_path, seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shard", range(6))
def test_streams_that_fail_in_many_ways_write_and_read_each_row_once(
    spark: SparkSession, tmp_path: Path, shard: int
) -> None:
    for seed in range(SEEDS + shard, MANY_SEEDS, 6):
        check(spark, tmp_path / str(seed), seed)
