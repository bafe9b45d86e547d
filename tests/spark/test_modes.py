"""Classic, separate executor processes, Connect: the same tables, the same answers.

Nothing is registered: ``format("lance")`` is found because the package is installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import pennon
from demo.flights import TABLES, find_csv_files
from tests.spark.long_program import live
from tests.spark.modes import answers_of, tell
from tests.spark.parity import PROGRAMS

ROOT = Path(__file__).parents[2]
CLASSIC = "classic"
MODES = (CLASSIC, "local-cluster[2,1,1024]", "connect")
STEPS = 110
SLOW = MODES[:2]
"""All other tests run in the classic mode, and `test_kills` on executors of their own."""


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's tables as Parquet files, made without Spark; of the flights, two months."""
    folder = tmp_path_factory.mktemp("parquet")
    files = find_csv_files(folder)
    for name in TABLES:
        times = ["time_hour"] if name in ("flights", "weather") else []
        frame = pd.read_csv(files[name], parse_dates=times)
        if name == "flights":
            frame = frame[frame["month"].isin([1, 7])]
        frame.to_parquet(folder / f"{name}.parquet", coerce_timestamps="us")
    return folder


@pytest.fixture(scope="module")
def truth(spark: SparkSession, parquet: Path) -> dict[str, str]:
    """The answers of Spark over Parquet."""
    return answers_of(spark, parquet, "parquet")


def story(mode: str, spark: SparkSession, parquet: Path, folder: Path) -> dict[str, Any]:
    """Return what the program of `modes` saw, in the tests' own session or in a process of the mode."""
    if mode == CLASSIC:
        return tell(spark, parquet, folder)
    return run("modes", mode, str(parquet), str(folder), seconds=280)


def run(module: str, *arguments: str, seconds: int) -> dict[str, Any]:
    """Run a program of this folder in a process of its own, and return what it saw."""
    command = [sys.executable, "-m", f"tests.spark.{module}", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


@pytest.mark.parametrize(
    "mode", [pytest.param(each, marks=pytest.mark.slow if each in SLOW else ()) for each in MODES]
)
def test_spark_modes_answer_as_parquet(
    mode: str, spark: SparkSession, parquet: Path, truth: dict[str, str], tmp_path: Path
) -> None:
    seen = story(mode, spark, parquet, tmp_path)
    flights = pq.read_table(parquet / "flights.parquet")
    airlines = pq.read_table(parquet / "airlines.parquet").num_rows
    assert len(truth) == 4
    assert all(len(json.loads(answer)["flights"]) > 1 for answer in list(truth.values())[:2])
    assert seen["answers"] == truth
    assert (seen["inserted"], seen["travelled"]) == (1, airlines)
    assert seen["pruned"] == ["origin"]
    assert seen["read"] == sum(flights.column("distance").to_pylist())
    far = pc.sum(pc.greater(flights.column("distance"), 4000)).as_py()
    assert seen["filtered"] == far > 0
    assert seen["written"] == 1
    assert list(seen["converted"]) == [2, 2, 2]
    assert seen["changed"] == [
        [[1], [1], [1], [1], [3, 1, 1, 1]],
        [["AA", "two"], ["AS", "ALASKA AIRLINES INC."], ["YY", "new"]],
        1,
        "OPTIMIZE",
    ]
    longest = flights.group_by("origin").aggregate([("distance", "max"), ([], "count_all")])
    origins = sorted(map(list, zip(*longest.to_pydict().values(), strict=True)))
    rows = flights.num_rows
    assert seen["asked"] == [rows, far, origins, 7, far, [4], [airlines]]
    numbers = {"a": 10, "c": 30, "d": 40, "e": 50, "f": 1 << 40, "g": None}
    rows = [[day, n, True if day == "f" else None] for day, n in numbers.items()]
    assert seen["overwritten"] == [rows, 8]
    assert seen["named"] == [
        [["c", 30]],
        1,
        [["day", "string"], ["n", "int"], ["is_late", "boolean"]],
        ["day", "n", "late", "x"],
        [5, 5, 14],
        [[5, 2]],
        [["2.0", ["day", "is_late"]], ["2.1", ["n"]]],
        [["whole", 8]],
        [["side", 8]],
    ]
    assert seen["streamed"] == [20, 3, 20, 6]
    assert seen["searched"] == [
        [["a", 1, 3], ["a", 2, 2], ["b", 1, 50], ["b", 2, 49]],
        [["a", 1, 3], ["a", 2, 0], ["b", 1, 0], ["b", 2, 50]],
    ]
    lance.dataset(str(tmp_path / "days.lance")).validate()
    assert seen["queried"] == [[[30, 30], [7], [2, 0, 1, 1]], [2, 4, 7, 8], []]
    assert "there is no Lance table at" in seen["message"]
    table = pennon.dataset(str(tmp_path / "flights.lance"))
    assert (table.version, len(table.get_fragments())) == (1, 4)
    assert table.data_storage_version == "2.1"
    assert table.count_rows() == flights.num_rows


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("seed", "mode"), list(enumerate(MODES)))
def test_spark_modes_long_program_equals_model(
    mode: str, seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    """More than a hundred changes of one table, each compared with dicts."""
    if mode == CLASSIC:
        done = live(spark, tmp_path, seed, STEPS)
    else:
        done = run("long_program", mode, str(tmp_path), str(seed), str(STEPS), seconds=1700)
    assert sum(done.values()) == STEPS
    assert len(done) == 16


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mode", MODES[1:])
def test_programs_leave_the_same_rows_in_every_mode(mode: str, tmp_path: Path) -> None:
    """Those of `test_parity`, which runs them in the classic mode."""
    done = run("parity_run", mode, str(tmp_path), seconds=1700)
    assert done == {name: len(steps) for name, steps in PROGRAMS.items()}
