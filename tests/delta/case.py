"""Base of Delta's tests: a session, a folder for tables, and SQL commands by a path in place of a name."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import ClassVar
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pennon.spark import LanceTable
from tests.spark.modes import CONF

_COMMANDS = {
    "detail": re.compile(r"DESCRIBE DETAIL (?P<name>\S+)"),
    "properties": re.compile(r"SHOW TBLPROPERTIES (?P<name>[^\s(]+)(?:\(\"(?P<key>\w+)\"\))?"),
    "create": re.compile(
        r"CREATE TABLE (?P<name>\S+) \((?P<columns>[^)]*)\) USING DELTA(?: LOCATION '(?P<path>.*)')?"
    ),
}


@cache
def session() -> SparkSession:
    """Return the one session of all tests."""
    builder = SparkSession.builder.master("local[2]").appName("Delta's tests")
    for key, value in {**CONF, "spark.sql.warehouse.dir": tempfile.mkdtemp()}.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


class DeltaTestCase(unittest.TestCase):
    """The base that Delta's tests ask for, under its name."""

    spark: ClassVar[SparkSession]

    @classmethod
    def setUpClass(cls) -> None:
        """Find the session."""
        cls.spark = session()

    def setUp(self) -> None:
        """Make a place for the tables of one test."""
        self.tempPath = tempfile.mkdtemp(prefix="delta")
        self.tempFile = str(Path(self.tempPath) / "table")

    def tearDown(self) -> None:
        """Take the place away."""
        shutil.rmtree(self.tempPath, ignore_errors=True)

    @contextmanager
    def tempTable(self) -> Iterator[str]:
        """Yield what stands for the name of a table: a path where none is."""
        yield f"{self.tempPath}/named_{uuid4().hex}"

    def sql(self, command: str) -> DataFrame:
        """Do, by the methods of `LanceTable`, what a command of SQL does with a table that has a name."""
        matches = {what: pattern.match(command.strip()) for what, pattern in _COMMANDS.items()}
        what, found = next(((k, m) for k, m in matches.items() if m is not None), ("", None))
        if found is None:
            self.fail(f"a command that no path can be put into: {command}")
        path = found["name"].removeprefix("delta.").strip("`")
        if what == "create":
            path = found["path"] or path
            columns = self.spark.createDataFrame([], found["columns"]).schema
            LanceTable.create(self.spark).location(path).addColumns(columns).execute()
            return self.spark.range(0).toDF("none")
        detail = LanceTable.forPath(self.spark, path).detail()
        if what == "detail":
            return detail
        pairs = detail.selectExpr("explode(properties)")
        return pairs if found["key"] is None else pairs.where(f"key = '{found['key']}'")

    def convert(
        self, spark: SparkSession, identifier: str, schema: str | StructType | None = None
    ) -> LanceTable:
        """Copy a folder of Parquet files to a table beside it, whose name ends in ``.lance``."""
        path = identifier.split("`")[1] + ".lance"
        return LanceTable.convertToLance(spark, identifier, schema, location=path)

    def files_with(self, condition: str | None = None) -> int:
        """Return how many files of the table at `tempFile` hold a row for which a condition is true."""
        table = LanceTable.forPath(self.spark, self.tempFile)
        if condition is None:
            return table.files().count()
        rows = table.read(columns=["p"], with_row_address=True).where(condition)
        return rows.selectExpr("shiftright(_rowaddr, 32)").distinct().count()


class IdentityGenerator:
    """What Delta's identity columns are asked for with."""

    def __init__(self, start: int = 1, step: int = 1) -> None:
        """Take what Delta's takes."""
        self.start, self.step = start, step


def install() -> None:
    """Let ``delta.tables`` and ``delta.testing.utils`` be what the tests import."""
    tables, utils = ModuleType("delta.tables"), ModuleType("delta.testing.utils")
    vars(tables).update(
        DeltaTable=LanceTable,
        DeltaTableBuilder=object,
        DeltaOptimizeBuilder=object,
        IdentityGenerator=IdentityGenerator,
    )
    vars(utils).update(DeltaTestCase=DeltaTestCase)
    for module in (ModuleType("delta"), tables, ModuleType("delta.testing"), utils):
        sys.modules[module.__name__] = module
