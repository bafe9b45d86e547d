"""Statements that show what there is: DESCRIBE and SHOW."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as sf

from pennon.catalog.base import TableName
from pennon.errors import ArgumentError
from pennon.spark.history import history_frame
from pennon.spark.names import quoted
from pennon.spark.source.scan_task import arrow_schema_of
from pennon.spark.statements.commands import NAMESPACE_WORDS, Changed, Command, text_frame
from pennon.spark.statements.ref_statements import show_indices
from pennon.spark.statements.session import Attached, catalogs_of
from pennon.spark.statements.tables import Target, open_place, read_target, read_version
from pennon.spark.statements.words import Cursor, Name, Statement
from pennon.spark.table.builder import CLUSTERING, COMMENT
from pennon.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.snapshot import Snapshot

"""Options of lance-spark's OPTIMIZE that say how its threads work; here Spark's tasks do."""


# --- DESCRIBE ----------------------------------------------------------------------------------------


def describe(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``DESCRIBE [TABLE] [EXTENDED] table [column]``, ``DESCRIBE DETAIL | HISTORY table``, ``DESCRIBE NAMESPACE name``."""
    cursor = Cursor(statement)
    cursor.takes_any("DESCRIBE", "DESC")
    if cursor.peek() in NAMESPACE_WORDS:
        return _describe_namespace(spark, cursor)
    if cursor.peek() in ("FUNCTION", "QUERY", "SELECT", "WITH", "VALUES", "FROM"):
        return None
    what = (
        cursor.takes_any("DETAIL", "HISTORY")
        if cursor.peek(1) != "" or _is_quoted(cursor, 1)
        else ""
    )
    if not what:
        cursor.takes("TABLE")
        what = "EXTENDED" if cursor.takes_any("EXTENDED", "FORMATTED") else ""
    target = read_target(spark, cursor)
    if target is None:
        return None
    changed = Changed(spark, statement, target)
    choice = read_version(spark, cursor)
    if what == "DETAIL":
        cursor.ends()
        return changed.command("DESCRIBE DETAIL", "detail()", lambda: _detail(changed))
    if what == "HISTORY":
        limit = cursor.number() if cursor.takes("LIMIT") else None
        cursor.ends()
        return changed.command(
            "DESCRIBE HISTORY",
            "history()",
            lambda: history_frame(spark, open_place(target.place), limit),
        )
    column = None if cursor.is_done else cursor.identifier()
    cursor.ends()
    at = () if choice is None else (choice,)

    def run() -> DataFrame:
        snapshot = open_place(target.place, *at)
        if column is not None:
            return _described_column(changed, snapshot, column)
        rows = list(_described_columns(snapshot))
        if what == "EXTENDED":
            rows += _described_table(changed, snapshot)
        return text_frame(spark, ["col_name", "data_type", "comment"], rows)

    return changed.command("DESCRIBE", "columns of the table", run)


def _is_quoted(cursor: Cursor, ahead: int) -> bool:
    number = cursor.at + ahead
    return number < len(cursor.words) and cursor.words[number].is_quoted


def _detail(changed: Changed) -> DataFrame:
    return changed.table.detail().withColumn("name", sf.lit(changed.target.place.title))


def _described_columns(snapshot: Snapshot) -> Iterator[tuple[str, str, str | None]]:
    for each in spark_schema(arrow_schema_of(snapshot)).fields:
        yield each.name, each.dataType.simpleString(), (each.metadata or {}).get(COMMENT)


def _described_column(changed: Changed, snapshot: Snapshot, column: str) -> DataFrame:
    found = [each for each in _described_columns(snapshot) if each[0].lower() == column.lower()]
    if not found:
        message = f"table {changed.title} has no column {column!r}"
        raise ArgumentError(message)
    name, kind, comment = found[0]
    rows = [("col_name", name), ("data_type", kind), ("comment", comment or "NULL")]
    return text_frame(changed.spark, ["info_name", "info_value"], rows)


def _described_table(changed: Changed, snapshot: Snapshot) -> list[tuple[str, str, str | None]]:
    manifest = snapshot.manifest
    config = {
        key: value
        for key, value in sorted(manifest.config.items())
        if key not in (COMMENT, CLUSTERING)
    }
    shown = {
        "Name": changed.title,
        "Type": "MANAGED" if changed.target.place.attached is not None else "EXTERNAL",
        "Comment": manifest.config.get(COMMENT, ""),
        "Location": snapshot.store.uri,
        "Provider": "lance",
        "Version": str(manifest.version),
        "Table Properties": "[" + ",".join(f"{key}={value}" for key, value in config.items()) + "]",
    }
    if manifest.config.get(CLUSTERING):
        shown["Clustering Columns"] = manifest.config[CLUSTERING]
    return [
        ("", "", ""),
        ("# Detailed Table Information", "", ""),
        *((key, value, "") for key, value in shown.items()),
    ]


def _describe_namespace(spark: SparkSession, cursor: Cursor) -> Command | None:
    cursor.takes_any(*NAMESPACE_WORDS)
    is_extended = cursor.takes("EXTENDED")
    found = _namespace(spark, cursor.name())
    if found is None:
        return None
    cursor.ends()
    attached, name = found

    def run() -> DataFrame:
        properties = attached.catalog.describe_namespace(name)
        rows = [("Catalog Name", attached.name), ("Namespace Name", ".".join(name))]
        rows += [("Comment", properties.get(COMMENT, ""))] if COMMENT in properties else []
        if is_extended:
            others = {key: value for key, value in sorted(properties.items()) if key != COMMENT}
            shown = ", ".join(f"({key},{value})" for key, value in others.items())
            rows.append(("Properties", f"({shown})" if shown else ""))
        return text_frame(spark, ["info_name", "info_value"], rows)

    return Command(
        "DESCRIBE NAMESPACE", ".".join((attached.name, *name)), "describe_namespace", run
    )


def _namespace(spark: SparkSession, name: Name | None) -> tuple[Attached, TableName] | None:
    """Return the namespace of a name, or without one that of ``USE``; None if it is Spark's."""
    catalogs = catalogs_of(spark)
    if name is None:
        return catalogs.current
    named = catalogs.named(name.parts[0])
    if named is not None:
        inner = name.parts[1:]
        return named, () if inner == ("default",) and inner[0] not in _names(named) else inner
    if catalogs.current is None:
        return None
    return catalogs.current[0], name.parts


def _names(attached: Attached) -> list[str]:
    return attached.catalog.list_namespaces()


# --- SHOW --------------------------------------------------------------------------------------------


def show(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``SHOW TABLES | NAMESPACES | INDEXES | TAGS | BRANCHES | COLUMNS | TBLPROPERTIES | CREATE TABLE``."""
    cursor = Cursor(statement)
    cursor.needs("SHOW")
    for keywords, read in _SHOWS.items():
        if cursor.takes(*keywords):
            return read(spark, cursor)
    return None


def _show_tables(spark: SparkSession, cursor: Cursor) -> Command | None:
    name = cursor.name() if cursor.takes_any("FROM", "IN") else None
    found = _namespace(spark, name)
    if found is None:
        return None
    pattern = _pattern(cursor)
    attached, namespace = found

    def run() -> DataFrame:
        shown = [each for each in attached.catalog.list_tables(namespace) if _fits(each, pattern)]
        rows = [(".".join(namespace), each, False) for each in shown]
        return spark.createDataFrame(
            rows, "namespace string, tableName string, isTemporary boolean"
        )

    return Command("SHOW TABLES", ".".join((attached.name, *namespace)), "list_tables", run)


def _show_namespaces(spark: SparkSession, cursor: Cursor) -> Command | None:
    name = cursor.name() if cursor.takes_any("FROM", "IN") else None
    found = _namespace(spark, name)
    if found is None:
        return None
    if name is None:
        found = (found[0], ())
    pattern = _pattern(cursor)
    attached, namespace = found

    def run() -> DataFrame:
        shown = [
            each for each in attached.catalog.list_namespaces(namespace) if _fits(each, pattern)
        ]
        return text_frame(spark, ["namespace"], [(".".join((*namespace, each)),) for each in shown])

    return Command("SHOW NAMESPACES", ".".join((attached.name, *namespace)), "list_namespaces", run)


def _pattern(cursor: Cursor) -> str:
    cursor.takes("LIKE")
    found = "*" if cursor.is_done else cursor.text_literal()
    cursor.ends()
    return found


def _fits(name: str, pattern: str) -> bool:
    """Return whether a name has one of some patterns, ``a*|b*``, in any case."""
    return any(fnmatchcase(name.lower(), each.lower()) for each in pattern.split("|"))


def _of_table(
    spark: SparkSession,
    cursor: Cursor,
    kind: str,
    rows: Callable[[Changed], DataFrame],
    *,
    ends: bool = True,
) -> Command | None:
    cursor.takes_any("FROM", "IN", "ON")
    target = read_target(spark, cursor)
    if target is None:
        return None
    if ends:
        cursor.ends()
    changed = Changed(spark, cursor.statement, target)
    return changed.command(kind, "what the newest manifest has", lambda: rows(changed))


def _show_indices(spark: SparkSession, cursor: Cursor) -> Command | None:
    return _of_table(spark, cursor, "SHOW INDEXES", show_indices)


def _show_tags(spark: SparkSession, cursor: Cursor) -> Command | None:
    return _of_table(spark, cursor, "SHOW TAGS", _tags)


def _tags(changed: Changed) -> DataFrame:
    found = changed.table.tags.toDF().withColumnRenamed("tag", "name")
    return found.select("name", "branch", "version", "created_at", "updated_at")


def _show_branches(spark: SparkSession, cursor: Cursor) -> Command | None:
    return _of_table(spark, cursor, "SHOW BRANCHES", _branches)


def _branches(changed: Changed) -> DataFrame:
    found = changed.table.branches.toDF().withColumnRenamed("branch", "name")
    return found.select("name", "parent_branch", "parent_version", "created_at")


def _show_columns(spark: SparkSession, cursor: Cursor) -> Command | None:
    def rows(changed: Changed) -> DataFrame:
        names = arrow_schema_of(open_place(changed.target.place)).names
        return text_frame(spark, ["col_name"], [(name,) for name in names])

    return _of_table(spark, cursor, "SHOW COLUMNS", rows)


def _show_properties(spark: SparkSession, cursor: Cursor) -> Command | None:
    target = read_target(spark, cursor)
    if target is None:
        return None
    key = None
    if cursor.takes("("):
        key = cursor.property_key()
        cursor.needs(")")
    cursor.ends()
    changed = Changed(spark, cursor.statement, target)

    def run() -> DataFrame:
        config = dict(sorted(open_place(target.place).manifest.config.items()))
        if key is not None:
            config = {key: config.get(key, f"Table {changed.title} does not have property: {key}")}
        return text_frame(spark, ["key", "value"], list(config.items()))

    return changed.command("SHOW TBLPROPERTIES", "the table's config", run)


def _show_create(spark: SparkSession, cursor: Cursor) -> Command | None:
    def rows(changed: Changed) -> DataFrame:
        text = created_by(changed.target, open_place(changed.target.place))
        return text_frame(spark, ["createtab_stmt"], [(text,)])

    return _of_table(spark, cursor, "SHOW CREATE TABLE", rows)


def created_by(target: Target, snapshot: Snapshot) -> str:
    """Return the statement that makes an empty table of the same columns and properties."""
    lines = [_column_line(each) for each in spark_schema(arrow_schema_of(snapshot)).fields]
    config = dict(sorted(snapshot.manifest.config.items()))
    comment, clustering = config.pop(COMMENT, None), config.pop(CLUSTERING, None)
    name = ".".join(map(quoted, target.place.title.split(".")))
    text = f"CREATE TABLE {name} (\n  " + ",\n  ".join(lines) + ")\nUSING lance"
    if comment:
        text += f"\nCOMMENT {_literal(comment)}"
    if clustering:
        text += f"\nCLUSTER BY ({clustering})"
    if config:
        pairs = ",\n  ".join(
            f"{_literal(key)} = {_literal(value)}" for key, value in config.items()
        )
        text += f"\nTBLPROPERTIES (\n  {pairs})"
    return text


def _column_line(column: Any) -> str:
    text = f"{quoted(column.name)} {column.dataType.simpleString().upper()}"
    text += "" if column.nullable else " NOT NULL"
    comment = (column.metadata or {}).get(COMMENT)
    return text if comment is None else f"{text} COMMENT {_literal(comment)}"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_SHOWS: Final[Mapping[tuple[str, ...], Callable[[SparkSession, Cursor], Command | None]]] = {
    ("TABLES",): _show_tables,
    ("NAMESPACES",): _show_namespaces,
    ("SCHEMAS",): _show_namespaces,
    ("DATABASES",): _show_namespaces,
    ("INDEXES",): _show_indices,
    ("INDICES",): _show_indices,
    ("INDEX",): _show_indices,
    ("TAGS",): _show_tags,
    ("TAG",): _show_tags,
    ("BRANCHES",): _show_branches,
    ("BRANCH",): _show_branches,
    ("COLUMNS",): _show_columns,
    ("TBLPROPERTIES",): _show_properties,
    ("CREATE", "TABLE"): _show_create,
}
