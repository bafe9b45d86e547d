"""All code blocks of the pages about Spark run, and of the tutorial, the move from Delta, and README's part about Spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.documents import ROOT, blocks, run, section


def test_the_blocks_of_the_page_of_spark_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"spark": spark}
    for block in blocks(ROOT / "docs" / "spark.md"):
        # Spark resolves a relative path in the folder where its JVM was started
        text = block.text.replace("'prices.lance'", f"'{tmp_path}/prices.lance'")
        text = text.replace('"prices.lance"', f'"{tmp_path}/prices.lance"')
        text = text.replace('"prices-length"', f'"{tmp_path}/prices-length"')
        if block.language == "python":
            run(type(block)(block.page, block.language, text, block.line), names)
        elif block.language == "sql":
            spark.sql(text)
    assert spark.table("prices").columns[:3] == ["id", "day", "price"]


def test_the_blocks_of_the_page_of_streams_run(spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, Any] = {"spark": spark}
    for block in blocks(ROOT / "docs" / "streams.md", "python"):
        if block.text.startswith("# transformations"):
            continue  # `test_pipelines` runs it
        text = re.sub(r'"(\w+\.lance|\w+-checkpoint)"', rf'"{tmp_path}/\1"', block.text)
        run(type(block)(block.page, block.language, text, block.line), names)


def test_the_blocks_of_the_page_of_sql_run(spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, Any] = {"spark": spark}
    for block in blocks(ROOT / "docs" / "sql-on-spark.md", "python"):
        text = block.text.replace('attach(spark, "lake")', f'attach(spark, "{tmp_path}")')
        run(type(block)(block.page, block.language, text, block.line), names)
    names["lake"].detach()


def test_the_blocks_of_the_readme_about_spark_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flights.csv").write_text("carrier,dep_delay\nUA,1\nAA,2\n")
    df = spark.createDataFrame([(1, "a"), (2, "b")], "id long, word string")
    names: dict[str, Any] = {"spark": spark, "df": df}
    for block in section(ROOT / "README.md", "## From Spark", "## From the command line"):
        text = block.text
        for name in ("words.lance", "flights.lance", "flights.csv"):
            text = text.replace(name, f"{tmp_path}/{name}")
        run(type(block)(block.page, block.language, text, block.line), names)
    assert {row.word for row in names["words"].toDF().collect()} == {"b"}


def test_the_blocks_of_the_tutorial_run_from_top_to_bottom(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks(ROOT / "docs" / "tutorial.md", "python"):
        # Spark resolves a relative path in the folder where its JVM was started
        text = re.sub(r'"((?:books|cheap)\.lance)"', rf'"{tmp_path}/\1"', block.text)
        run(type(block)(block.page, block.language, text, block.line), names)
    assert names["table"].count() == names["ds"].count_rows()


def test_the_blocks_of_the_page_about_delta_run_over_a_copy_in_parquet(
    spark: SparkSession, tmp_path: Path
) -> None:
    orders = (
        "SELECT id, id * 1.5D AS amount, IF(id % 2 = 0, 'new', 'paid') AS status FROM range(100)"
    )
    spark.sql(orders).write.parquet(f"{tmp_path}/orders-delta")
    names: dict[str, Any] = {"spark": spark}
    for block in blocks(ROOT / "docs" / "migrate" / "from-delta.md", "python"):
        text = re.sub(r'"(orders[\w.-]+)"', rf'"{tmp_path}/\1"', block.text)
        text = text.replace('format("delta")', 'format("parquet")')  # Delta's jar is not here
        run(type(block)(block.page, block.language, text, block.line), names)
    assert names["table"].toDF().where("status = 'new'").count() == 1
