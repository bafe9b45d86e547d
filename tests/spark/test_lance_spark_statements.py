"""The statements of lance-spark's pages run unchanged, or are refused by name with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pennon.spark
from tests.spark.lance_spark_pages import Page
from tests.spark.lance_spark_statements import PAGES

_OLD = ("TIMESTAMP AS OF '2024", "TIMESTAMP AS OF 1705")
"""These name a time before the test's table was made."""


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """An empty catalog named as lance-spark's, in use."""
    lake = pennon.spark.attach(spark, str(tmp_path), "lance")
    pennon.spark.sql(spark, "USE lance")
    yield tmp_path
    lake.detach()
    for each in spark.catalog.listTables():
        if each.isTemporary:
            spark.catalog.dropTempView(each.name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_statements_of_a_page_of_lance_spark_run_or_are_refused(
    spark: SparkSession, folder: Path, page: Page
) -> None:
    for text in page.before:
        pennon.spark.sql(spark, text)
    for said in page.said():
        text = said.text.replace("{folder}", str(folder))
        if said.refused is not None or any(each in text for each in _OLD):
            with pytest.raises(Exception, match=said.refused or "no version"):
                pennon.spark.sql(spark, text).collect()
        else:
            pennon.spark.sql(spark, text).collect()


def test_nine_of_ten_statements_of_lance_spark_run_unchanged() -> None:
    said = [each for page in PAGES for each in page.said()]
    refused = [each for each in said if each.refused is not None]
    assert len(said) > 150
    assert len(refused) <= len(said) / 10
