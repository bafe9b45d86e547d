"""Statements that keep rows or text in Spark: views, cached queries, functions, and texts that Spark runs itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from pennon.errors import ArgumentError
from pennon.spark.names import quoted
from pennon.spark.statements.commands import Command, cursor_after, empty_frame, refused
from pennon.spark.statements.queries import PreparedQuery, prepare_query
from pennon.spark.statements.references import names_of_catalogs
from pennon.spark.statements.session import find_place, is_path
from pennon.spark.statements.words import Cursor, Statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def create_view(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``CREATE [OR REPLACE] [GLOBAL] TEMPORARY VIEW name [(columns)] AS query``; a view of Spark."""
    cursor = Cursor(statement)
    cursor.needs("CREATE")
    replaces = cursor.takes("OR", "REPLACE")
    is_global = cursor.takes("GLOBAL")
    is_temporary = bool(cursor.takes_any("TEMPORARY", "TEMP"))
    cursor.needs("VIEW")
    exists_ok = cursor.takes("IF", "NOT", "EXISTS")
    name = cursor.name()
    columns = None
    if cursor.peek() == "(":
        columns = cursor.names()
    if cursor.takes("COMMENT"):
        cursor.text_literal()
    if not cursor.takes("AS"):
        return None
    prepared = _prepared(spark, cursor.rest())
    if prepared is None:
        return None
    if not is_temporary:
        raise refused(
            statement,
            "Spark keeps the text of a view, and knows no Lance table by name: make a TEMPORARY VIEW",
        )

    def run() -> DataFrame:
        rows = prepared.run(spark)
        rows = rows if columns is None else rows.toDF(*columns)
        shown = quoted(name.parts[-1])
        if is_global:
            made = rows.createOrReplaceGlobalTempView if replaces else rows.createGlobalTempView
        else:
            made = rows.createOrReplaceTempView if replaces else rows.createTempView
        if not (exists_ok and spark.catalog.tableExists(shown)):
            made(shown)
        return empty_frame(spark)

    return Command("CREATE VIEW", str(name), "a temporary view of the rows as they are now", run)


def cache_table(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``CACHE [LAZY] TABLE name [OPTIONS (...)] [AS] query``: a temporary view that Spark keeps in memory."""
    cursor = cursor_after(statement, "CACHE")
    is_lazy = cursor.takes("LAZY")
    cursor.needs("TABLE")
    name = cursor.name()
    if find_place(spark, name) is not None or is_path(name.parts):
        reason = f"Spark caches queries, so give a name and a query of {name}: CACHE TABLE a AS SELECT ..."
        raise refused(statement, reason)
    options = ""
    if cursor.takes("OPTIONS"):
        first, after = cursor.group()
        options = f" OPTIONS ({statement.slice(first, after)})"
    cursor.takes("AS")
    prepared = _prepared(spark, cursor.rest())
    if prepared is None:
        return None
    view = quoted(name.parts[-1])

    def run() -> DataFrame:
        if spark.catalog.tableExists(view):
            raise ArgumentError(f"{statement.title!r}: there is a view or table {name} already")
        prepared.run(spark).createTempView(view)
        spark.sql(f"CACHE {'LAZY ' if is_lazy else ''}TABLE {view}{options}")
        return empty_frame(spark)

    return Command("CACHE TABLE", str(name), "a temporary view of the rows, kept by Spark", run)


def keeps_text(spark: SparkSession, statement: Statement) -> Command | None:
    """Refuse a statement whose text Spark keeps or runs itself, where a Lance table stands in it.

    It is a function, a variable's default, a script, or a text of EXECUTE IMMEDIATE.
    """
    texts = [statement, *_executed(statement)]
    names = [name for each in texts for name in names_of_catalogs(spark, each)]
    found = [name for name in names if find_place(spark, name) is not None or is_path(name.parts)]
    if found:
        reason = (
            f"Spark runs this text itself, and does not know the Lance table {found[0]}; run the query by itself, or "
            "make a TEMPORARY VIEW of the table first"
        )
        raise refused(statement, reason)
    return None


def _executed(statement: Statement) -> Iterator[Statement]:
    """Yield the statement in the text of ``EXECUTE IMMEDIATE 'text'``, if it can be cut into words."""
    first, *behind = statement.words
    if first.upper == "EXECUTE" and len(behind) > 1 and behind[1].is_text:
        with suppress(ArgumentError):
            yield Statement.of(behind[1].text)


def _prepared(spark: SparkSession, text: str) -> PreparedQuery | None:
    """Return a query in which Lance tables are replaced; None if there are none, or no query."""
    if not text:
        return None
    prepared = prepare_query(spark, Statement.of(text))
    return prepared if prepared.frames or prepared.answer is not None else None
