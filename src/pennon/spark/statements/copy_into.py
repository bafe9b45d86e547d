"""COPY INTO: the rows of files, each set of files once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from pennon.spark.source.scan_task import arrow_schema_of, open_snapshot
from pennon.spark.statements.commands import Changed, Command, affected_frame, new_rows
from pennon.spark.statements.inserts import column_list
from pennon.spark.statements.rows_to_write import fitted_rows, named_rows
from pennon.spark.statements.tables import read_target
from pennon.spark.statements.words import Cursor, Statement
from pennon.spark.table.functions import write
from pennon.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Copy:
    """A COPY INTO: the files, how Spark reads them, and how they are written."""

    path: str
    query: tuple[str, str] | None
    file_format: str
    files: tuple[str, ...]
    pattern: str | None
    read_options: Mapping[str, str]
    copy_options: Mapping[str, str]

    @property
    def paths(self) -> list[str]:
        """Return the paths that Spark reads."""
        return [f"{self.path.rstrip('/')}/{name}" for name in self.files] or [self.path]


def copy_into(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``COPY INTO table FROM 'path' FILEFORMAT = CSV [FORMAT_OPTIONS (...)] [COPY_OPTIONS (...)]``."""
    cursor = Cursor(statement)
    cursor.needs("COPY", "INTO")
    target = read_target(spark, cursor)
    if target is None:
        return None
    changed = Changed(spark, statement, target)
    by_position = column_list(cursor) if cursor.peek() == "(" else None
    cursor.takes("BY", "POSITION")
    cursor.needs("FROM")
    path, query = _copy_source(cursor)
    found: dict[str, Any] = {"files": (), "pattern": None, "read": {}, "copy": {}, "format": ""}
    while not cursor.is_done:
        _copy_clause(cursor, found)
    if not found["format"]:
        raise cursor.wrong("FILEFORMAT = CSV, JSON, PARQUET, ORC, AVRO or TEXT")
    asked = Copy(
        path, query, found["format"], found["files"], found["pattern"], found["read"], found["copy"]
    )
    detail = f"read {asked.file_format} of {asked.path!r}, write(mode='append')"
    return changed.command("COPY INTO", detail, lambda: _run_copy(changed, asked, by_position))


def _copy_source(cursor: Cursor) -> tuple[str, tuple[str, str] | None]:
    """Read the path, or ``(SELECT ... FROM 'path' ...)``; return the path, and the query around it."""
    if cursor.peek() != "(":
        return cursor.text_literal(), None
    first, after = cursor.group()
    words = cursor.statement.words
    for number in range(first, after - 1):
        if words[number].upper == "FROM" and words[number + 1].is_text:
            before = cursor.statement.slice(first, number + 1)
            behind = cursor.statement.slice(number + 2, after)
            return words[number + 1].text, (before, behind)
    raise cursor.wrong("(SELECT ... FROM 'path')")


def _copy_clause(cursor: Cursor, found: dict[str, Any]) -> None:
    if cursor.takes("FILEFORMAT"):
        cursor.takes("=")
        found["format"] = cursor.identifier_or_text().lower()
    elif cursor.takes("FILES"):
        cursor.takes("=")
        cursor.needs("(")
        names = [cursor.text_literal()]
        while cursor.takes(","):
            names.append(cursor.text_literal())
        cursor.needs(")")
        found["files"] = tuple(names)
    elif cursor.takes("PATTERN"):
        cursor.takes("=")
        found["pattern"] = cursor.text_literal()
    elif cursor.takes("FORMAT_OPTIONS"):
        found["read"] = cursor.properties()
    elif cursor.takes("COPY_OPTIONS"):
        found["copy"] = cursor.properties()
    else:
        raise cursor.wrong("FILEFORMAT, FILES, PATTERN, FORMAT_OPTIONS or COPY_OPTIONS")


def _run_copy(changed: Changed, asked: Copy, columns: Sequence[str] | None) -> DataFrame:
    spark, table = changed.spark, changed.table
    reader = spark.read.format(asked.file_format).options(**asked.read_options)
    if asked.file_format == "csv" and "inferSchema" not in asked.read_options:
        reader = reader.option("inferSchema", "true")
    if asked.pattern is not None:
        reader = reader.option("pathGlobFilter", asked.pattern)
    rows = reader.load(asked.paths)
    app = _copy_app(spark, asked)
    if asked.query is not None:
        rows = _queried(spark, rows, asked.query)
    stored = spark_schema(arrow_schema_of(table.snapshot()))
    evolves = asked.copy_options.get("mergeSchema", "false").lower() == "true"
    if columns is not None:
        rows = named_rows(rows, stored, columns)
    rows = fitted_rows(rows, stored, are_literals=False)
    before = table.snapshot()
    force = asked.copy_options.get("force", "false").lower() == "true"
    options: dict[str, Any] = {} if force else {"txn_app_id": app, "txn_version": 1}
    version = write(
        rows,
        table.uri,
        "append",
        merge_schema=evolves,
        storage_options=table.storage_options,
        **options,
    )
    if version <= before.manifest.version:
        return affected_frame(spark, 0)
    old = open_snapshot(table.uri, table.storage_options, version - 1)
    return affected_frame(
        spark, new_rows(open_snapshot(table.uri, table.storage_options, version), old)
    )


def _copy_app(spark: SparkSession, asked: Copy) -> str:
    """Return the name of the files as they are now, so that they are copied once."""
    reader = spark.read.format("binaryFile")
    if asked.pattern is not None:
        reader = reader.option("pathGlobFilter", asked.pattern)
    found = reader.load(asked.paths).select(
        "path", sf.unix_micros("modificationTime").alias("at"), "length"
    )
    lines = sorted(f"{row.path} {row.at} {row.length}" for row in found.collect())
    return f"copy-{hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:32]}"


def _queried(spark: SparkSession, rows: DataFrame, query: tuple[str, str]) -> DataFrame:
    before, behind = (text.replace("{", "{{").replace("}", "}}") for text in query)
    return spark.sql(f"{before} {{pennon_files}} {behind}", pennon_files=rows)
