"""Statements about namespaces: CREATE, DROP, and USE."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pennon.catalog.base import TableName
from pennon.errors import (
    ArgumentError,
    NotFoundError,
    UnsupportedError,
)
from pennon.spark.statements.commands import (
    NAMESPACE_WORDS,
    Command,
    empty_frame,
)
from pennon.spark.statements.session import (
    Attached,
    catalogs_of,
    new_place,
)
from pennon.spark.statements.words import Cursor, Statement
from pennon.spark.table.builder import COMMENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def create_namespace(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``CREATE NAMESPACE [IF NOT EXISTS] name [COMMENT 'text'] [WITH PROPERTIES (...)]``."""
    cursor = Cursor(statement)
    cursor.needs("CREATE")
    cursor.takes_any(*NAMESPACE_WORDS)
    exist_ok = cursor.takes("IF", "NOT", "EXISTS")
    name = cursor.name()
    new = new_place(spark, name)
    if new is None:
        return None
    properties: dict[str, str] = {}
    while not cursor.is_done:
        if cursor.takes("COMMENT"):
            properties[COMMENT] = cursor.text_literal()
        elif cursor.takes("WITH"):
            cursor.takes_any("PROPERTIES", "DBPROPERTIES")
            properties |= cursor.properties()
        else:
            raise cursor.wrong("COMMENT or WITH PROPERTIES")
    attached, inner = new

    def run() -> DataFrame:
        attached.catalog.create_namespace(inner, properties or None, exist_ok=exist_ok)
        return empty_frame(spark)

    return Command("CREATE NAMESPACE", ".".join((attached.name, *inner)), "create_namespace", run)


def drop_namespace(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``DROP NAMESPACE [IF EXISTS] name [RESTRICT | CASCADE]``; CASCADE drops its tables, whose files stay."""
    cursor = Cursor(statement)
    cursor.needs("DROP")
    cursor.takes_any(*NAMESPACE_WORDS)
    missing_ok = cursor.takes("IF", "EXISTS")
    new = new_place(spark, cursor.name())
    if new is None:
        return None
    cascades = cursor.takes_any("RESTRICT", "CASCADE") == "CASCADE"
    cursor.ends()
    attached, inner = new

    def run() -> DataFrame:
        if cascades:
            with suppress(NotFoundError):
                _drop_contents(attached, inner)
        attached.catalog.drop_namespace(inner, missing_ok=missing_ok)
        return empty_frame(spark)

    return Command("DROP NAMESPACE", ".".join((attached.name, *inner)), "drop_namespace", run)


def _drop_contents(attached: Attached, namespace: TableName) -> None:
    for inner in attached.catalog.list_namespaces(namespace):
        _drop_contents(attached, (*namespace, inner))
        attached.catalog.drop_namespace((*namespace, inner))
    for table in attached.catalog.list_tables(namespace):
        attached.catalog.deregister_table((*namespace, table))


def use(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``USE [CATALOG | NAMESPACE] name``: the catalog and namespace of names that have none."""
    cursor = Cursor(statement)
    cursor.needs("USE")
    if cursor.peek(1):
        cursor.takes_any("CATALOG", *NAMESPACE_WORDS)
    name = cursor.name()
    cursor.ends()
    catalogs = catalogs_of(spark)
    named = catalogs.named(name.parts[0])
    chosen: tuple[Attached, TableName] | None = None
    if named is not None:
        chosen = named, name.parts[1:]
        if chosen[1] == ("default",) and not _has_namespace(named, chosen[1]):
            chosen = named, ()
    elif catalogs.current is not None and _has_namespace(catalogs.current[0], name.parts):
        chosen = catalogs.current[0], name.parts

    def run() -> DataFrame:
        if chosen is not None and chosen[1]:
            chosen[0].catalog.describe_namespace(chosen[1])
        catalogs.current = chosen
        return empty_frame(spark)

    def leave() -> DataFrame:
        catalogs.current = None
        return spark.sql(statement.text)

    if chosen is None:
        return None if catalogs.current is None else Command("USE", str(name), "of Spark", leave)
    return Command("USE", ".".join((chosen[0].name, *chosen[1])), "names without a catalog", run)


def _has_namespace(attached: Attached, namespace: TableName) -> bool:
    try:
        attached.catalog.describe_namespace(namespace)
    except (NotFoundError, ArgumentError, UnsupportedError):
        return False
    return True
