"""Tables that lance-spark and Pennon change in turns: after each step both, and pylance, read the same rows.

lance-spark runs in an interpreter of its own (`bench/spark_peers.py` makes it); where its jars or its
release of PySpark cannot be had, these tests are skipped with the reason.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import lance
import psutil
import pytest
from pyspark.sql import SparkSession

import pennon
import pennon.spark
from pennon.spark import LanceTable

ROOT = Path(__file__).parents[2]
TRIES, HANGS_AFTER = 5, 90
Rows = dict[int, list[Any]]

MADE = "SELECT id AS k, concat('n', id) AS name, id * 0.5D AS v, array('a', 'b') AS tags FROM range({})"
MERGED = "(4L, 'merged', 0.25D, array('m')), (1000L, 'new', NULL, NULL)"
MERGED_2 = "(4L, 'again', 9.5D, array('m', NULL)), (1001L, NULL, 1.0D, array())"
ADDED = "(2000L, 'added', 1.5D, array('x', 'y')), (2001L, NULL, NULL, NULL)"
ADDED_2 = "(3000L, 'late', 2.5D, array())"
KEYS = "k, name, v, tags"


class LanceSpark:
    """A running session of lance-spark.

    Its release 0.0.14 hangs at times: a task that writes waits for a thread that has missed the end of
    the rows.  Such a statement has committed nothing, so it is said again to a new session.
    """

    def __init__(self, home: dict[str, str], folder: Path) -> None:
        self.home, self.folder = home, folder
        self.process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHONPATH", "SPARK_"))}
        program = str(Path(__file__).with_name("sql_lines.py"))
        process = subprocess.Popen(
            [self.home["python"], program, self.home["class_path"], str(self.folder)],
            env=env | {"PYSPARK_PYTHON": self.home["python"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout.readline() == "ready\n"
        return process

    def sql(self, statement: str) -> list[list[Any]]:
        for _ in range(TRIES):
            self.process.stdin.write(json.dumps(statement) + "\n")
            self.process.stdin.flush()
            answers = self.process.stdout
            assert answers is not None
            if select.select([answers], [], [], HANGS_AFTER)[0]:
                told = json.loads(answers.readline())
                assert "error" not in told, told["error"]
                return told["rows"]
            self.end()
            self.process = self._start()
        raise TimeoutError(statement)

    def end(self) -> None:
        for each in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                each.kill()
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanceSpark]:
    words = [sys.executable, str(ROOT / "bench" / "spark_peers.py"), "lance-spark"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    home = json.loads(done.stdout)
    if "reason" in home:
        pytest.skip(f"lance-spark cannot be had here: {home['reason']}")
    session = LanceSpark(home, tmp_path_factory.mktemp("lance-spark"))
    yield session
    session.end()


class Theirs:
    """Changes of a table by lance-spark's SQL."""

    def __init__(self, peer: LanceSpark, name: str) -> None:
        self.sql, self.name = peer.sql, f"lance.default.{name}"

    def create(self, rows: int) -> None:
        self.sql(f"CREATE TABLE {self.name} AS {MADE.format(rows)}")

    def append(self, values: str) -> None:
        self.sql(f"INSERT INTO {self.name} VALUES {values}")

    def delete(self, condition: str) -> None:
        self.sql(f"DELETE FROM {self.name} WHERE {condition}")

    def update(self, condition: str, value: str) -> None:
        self.sql(f"UPDATE {self.name} SET v = {value} WHERE {condition}")

    def merge(self, values: str) -> None:
        source = f"(SELECT * FROM VALUES {values} AS s({KEYS}))"
        self.sql(
            f"MERGE INTO {self.name} t USING {source} s ON t.k = s.k "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def rows(self) -> Rows:
        return {row[0]: row[1:] for row in self.sql(f"SELECT {KEYS} FROM {self.name}")}


class Ours:
    """The same by `pennon.spark`."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self.spark, self.uri = spark, uri

    def append(self, values: str) -> None:
        pennon.spark.write(self._values(values), self.uri, "append")

    def delete(self, condition: str) -> None:
        LanceTable.forPath(self.spark, self.uri).delete(condition)

    def update(self, condition: str, value: str) -> None:
        LanceTable.forPath(self.spark, self.uri).update(condition, {"v": value})

    def merge(self, values: str) -> None:
        table = LanceTable.forPath(self.spark, self.uri).alias("t")
        merge = table.merge(self._values(values).alias("s"), "t.k = s.k")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def compact(self) -> None:
        LanceTable.forPath(self.spark, self.uri).optimize().executeCompaction()

    def rows(self) -> Rows:
        found = LanceTable.forPath(self.spark, self.uri).toDF().select(*KEYS.split(", ")).collect()
        return {row[0]: list(row)[1:] for row in found}

    def _values(self, values: str) -> Any:
        return self.spark.sql(f"SELECT * FROM VALUES {values} AS s({KEYS})")


def _made(rows: int) -> Rows:
    return {k: [f"n{k}", k * 0.5, ["a", "b"]] for k in range(rows)}


@pytest.mark.slow  # fetches 270 MB of jars and a PySpark of its own, once
@pytest.mark.timeout(1800)
def test_table_changed_in_turns_with_lance_spark(peer: LanceSpark, spark: SparkSession) -> None:
    uri = str(peer.folder / "turns.lance")
    ours, theirs = Ours(spark, uri), Theirs(peer, "turns")
    rows: Rows = {}

    def step(change: Callable[[], None], after: Rows) -> None:
        change()
        assert theirs.rows() == after
        assert ours.rows() == after
        table = lance.dataset(uri)
        table.validate()
        assert table.count_rows() == len(after)

    step(lambda: theirs.create(40), rows := _made(40))
    rows = {k: row for k, row in rows.items() if k % 5}
    step(lambda: ours.delete("k % 5 = 0"), rows)
    rows = {k: [n, v * 2 if k < 10 else v, t] for k, (n, v, t) in rows.items()}
    step(lambda: ours.update("k < 10", "v * 2"), rows)
    rows |= {4: ["merged", 0.25, ["m"]], 1000: ["new", None, None]}
    step(lambda: ours.merge(MERGED), rows)
    rows |= {2000: ["added", 1.5, ["x", "y"]], 2001: [None, None, None]}
    step(lambda: ours.append(ADDED), rows)

    rows = {k: row for k, row in rows.items() if k % 7}
    step(lambda: theirs.delete("k % 7 = 0"), rows)
    rows = {k: [n, 0.0 if k > 30 else v, t] for k, (n, v, t) in rows.items()}
    step(lambda: theirs.update("k > 30", "0.0D"), rows)
    rows |= {4: ["again", 9.5, ["m", None]], 1001: [None, 1.0, []]}
    step(lambda: theirs.merge(MERGED_2), rows)
    rows[3000] = ["late", 2.5, []]
    step(lambda: theirs.append(ADDED_2), rows)

    step(ours.compact, rows)
    assert len(pennon.dataset(uri).get_fragments()) == 1
    del rows[1]
    step(lambda: theirs.delete("k = 1"), rows)
    rows[2] = ["n2", -1.0, ["a", "b"]]
    step(lambda: theirs.update("k = 2", "-1.0D"), rows)
    del rows[3]
    step(lambda: ours.delete("k = 3"), rows)
