"""`LanceTable` rewrites and moves rows of tables with an index of every kind: answers equal those of a scan."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import pennon
from pennon.spark import LanceTable
from tests.interop import index_matrix as matrix


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """A table with addresses, and one with stable row ids; each of four fragments, with indices."""
    found = {}
    for stable in (False, True):
        folder = tmp_path_factory.mktemp("tables") / "t.lance"
        matrix.make_table(str(folder), lance, stable=stable)
        found[stable] = folder
    return found


def check(uri: str) -> None:
    for library in (pennon, lance):
        assert not matrix.check(library.dataset(uri)), library.__name__


def z_order(table: LanceTable) -> None:
    table.optimize().executeZOrderBy("bt", "bf", target_rows_per_fragment=100)


def sort(table: LanceTable) -> None:
    table.optimize().executeSortBy("bm", target_rows_per_fragment=100)


def sort_some(table: LanceTable) -> None:
    table.optimize().where("id < 100").executeSortBy("zm", target_rows_per_fragment=100)


def compact(table: LanceTable) -> None:
    table.optimize().executeCompaction(target_rows_per_fragment=1000)


def update(table: LanceTable) -> None:
    table.update("id % 8 = 3", {"bt": "1007L", "bm": "'new'", "ng": "'new one'", "ft": "'new'"})


def update_all(table: LanceTable) -> None:
    table.update(set={"bt": "bt + 1"})


def delete(table: LanceTable) -> None:
    table.delete("id % 9 = 0")


def merge(table: LanceTable) -> None:
    source = table.spark.range(70, 90).withColumn("value", sf.lit(1007).cast("long"))
    merged = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merged.whenMatchedUpdate(set={"bt": "s.value", "bm": "'new'"}).execute()


def add_columns(table: LanceTable) -> None:
    table.addColumns({"more": "bt + 1"})


def optimize(table: LanceTable) -> None:
    table.optimizeIndices()


REWRITES: list[Any] = [z_order, sort, compact]
CHANGES: list[Any] = [sort_some, update, update_all, delete, merge, add_columns, optimize]
OPERATIONS = [*REWRITES, *(pytest.param(each, marks=pytest.mark.slow) for each in CHANGES)]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_indices_answer_as_scans_after(
    spark: SparkSession, uri: str, tables: dict[bool, Path], operation: Any, stable: bool
) -> None:
    shutil.copytree(tables[stable], uri)
    pennon.dataset(uri).delete("id % 11 = 4")
    operation(LanceTable.forPath(spark, uri))
    check(uri)
    LanceTable.forPath(spark, uri).optimizeIndices()
    check(uri)
    described = pennon.dataset(uri).describe_indices()
    assert {each.num_rows_indexed for each in described} == {pennon.dataset(uri).count_rows()}
