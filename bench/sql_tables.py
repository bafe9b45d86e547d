"""The tables of `make bench-sql`, each once in Parquet and once in Lance, and the queries over them.

Both are written by Spark from the same rows, in as many files.  In Parquet they are tables of databases of Spark's own, in
Lance of catalogs that have the same names, so the text of a query is the same for both.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from hits import make_hits, read_queries
from pyspark.sql import DataFrame, SparkSession
from tpch_tables import TABLES, make_tables

import pennon.spark

TPCH, HITS, LONG_HITS = "tpch", "web", "long_web"
"""The names of databases, and of catalogs; that of `LONG_HITS` has the same table as `HITS`, with more rows."""
SCRIPTS: Final = Path(__file__).parent / "tpch"
FILES: Final = 4
"""The number of files of the table of page views."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query: its name, its text, and the values of its parameters."""

    name: str
    text: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def tpch_queries(scale: float) -> list[Query]:
    """Return the 22 queries of TPC-H; the eleventh asks for a share that depends on the scale."""
    shares = {11: {"fraction": 0.0001 / scale}}
    paths = {number: SCRIPTS / f"q{number:02}.sql" for number in range(1, 23)}
    return [
        Query(f"tpch {number}", path.read_text(encoding="utf-8"), shares.get(number, {}))
        for number, path in paths.items()
    ]


def hits_queries() -> list[Query]:
    """Return the 43 queries over page views."""
    return [Query(f"hits {number}", text) for number, text in enumerate(read_queries(), 1)]


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of all tables: ``parquet/DATABASE/TABLE`` and ``lance/DATABASE/TABLE.lance``."""

    root: Path

    def parquet(self, database: str, table: str) -> Path:
        """Return the folder of a table's Parquet files."""
        return self.root / "parquet" / database / table

    def lance(self, database: str, table: str) -> Path:
        """Return the path of a Lance table."""
        return self.root / "lance" / database / f"{table}.lance"

    def make_tpch(self, spark: SparkSession, scale: float) -> None:
        """Write the tables of TPC-H, if they are not there, and name them."""
        if not self.lance(TPCH, TABLES[-1]).exists():
            raw = self.root / "raw"
            for number, (name, rows) in enumerate(make_tables(scale)):
                (raw / name).mkdir(parents=True, exist_ok=True)
                pq.write_table(rows, raw / name / f"{number:04}.parquet")
            for name in TABLES:
                self._write(spark.read.parquet(str(raw / name)), TPCH, name)
            shutil.rmtree(raw)
        self._name(spark, TPCH, TABLES)

    def make_hits(self, spark: SparkSession, rows: int, database: str = HITS) -> None:
        """Write the table of page views, if it is not there, and name it."""
        if not self.lance(database, "hits").exists():
            self._write(make_hits(spark, rows, FILES), database, "hits")
        self._name(spark, database, ["hits"])

    def sizes(self) -> Iterator[tuple[str, str, int]]:
        """Yield the format, the database and the bytes of all files of its tables."""
        folders = (self.root / form for form in ("parquet", "lance"))
        for folder in sorted(each for form in folders for each in form.glob("*")):
            files = (path for path in folder.rglob("*") if path.is_file())
            yield folder.parent.name, folder.name, sum(path.stat().st_size for path in files)

    def _write(self, rows: DataFrame, database: str, table: str) -> None:
        """Write a table in both formats; the rows of Lance are those of the Parquet files."""
        files = str(self.parquet(database, table))
        rows.write.mode("overwrite").parquet(files)
        written = rows.sparkSession.read.parquet(files)
        path = self.lance(database, table)
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        pennon.spark.write(written, str(path))

    def _name(self, spark: SparkSession, database: str, tables: Sequence[str]) -> None:
        spark.sql(f"CREATE DATABASE {database}")
        for table in tables:
            place = str(self.parquet(database, table))
            spark.sql(f"CREATE TABLE {database}.{table} USING parquet LOCATION '{place}'")
        places = {table: str(self.lance(database, table)) for table in tables}
        pennon.spark.attach(spark, places, name=database)
