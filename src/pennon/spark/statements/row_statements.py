"""Statements that change rows: DELETE, UPDATE, TRUNCATE, MERGE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pennon.errors import ArgumentError
from pennon.spark.statements.commands import Changed, Command
from pennon.spark.statements.inserts import common_tables
from pennon.spark.statements.queries import run_query, with_views
from pennon.spark.statements.tables import Target, read_ref, read_target, read_version
from pennon.spark.statements.words import Cursor, Statement, dotted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.spark.table.merge_builder import LanceMergeBuilder


# --- DELETE, UPDATE, TRUNCATE ----------------------------------------------------------------------


def delete(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``DELETE FROM table [AS alias] [WHERE condition]``."""
    cursor = Cursor(statement)
    cursor.needs("DELETE", "FROM")
    target = _aliased(spark, cursor, "WHERE")
    if target is None:
        return None
    changed = Changed(spark, statement, target)
    condition = changed.expression(cursor.rest()) if cursor.takes("WHERE") else None
    cursor.ends()

    def run() -> DataFrame:
        table = changed.table.alias(target.shown)
        if condition is None:
            return table.delete()
        with with_views(spark, [condition]) as texts:
            return table.delete(texts[0])

    return changed.command("DELETE", f"delete({condition!r})", run)


def update(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``UPDATE table [AS alias] SET column = value, ... [WHERE condition]``."""
    cursor = Cursor(statement)
    cursor.needs("UPDATE")
    target = _aliased(spark, cursor, "SET")
    if target is None:
        return None
    changed = Changed(spark, statement, target)
    cursor.needs("SET")
    values = _assignments(changed, cursor, "WHERE")
    condition = changed.expression(cursor.rest()) if cursor.takes("WHERE") else None
    cursor.ends()

    def run() -> DataFrame:
        table = changed.table.alias(target.shown)
        texts = [*values.values(), *([] if condition is None else [condition])]
        with with_views(spark, texts) as made:
            new = dict(zip(values, made, strict=False))
            return table.update(None if condition is None else made[-1], new)

    return changed.command("UPDATE", f"update({condition!r}, {values})", run)


def truncate(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``TRUNCATE TABLE table``."""
    cursor = Cursor(statement)
    cursor.needs("TRUNCATE", "TABLE")
    target = read_target(spark, cursor)
    if target is None:
        return None
    changed = Changed(spark, statement, target)
    if cursor.peek() == "PARTITION":
        raise changed.refused("a Lance table has no partitions: DELETE FROM table WHERE condition")
    cursor.ends()

    def run() -> DataFrame:
        return changed.table.delete()

    return changed.command("TRUNCATE", "delete()", run)


def _aliased(spark: SparkSession, cursor: Cursor, *following: str) -> Target | None:
    """Read a table's name and an alias of it."""
    target = read_target(spark, cursor)
    if target is None:
        return None
    has_as = cursor.takes("AS")
    if has_as or (
        not cursor.is_done and cursor.peek() not in following and cursor.words[cursor.at].is_name
    ):
        return replace(target, alias=cursor.identifier())
    return target


def _assignments(changed: Changed, cursor: Cursor, *ends: str) -> dict[str, str]:
    """Read ``column = value, ...``; columns may have dots."""
    values: dict[str, str] = {}
    own = [part.lower() for part in changed.full_name]
    while True:
        name = cursor.name()
        parts = name.parts
        lower = [part.lower() for part in parts]
        for at in range(len(own) - 1):
            if lower[: len(own) - at] == own[at:] and len(parts) > len(own) - at:
                parts = (changed.target.shown, *parts[len(own) - at :])
                break
        cursor.needs("=")
        column = dotted(parts)
        if column in values:
            message = f"{cursor.statement.title!r}: column {column} gets two values"
            raise ArgumentError(message)
        value = changed.expression(cursor.until(",", *ends))
        if value.upper() == "DEFAULT":
            raise changed.refused("columns of Lance tables have no DEFAULT; say the value")
        values[column] = value
        if not cursor.takes(","):
            return values


# --- MERGE -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class When:
    """A WHEN clause: the rows that it is for, its condition, what is done, and values (None: all columns)."""

    matched: str
    condition: str | None
    action: str
    values: Mapping[str, str] | None = None

    def texts(self) -> list[str]:
        """Return its condition and its values."""
        own = [] if self.condition is None else [self.condition]
        return [*own, *(self.values or {}).values()]

    def with_texts(self, texts: Sequence[str]) -> When:
        """Return the clause with other texts, in the order of `texts`."""
        condition = None if self.condition is None else texts[0]
        rest = texts[len(texts) - len(self.values or {}) :]
        values = None if self.values is None else dict(zip(self.values, rest, strict=True))
        return replace(self, condition=condition, values=values)

    def add(self, merge: LanceMergeBuilder) -> LanceMergeBuilder:
        """Add the clause to a merge."""
        condition, values = self.condition, self.values
        if self.matched == "MATCHED":
            if self.action == "DELETE":
                return merge.whenMatchedDelete(condition)
            if values is None:
                return merge.whenMatchedUpdateAll(condition)
            return merge.whenMatchedUpdate(condition, values)
        if self.matched == "NOT MATCHED":
            if values is None:
                return merge.whenNotMatchedInsertAll(condition)
            return merge.whenNotMatchedInsert(condition, values)
        if self.action == "DELETE":
            return merge.whenNotMatchedBySourceDelete(condition)
        return merge.whenNotMatchedBySourceUpdate(condition, values)


@dataclass(frozen=True, slots=True)
class Merging:
    """A MERGE: the source as text and its name, when rows match, the clauses."""

    source: str
    alias: str | None
    condition: str
    clauses: tuple[When, ...] = field(default=())
    evolves: bool = False


def merge(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``MERGE [WITH SCHEMA EVOLUTION] INTO table USING source ON condition WHEN ...``."""
    cursor = Cursor(statement)
    common = common_tables(cursor)
    cursor.needs("MERGE")
    evolves = cursor.takes("WITH", "SCHEMA", "EVOLUTION")
    cursor.needs("INTO")
    target = _aliased(spark, cursor, "USING")
    if target is None:
        return None
    changed = Changed(spark, statement, target)
    cursor.needs("USING")
    source, alias = _source(spark, cursor)
    cursor.needs("ON")
    condition = changed.expression(cursor.until("WHEN"))
    clauses = []
    while not cursor.is_done:
        clauses.append(_when(changed, cursor))
    query = f"{common} SELECT * FROM {source}"  # noqa: S608 - the statement's own words
    asked = Merging(query, alias, condition, tuple(clauses), evolves)
    detail = f"merge(source, {condition!r}), {len(clauses)} clauses"
    return changed.command("MERGE", detail, lambda: _run_merge(changed, asked))


def _source(spark: SparkSession, cursor: Cursor) -> tuple[str, str | None]:
    """Read the source of a merge; return its text, and the name that it has."""
    first = cursor.at
    alias = None
    if cursor.peek() == "(":
        cursor.group()
    else:
        name = cursor.name()
        alias = name.parts[-1]
        if cursor.peek() == "(":
            cursor.group()
        elif read_ref(cursor) is None:
            read_version(spark, cursor)
    has_as = cursor.takes("AS")
    if has_as or cursor.peek() != "ON":
        alias = cursor.identifier()
        if cursor.peek() == "(":
            cursor.group()
    return cursor.statement.slice(first, cursor.at), alias


def _when(changed: Changed, cursor: Cursor) -> When:
    cursor.needs("WHEN")
    matched = "NOT MATCHED" if cursor.takes("NOT") else "MATCHED"
    cursor.needs("MATCHED")
    if cursor.takes("BY", "SOURCE"):
        if matched == "MATCHED":
            raise cursor.wrong("WHEN NOT MATCHED BY SOURCE")
        matched = "NOT MATCHED BY SOURCE"
    else:
        cursor.takes("BY", "TARGET")
    condition = changed.expression(cursor.until("THEN")) if cursor.takes("AND") else None
    cursor.needs("THEN")
    if cursor.takes("DELETE"):
        if matched == "NOT MATCHED":
            raise cursor.wrong("INSERT, for there is no row to delete")
        return When(matched, condition, "DELETE")
    if cursor.takes("UPDATE"):
        return _when_update(changed, cursor, matched, condition)
    cursor.needs("INSERT")
    if matched != "NOT MATCHED":
        raise cursor.wrong("UPDATE or DELETE, for there is a row already")
    values = None if cursor.takes("*") else _inserted_values(changed, cursor)
    return When(matched, condition, "INSERT", values)


def _inserted_values(changed: Changed, cursor: Cursor) -> dict[str, str]:
    """Read ``(column, ...) VALUES (value, ...)``."""
    names = cursor.names()
    cursor.needs("VALUES", "(")
    values = [changed.expression(cursor.until(",", ")"))]
    while cursor.takes(","):
        values.append(changed.expression(cursor.until(",", ")")))
    cursor.needs(")")
    if len(values) != len(names):
        message = (
            f"{cursor.statement.title!r}: {len(values)} values are given for {len(names)} columns"
        )
        raise ArgumentError(message)
    return dict(zip(names, values, strict=True))


def _when_update(changed: Changed, cursor: Cursor, matched: str, condition: str | None) -> When:
    if matched == "NOT MATCHED":
        raise cursor.wrong("INSERT, for there is no row to update")
    cursor.needs("SET")
    if cursor.takes("*"):
        if matched != "MATCHED":
            raise cursor.wrong("column = value, for there is no row of the source")
        return When(matched, condition, "UPDATE")
    return When(matched, condition, "UPDATE", _assignments(changed, cursor, "WHEN"))


def _run_merge(changed: Changed, asked: Merging) -> DataFrame:
    rows = run_query(changed.spark, asked.source)
    source = rows if asked.alias is None else rows.alias(asked.alias)
    texts = [asked.condition, *(text for clause in asked.clauses for text in clause.texts())]
    with with_views(changed.spark, texts) as made:
        builder = changed.table.alias(changed.target.shown).merge(source, made[0])
        if asked.evolves:
            builder = builder.withSchemaEvolution()
        at = 1
        for clause in asked.clauses:
            count = len(clause.texts())
            builder = clause.with_texts(made[at : at + count]).add(builder)
            at += count
        return builder.execute()
