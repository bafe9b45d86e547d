"""Programs of operations on Spark, by pylance and by Pennon without Spark: the same rows after every step."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.parity import PROGRAMS
from tests.spark.parity_run import follow

QUICK = {("clauses", "2.1", True), ("columns", "2.2", False), ("rows", "2.0", True)}
"""In every run."""


def _cases() -> Iterator[Any]:
    for case in product(PROGRAMS, ["2.0", "2.1", "2.2"], [True, False]):
        yield pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow)


@pytest.mark.parametrize(("name", "version", "stable"), list(_cases()))
def test_spark_program_leaves_the_rows_of_pylance(
    spark: SparkSession, tmp_path: Path, name: str, version: str, stable: bool
) -> None:
    follow(spark, tmp_path, name, version, stable=stable)
