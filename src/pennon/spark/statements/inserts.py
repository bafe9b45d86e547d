"""Statements that add and replace rows: INSERT, and lance-spark's REPLACE ... WHERE."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pennon.errors import ArgumentError, NotFoundError
from pennon.spark.source.scan_task import arrow_schema_of, open_snapshot
from pennon.spark.statements.commands import Changed, Command, affected_frame, new_rows, refused
from pennon.spark.statements.queries import run_query
from pennon.spark.statements.rows_to_write import fitted_rows, named_rows
from pennon.spark.statements.session import find_place
from pennon.spark.statements.tables import read_target
from pennon.spark.statements.words import Cursor, Name, Statement
from pennon.spark.table.functions import write
from pennon.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as st


_QUERY = ("SELECT", "VALUES", "WITH", "FROM", "TABLE", "(")


@dataclass(frozen=True, slots=True)
class Insert:
    """An INSERT: its query, and how the rows go into the table."""

    query: str
    overwrites: bool = False
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    where: str | None = None
    using: tuple[str, ...] = ()
    evolves: bool = False

    @property
    def detail(self) -> str:
        """Return what is done, for ``explain=True``."""
        if self.where is not None:
            return f"write(mode='overwrite', where={self.where!r})"
        if self.using:
            return f"write(mode='overwrite', overwrite_by={list(self.using)})"
        return f"write(mode={'overwrite' if self.overwrites else 'append'!r})"


def insert(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``INSERT INTO | OVERWRITE table [(columns)] [BY NAME] [REPLACE WHERE condition] query``."""
    cursor = Cursor(statement)
    common = common_tables(cursor)
    cursor.needs("INSERT")
    evolves = cursor.takes("WITH", "SCHEMA", "EVOLUTION")
    way = cursor.takes_any("INTO", "OVERWRITE")
    if not way or cursor.peek() in ("DIRECTORY", "LOCAL"):
        return None
    if cursor.peek() == "INTO":
        cursor.at += 1
    cursor.takes("TABLE")
    target = read_target(spark, cursor)
    if target is None:
        return None
    changed = Changed(spark, statement, target)
    if cursor.peek() == "PARTITION":
        raise changed.refused(
            "a Lance table has no partitions: say REPLACE WHERE condition, or REPLACE USING (columns)"
        )
    cursor.takes("IF", "NOT", "EXISTS")
    asked = Insert("", way == "OVERWRITE", evolves=evolves)
    asked = _insert_clauses(cursor, asked)
    if cursor.peek() not in _QUERY:
        raise cursor.wrong("VALUES, SELECT or another query")
    asked = replace(asked, query=f"{common} {cursor.rest()}" if common else cursor.rest())
    return changed.command("INSERT", asked.detail, lambda: _run_insert(changed, asked))


def _insert_clauses(cursor: Cursor, asked: Insert) -> Insert:
    if cursor.takes("BY", "NAME"):
        asked = replace(asked, by_name=True)
    elif cursor.peek() == "(" and cursor.peek(1) not in _QUERY:
        asked = replace(asked, columns=tuple(column_list(cursor)))
    if cursor.takes("BY", "NAME"):
        asked = replace(asked, by_name=True)
    if cursor.takes("REPLACE", "WHERE"):
        return replace(asked, where=_condition_before_query(cursor))
    if cursor.takes("REPLACE", "USING"):
        return replace(asked, using=tuple(column_list(cursor)))
    if cursor.takes("REPLACE", "ON"):
        message = f"{cursor.statement.title!r}: REPLACE ON compares rows with rows; use MERGE, or REPLACE USING (columns)"
        raise ArgumentError(message)
    return asked


def _condition_before_query(cursor: Cursor) -> str:
    """Read a condition, which ends where a query begins."""
    return cursor.until("SELECT", "VALUES", "WITH", "FROM", "TABLE")


def column_list(cursor: Cursor) -> list[str]:
    """Read names without dots in parentheses."""
    cursor.needs("(")
    found = [cursor.identifier()]
    while cursor.takes(","):
        found.append(cursor.identifier())
    cursor.needs(")")
    return found


def common_tables(cursor: Cursor) -> str:
    """Read common table expressions before the statement itself; return their text."""
    if cursor.peek() != "WITH":
        return ""
    return cursor.until("INSERT", "MERGE", "UPDATE", "DELETE")


def replace_where(spark: SparkSession, statement: Statement) -> Command | None:
    """Read lance-spark's ``REPLACE table WHERE condition AS query``."""
    cursor = Cursor(statement)
    cursor.needs("REPLACE")
    target = read_target(spark, cursor)
    if target is None:
        return None
    cursor.needs("WHERE")
    where = cursor.until("AS")
    cursor.needs("AS")
    changed = Changed(spark, statement, target)
    asked = Insert(cursor.rest(), overwrites=True, where=where)
    return changed.command("REPLACE", asked.detail, lambda: _run_insert(changed, asked))


def _run_insert(changed: Changed, asked: Insert) -> DataFrame:
    spark, place = changed.spark, changed.target.place
    rows = run_query(spark, asked.query)
    options = dict(place.entry.storage_options)
    try:
        uri = changed.table.uri
    except NotFoundError:
        if not place.entry.declared:
            raise
        version = write(rows, place.entry.location, "append", storage_options=options)
        return affected_frame(
            spark, new_rows(open_snapshot(place.entry.location, options, version), None)
        )
    table = spark_schema(arrow_schema_of(open_snapshot(uri, options)))
    rows = _insert_rows(rows, table, asked)
    how: dict[str, Any] = {"where": asked.where, "overwrite_by": asked.using}
    is_overwrite = asked.overwrites or asked.where is not None or bool(asked.using)
    version = write(
        rows,
        uri,
        "overwrite" if is_overwrite else "append",
        merge_schema=asked.evolves,
        storage_options=options,
        **{name: value for name, value in how.items() if value},
    )
    before = open_snapshot(uri, options, version - 1) if version > 1 else None
    return affected_frame(spark, new_rows(open_snapshot(uri, options, version), before))


def _insert_rows(rows: DataFrame, table: st.StructType, asked: Insert) -> DataFrame:
    words = Statement.of(asked.query).words
    are_literals = bool(words) and words[0].upper == "VALUES"
    if not asked.by_name:
        rows = named_rows(rows, table, asked.columns, evolves=asked.evolves)
    return fitted_rows(rows, table, are_literals=are_literals)


def multi_insert(spark: SparkSession, statement: Statement) -> Command | None:
    """Refuse Hive's ``FROM source INSERT INTO a ... INSERT INTO b ...`` where a table of it is Lance's."""
    names = [
        Cursor(statement, number + 2 + (words_at(statement, number + 2) == "TABLE"))
        for number in range(len(statement.words) - 2)
        if words_at(statement, number) == "INSERT"
        and words_at(statement, number + 1) in ("INTO", "OVERWRITE")
    ]
    found: list[Name | None] = [cursor.name_if_any() for cursor in names]
    if any(name is not None and find_place(spark, name) is not None for name in found):
        raise refused(
            statement,
            "several INSERTs of one FROM are several commits: write one statement for each",
        )
    return None


def words_at(statement: Statement, number: int) -> str:
    """Return a word in capitals; nothing behind the end."""
    return statement.words[number].upper if number < len(statement.words) else ""
