"""Running the programs of `parity`: ``python -m tests.spark.parity_run MODE FOLDER`` does it in a mode of its own process.

Of other file versions there, and with and without stable row ids.
"""

from __future__ import annotations

import json
import sys
from itertools import cycle
from pathlib import Path
from shutil import copytree

import lance
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import SparkSession

import pennon
from pennon.spark import LanceTable
from tests.spark import parity
from tests.spark.modes import start
from tests.spark.parity import PROGRAMS, ids_of_rows, make, seen


def follow(spark: SparkSession, folder: Path, name: str, version: str, *, stable: bool) -> int:
    """Run a program by all three, and compare after each step; return how many there were."""
    ours, theirs, plain = (str(folder / f"{each}.lance") for each in ("ours", "theirs", "plain"))
    make(theirs, version, stable=stable)
    copytree(theirs, ours)
    copytree(theirs, plain)
    for number, step in enumerate(PROGRAMS[name]):
        step.spark(LanceTable.forPath(spark, ours))
        step.plain(lance.dataset(theirs))
        step.plain(pennon.dataset(plain))
        wanted = seen(theirs)
        assert seen(ours) == wanted, (name, number)
        assert seen(plain) == wanted, (name, number)
        if stable:
            assert ids_of_rows(ours) == ids_of_rows(theirs), (name, number)
    assert {each.data_storage_version for each in map(lance.dataset, (ours, theirs))} == {version}
    return len(PROGRAMS[name])


def main() -> None:
    """Run all programs in a mode."""
    mode, folder = sys.argv[1:]
    register_pickle_by_value(parity)  # workers do not have the tests
    spark = start(mode)
    kinds = zip(cycle(["2.1", "2.0", "2.2"]), cycle([True, False]), strict=False)
    done = {}
    for name, (version, stable) in zip(PROGRAMS, kinds, strict=False):
        place = Path(folder, name)
        place.mkdir()
        done[name] = follow(spark, place, name, version, stable=stable)
    print(json.dumps(done), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
