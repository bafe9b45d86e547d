"""Statements that change rows: INSERT, REPLACE ... WHERE, DELETE, UPDATE, MERGE, TRUNCATE, COPY INTO."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from pennon.errors import ArgumentError, NotFoundError
from pennon.spark.source.scan_task import arrow_schema_of, open_snapshot
from pennon.spark.statements.commands import Changed, Command, affected_frame, new_rows, refused
from pennon.spark.statements.queries import run_query, with_views
from pennon.spark.statements.rows_to_write import fitted_rows, named_rows
from pennon.spark.statements.session import find_place
from pennon.spark.statements.tables import Target, read_ref, read_target, read_version
from pennon.spark.statements.words import Cursor, Name, Statement, dotted
from pennon.spark.table.functions import write
from pennon.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as st

    from pennon.spark.table.merge_builder import LanceMergeBuilder

_QUERY = ("SELECT", "VALUES", "WITH", "FROM", "TABLE", "(")


# --- INSERT ----------------------------------------------------------------------------------------


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
    common = _common_tables(cursor)
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
        asked = replace(asked, columns=tuple(_column_list(cursor)))
    if cursor.takes("BY", "NAME"):
        asked = replace(asked, by_name=True)
    if cursor.takes("REPLACE", "WHERE"):
        return replace(asked, where=_condition_before_query(cursor))
    if cursor.takes("REPLACE", "USING"):
        return replace(asked, using=tuple(_column_list(cursor)))
    if cursor.takes("REPLACE", "ON"):
        message = f"{cursor.statement.title!r}: REPLACE ON compares rows with rows; use MERGE, or REPLACE USING (columns)"
        raise ArgumentError(message)
    return asked


def _condition_before_query(cursor: Cursor) -> str:
    """Read a condition, which ends where a query begins."""
    return cursor.until("SELECT", "VALUES", "WITH", "FROM", "TABLE")


def _column_list(cursor: Cursor) -> list[str]:
    cursor.needs("(")
    found = [cursor.identifier()]
    while cursor.takes(","):
        found.append(cursor.identifier())
    cursor.needs(")")
    return found


def _common_tables(cursor: Cursor) -> str:
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
    common = _common_tables(cursor)
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


# --- COPY INTO -------------------------------------------------------------------------------------


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
    by_position = _column_list(cursor) if cursor.peek() == "(" else None
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
    return spark.sql(f"{before} {{pennon_files}} {behind}", pennon_files=rows)  # type: ignore[arg-type]


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
