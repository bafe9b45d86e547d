"""`pennon.spark.ingest`: file formats and separators."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pennon
import pennon.spark
from pennon.errors import ArgumentError

TEXT = "id\tname\n1\ta,b\n"


def write(folder: Path, name: str) -> str:
    """Make a file of values between tabs, or commas."""
    path = folder / name
    text = TEXT if ".tsv" in name.lower() else 'id,name\n1,"a,b"\n'
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(path)


@pytest.mark.parametrize(
    "names",
    [
        ["a.tsv"],
        ["a.tsv", "b.tsv"],
        ["c.tsv.gz"],
        ["A.TSV"],
        ["a.tsv", "c.tsv.gz", "B.Tsv"],
        ["a.csv", "b.CSV"],
    ],
)
def test_ingest_detects_tabs_by_file_extension(
    spark: SparkSession, uri: str, tmp_path: Path, names: list[str]
) -> None:
    paths = [write(tmp_path, name) for name in names]
    pennon.spark.ingest(spark, paths, uri)
    assert pennon.dataset(uri).to_table().to_pydict() == {
        "id": [1] * len(names),
        "name": ["a,b"] * len(names),
    }


@pytest.mark.parametrize("name", ["a.tsv", "A.TSV", "c.tsv.gz"])
def test_ingest_of_one_file_or_glob(
    spark: SparkSession, uri: str, tmp_path: Path, name: str
) -> None:
    path = write(tmp_path, name)
    pennon.spark.ingest(spark, path, uri)
    pennon.spark.ingest(spark, str(tmp_path / ("*" + name[1:])), uri, mode="append")
    assert pennon.dataset(uri).to_table().to_pydict() == {"id": [1, 1], "name": ["a,b"] * 2}


def test_ingest_format_option_precedes_the_file_name(
    spark: SparkSession, uri: str, tmp_path: Path
) -> None:
    path = write(tmp_path, "a.tsv")
    pennon.spark.ingest(spark, [path], uri, format="csv", read_options={"sep": ","})
    assert pennon.dataset(uri).schema.names == ["id\tname"]
    (tmp_path / "plain").write_text(TEXT)
    pennon.spark.ingest(spark, str(tmp_path / "plain"), f"{uri}.2", format="tsv")
    assert pennon.dataset(f"{uri}.2").schema.names == ["id", "name"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a.tsv", "b.csv"], "more than one format .csv, tsv."),
        (["a.csv", "b.json"], "more than one format .csv, json."),
        ([], "no file to ingest"),
    ],
)
def test_files_of_several_formats_and_no_files_are_refused(
    spark: SparkSession, uri: str, names: list[str], said: str
) -> None:
    with pytest.raises(ArgumentError, match=said):
        pennon.spark.ingest(spark, names, uri)
