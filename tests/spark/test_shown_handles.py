"""The text of handles in a notebook: the place of the table, and no secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import pennon.spark
from pennon.spark import LanceTable
from pennon.spark.source.options import ReadOptions, WriteOptions
from tests.spark.small_table import make

SECRET = {"aws_secret_access_key": "hush"}


def handles(spark: SparkSession, uri: str) -> dict[str, Any]:
    """All that a user gets of a table with a secret."""
    make(uri)
    table = LanceTable.forPath(spark, uri, SECRET)
    new = spark.createDataFrame([("a", 1)], "key string, value long")
    return {
        "table": table,
        "alias": table.alias("t"),
        "merge": table.alias("t").merge(new.alias("s"), "t.key = s.key").whenMatchedDelete(),
        "optimize": table.optimize(),
        "view": pennon.spark.view(spark, uri, "shown", storage_options=SECRET),
        "tags": table.tags,
        "branches": table.branches,
        "read": ReadOptions(uri, storage_options=SECRET),
        "write": WriteOptions(uri, storage_options=SECRET),
    }


def test_handles_show_no_secret_and_no_manifest(spark: SparkSession, uri: str) -> None:
    for name, handle in handles(spark, uri).items():
        for text in (repr(handle), str(handle)):
            assert "hush" not in text, name
            assert "Manifest(" not in text, name
    spark.catalog.dropTempView("shown")
    assert uri in repr(LanceTable.forPath(spark, uri, SECRET))


@pytest.mark.parametrize("kind", ["dataset", "options"])
def test_repr_of_dataset_and_options_has_no_secret(tmp_path: Path, kind: str) -> None:
    from pennon.dataset.write_options import WriteOptions as Written

    make(str(tmp_path / "t"))
    shown = {
        "dataset": pennon.dataset(tmp_path / "t", storage_options=SECRET),
        "options": Written(storage_options=SECRET),
    }[kind]
    assert "hush" not in repr(shown)
