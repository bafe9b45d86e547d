"""Programs of operations on Spark, by pylance and by Pennon without Spark: the same rows after every step."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from shutil import copytree
from typing import Any

import lance
import pytest
from pyspark.sql import SparkSession

import pennon
from pennon.spark import LanceTable
from tests.spark.parity import PROGRAMS, ids_of_rows, make, seen

QUICK = {("clauses", "2.1", True), ("columns", "2.2", False), ("rows", "2.0", True)}
"""In every run."""


def _cases() -> Iterator[Any]:
    for case in product(PROGRAMS, ["2.0", "2.1", "2.2"], [True, False]):
        yield pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow)


@pytest.mark.parametrize(("name", "version", "stable"), list(_cases()))
def test_a_program_leaves_the_rows_that_pylance_leaves(
    spark: SparkSession, tmp_path: Path, name: str, version: str, stable: bool
) -> None:
    ours, theirs, plain = (str(tmp_path / f"{each}.lance") for each in ("ours", "theirs", "plain"))
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
