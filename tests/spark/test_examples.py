"""The examples in docstrings of `LanceTable` and `pennon.spark` run, and every public name has one.

A docstring runs with these names: ``spark``; ``path``, where a small table is, and ``table``, its
`LanceTable`; ``LanceTable``, ``pennon``, ``pa`` (pyarrow) and ``sf`` (Spark's functions).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import pennon
import pennon.spark
from pennon.spark import AttachedCatalog, LanceTable
from pennon.spark.table.builder import LanceTableBuilder
from pennon.spark.table.merge_builder import LanceMergeBuilder
from pennon.spark.table.optimize_builder import LanceOptimizeBuilder
from pennon.spark.table.ref_methods import TableBranches, TableTags
from tests.examples import members, run_examples

HELPERS = (LanceTableBuilder, LanceMergeBuilder, LanceOptimizeBuilder, TableTags, TableBranches)
NAMES: dict[str, Any] = {
    **{name: getattr(pennon.spark, name) for name in pennon.spark.__all__},
    **{each.__name__: each for each in HELPERS},
    **dict(members(LanceTable)),
    **dict(members(AttachedCatalog)),
}


@pytest.fixture(autouse=True)
def settings_stay(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the session's settings back: `local_session` gives the session of all tests its own."""
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    before = dict(spark.conf.getAll)
    yield
    for key, value in spark.conf.getAll.items():
        if value != before.get(key) and spark.conf.isModifiable(key):
            spark.conf.set(key, before[key]) if key in before else spark.conf.unset(key)


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name: str, spark: SparkSession, uri: str) -> None:
    rows = pa.table({"key": ["a", "b", "c"], "value": [1, 2, 3]})
    pennon.write_dataset(rows, uri)
    table = LanceTable.forPath(spark, uri)
    known = {"spark": spark, "path": uri, "table": table, "LanceTable": LanceTable}
    run_examples(name, NAMES[name], {**known, "pennon": pennon, "pa": pa, "sf": sf})
