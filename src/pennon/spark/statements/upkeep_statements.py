"""Statements that keep tables in shape, and that show what there is: OPTIMIZE, VACUUM, RESTORE, DESCRIBE, SHOW."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from pennon.catalog.base import TableName
from pennon.errors import ArgumentError
from pennon.ops.cleanup.file_kinds import Kind
from pennon.ops.cleanup.policy import Policy
from pennon.ops.cleanup.run import Removed, clean, preview
from pennon.spark.history import history_frame
from pennon.spark.names import quoted
from pennon.spark.source.scan_task import arrow_schema_of
from pennon.spark.statements.commands import Changed, Command, text_frame
from pennon.spark.statements.ref_statements import show_indices
from pennon.spark.statements.session import Attached, catalogs_of
from pennon.spark.statements.tables import Target, open_place, read_target, read_version
from pennon.spark.statements.words import Cursor, Name, Statement
from pennon.spark.table.builder import CLUSTERING, COMMENT
from pennon.spark.types import spark_schema
from pennon.table.versions import list_versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.snapshot import Snapshot

_NAMESPACES: Final = ("NAMESPACE", "SCHEMA", "DATABASE")
_MILLIS: Final = ("before_timestamp_millis", "older_than_millis")
_NOT_HERE: Final = ("num_threads", "batch_size", "defer_index_remap", "max_source_fragments")
"""Options of lance-spark's OPTIMIZE that say how its threads work; here Spark's tasks do."""


# --- OPTIMIZE, VACUUM, RESTORE -----------------------------------------------------------------------


def optimize(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``OPTIMIZE table [WHERE condition] [ZORDER BY (columns)] [WITH (options)]``."""
    cursor = Cursor(statement)
    cursor.needs("OPTIMIZE")
    cursor.takes("TABLE")
    target = read_target(spark, cursor)
    if target is None:
        return None
    changed = Changed(spark, statement, target)
    cursor.takes("FULL")
    where = (
        changed.expression(cursor.until("ZORDER", "SORT", "WITH"))
        if cursor.takes("WHERE")
        else None
    )
    by = cursor.takes_any("ZORDER", "SORT")
    columns: list[str] = []
    if by:
        cursor.needs("BY")
        columns = cursor.names() if cursor.peek() == "(" else _listed(cursor)
    options = _options(cursor.properties()) if cursor.takes("WITH") else {}
    cursor.ends()

    def run() -> DataFrame:
        builder = changed.table.optimize()
        builder = builder if where is None else builder.where(where)
        if not by:
            return builder.executeCompaction(**options)
        chosen = [name.replace("`", "") for name in columns]
        run_by = builder.executeZOrderBy if by == "ZORDER" else builder.executeSortBy
        return run_by(*chosen, **options)

    how = f"{by} BY {columns}" if by else "executeCompaction"
    return changed.command("OPTIMIZE", f"{how}, where {where!r}, {options}", run)


def _listed(cursor: Cursor) -> list[str]:
    found = [".".join(cursor.name().parts)]
    while cursor.takes(","):
        found.append(".".join(cursor.name().parts))
    return found


def _options(given: Mapping[str, str]) -> dict[str, Any]:
    """Return options with numbers and truth values; those that only concern threads are left out."""
    found: dict[str, Any] = {}
    for key, text in given.items():
        name = key.lower()
        if name in _NOT_HERE:
            continue
        lower = text.lower()
        if lower in ("true", "false"):
            found[name] = lower == "true"
        else:
            found[name] = float(text) if "." in text else int(text) if text.isdecimal() else text
    return found


def vacuum(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``VACUUM table [RETAIN 168 HOURS] [DRY RUN] [WITH (before_version = 3, ...)]``."""
    cursor = Cursor(statement)
    cursor.needs("VACUUM")
    target = read_target(spark, cursor)
    if target is None:
        return None
    changed = Changed(spark, statement, target)
    cursor.takes_any("FULL", "LITE")
    hours: float | None = None
    is_dry = False
    options: dict[str, Any] = {}
    while not cursor.is_done:
        if cursor.takes("RETAIN"):
            hours = _hours(cursor)
        elif cursor.takes("DRY", "RUN"):
            is_dry = True
        elif cursor.takes("WITH"):
            options = _options(cursor.properties())
        else:
            raise cursor.wrong("RETAIN n HOURS, DRY RUN or WITH (options)")
    asked = Vacuum(hours, options, is_dry=is_dry)
    return changed.command("VACUUM", asked.detail, lambda: _run_vacuum(changed, asked))


@dataclass(frozen=True, slots=True)
class Vacuum:
    """A VACUUM: how old versions are that stay, lance-spark's options, and whether nothing is deleted."""

    hours: float | None
    options: Mapping[str, Any]
    is_dry: bool

    @property
    def detail(self) -> str:
        """Return what is done, for ``explain=True``."""
        if self.options:
            return f"clean({dict(self.options)})"
        return f"vacuum({'' if self.hours is None else self.hours})" + (
            ", nothing is deleted" if self.is_dry else ""
        )

    def policy(self, snapshot: Snapshot) -> Policy:
        """Return which versions are old.  Raises ArgumentError for an option that is none."""
        known = {"before_version", *_MILLIS, "delete_unverified", "error_if_tagged_old_versions"}
        unknown = sorted(set(self.options) - known)
        if unknown:
            message = (
                f"VACUUM has no option {', '.join(unknown)}; it has {', '.join(sorted(known))}"
            )
            raise ArgumentError(message)
        age = None if self.hours is None else timedelta(hours=self.hours)
        for key in _MILLIS:
            if key in self.options:
                age = timedelta(milliseconds=max(time.time() * 1000 - float(self.options[key]), 0))
        versions = None
        if "before_version" in self.options:
            least = int(self.options["before_version"])
            versions = [
                each.version for each in list_versions(snapshot.store) if each.version < least
            ]
        if age is None and versions is None:
            age = timedelta(hours=168)
        return Policy.of(
            age,
            None,
            versions,
            delete_unverified=bool(self.options.get("delete_unverified", False)),
            error_if_tagged=bool(self.options.get("error_if_tagged_old_versions", False)),
        )


def _hours(cursor: Cursor) -> float:
    word = None if cursor.is_done else cursor.words[cursor.at]
    if word is None or not word.is_number:
        raise cursor.wrong("a number of hours")
    cursor.at += 1
    cursor.takes_any("HOURS", "HOUR")
    try:
        return float(word.text)
    except ValueError:
        raise cursor.wrong("a number of hours") from None


def _run_vacuum(changed: Changed, asked: Vacuum) -> DataFrame:
    table, spark = changed.table, changed.spark
    if asked.is_dry:
        plan, _ = preview(table.snapshot(), asked.policy(table.snapshot()))
        rows = [(each.info.path,) for each in (*plan.manifests, *plan.files)]
        return text_frame(spark, ["path"], rows)
    if not asked.options:
        return table.vacuum(asked.hours)
    removed: Removed = clean(table.snapshot(), asked.policy(table.snapshot()))
    row = [(removed.size_bytes, removed.count(Kind.MANIFEST))]
    return spark.createDataFrame(row, "bytes_removed bigint, old_versions bigint")


def restore(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``RESTORE [TABLE] table TO VERSION AS OF 3 | TIMESTAMP AS OF '2026-01-31'``."""
    cursor = Cursor(statement)
    cursor.needs("RESTORE")
    cursor.takes("TABLE")
    target = read_target(spark, cursor)
    if target is None:
        return None
    changed = Changed(spark, statement, target)
    cursor.needs("TO")
    choice = read_version(spark, cursor)
    if choice is None:
        raise cursor.wrong("VERSION AS OF, or TIMESTAMP AS OF")
    cursor.ends()

    def run() -> DataFrame:
        old = open_place(target.place, choice)
        return changed.table.restoreToVersion(int(old.manifest.version))

    return changed.command("RESTORE", f"restore to {choice}", run)


# --- DESCRIBE ----------------------------------------------------------------------------------------


def describe(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``DESCRIBE [TABLE] [EXTENDED] table [column]``, ``DESCRIBE DETAIL | HISTORY table``, ``DESCRIBE NAMESPACE name``."""
    cursor = Cursor(statement)
    cursor.takes_any("DESCRIBE", "DESC")
    if cursor.peek() in _NAMESPACES:
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
    from pyspark.sql import functions as sf

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
    cursor.takes_any(*_NAMESPACES)
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
    """Return whether a name has one of some patterns, ``a*|b*``, whatever the case."""
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
