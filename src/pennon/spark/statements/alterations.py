"""ALTER TABLE: columns, properties, the table's name; what stands beside the rows is in `ref_statements`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from pennon.catalog.base import TableName
from pennon.ops.columns.add import commit_add, plan_null_columns
from pennon.ops.columns.settings import update_config, update_field_metadata
from pennon.spark.names import find_name, quoted
from pennon.spark.session import is_case_sensitive
from pennon.spark.source.scan_task import arrow_schema_of
from pennon.spark.statements.columns import (
    RENAMED_PROPERTIES,
    column_definition,
    column_definitions,
    schema_of,
    set_primary_key,
    type_text,
)
from pennon.spark.statements.commands import (
    Changed,
    Command,
    empty_frame,
    text_frame,
)
from pennon.spark.statements.queries import run_query
from pennon.spark.statements.ref_statements import ALTER_REFS
from pennon.spark.statements.session import (
    catalogs_of,
)
from pennon.spark.statements.tables import read_target
from pennon.spark.statements.words import Cursor, Statement, dotted
from pennon.spark.table.builder import CLUSTERING, COMMENT
from pennon.spark.table.column_properties import ColumnShape
from pennon.spark.table.lance_table import LanceTable
from pennon.spark.types import lance_schema
from pennon.table.storage_version import storage_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def alter_table(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``ALTER TABLE name ...``: columns, properties, the name, indices, tags and branches."""
    cursor = Cursor(statement)
    cursor.needs("ALTER", "TABLE")
    target = read_target(spark, cursor)
    if target is None:
        return None
    changed = Changed(spark, statement, target)
    for keywords, read in {**_ALTERATIONS, **ALTER_REFS}.items():
        if cursor.takes(*keywords):
            return read(changed, cursor)
    raise changed.refused("this is no change that a Lance table knows")


def _add_columns(changed: Changed, cursor: Cursor) -> Command:
    cursor.takes_any("COLUMN", "COLUMNS")
    cursor.takes("IF", "NOT", "EXISTS")
    start = cursor.at
    names = _listed_names(cursor)
    if names and cursor.takes("FROM"):
        return _add_columns_from(changed, cursor, names)
    cursor.at = start
    if cursor.peek() == "(":
        columns, _ = column_definitions(cursor)
    else:
        columns = [column_definition(cursor, cursor.name().parts)]
        while cursor.takes(","):
            columns.append(column_definition(cursor, cursor.name().parts))
    cursor.ends()
    if any(not each.nullable for each in columns):
        raise changed.refused(
            "rows that are there have NULL in a new column, so it cannot be NOT NULL"
        )

    def run() -> DataFrame:
        table = changed.table
        snapshot = table.snapshot()
        schema = schema_of(changed.spark, columns)
        shape = ColumnShape.of(snapshot.manifest.config, schema.names)
        stored = lance_schema(schema, shape.dimensions, storage_version(snapshot.manifest))
        commit_add(plan_null_columns(snapshot, shape.stored(stored)), snapshot.manifest.fragments)
        return empty_frame(changed.spark)

    return changed.command(
        "ALTER TABLE", f"add columns {', '.join(each.name for each in columns)}", run
    )


def _listed_names(cursor: Cursor) -> list[str]:
    """Read ``a, b`` before FROM; nothing if another list stands there."""
    if cursor.is_done or not cursor.words[cursor.at].is_name:
        return []
    names = [cursor.identifier()]
    while cursor.takes(","):
        if cursor.is_done or not cursor.words[cursor.at].is_name:
            return []
        names.append(cursor.identifier())
    return names if cursor.peek() == "FROM" else []


def _add_columns_from(changed: Changed, cursor: Cursor, names: list[str]) -> Command:
    source = cursor.rest()

    def run() -> DataFrame:
        rows = run_query(changed.spark, f"SELECT * FROM {source}")  # noqa: S608 - the statement's own words
        shown = rows.select("_rowaddr", *map(quoted, names))
        return changed.table.addColumns(shown, on="_rowaddr")

    return changed.command("ALTER TABLE", f"addColumns({', '.join(names)}) from {source}", run)


def _update_columns(changed: Changed, cursor: Cursor) -> Command:
    cursor.takes_any("COLUMN", "COLUMNS")
    names = _listed_names(cursor)
    if not names:
        raise cursor.wrong("column, ... FROM source")
    cursor.needs("FROM")
    source = cursor.rest()

    def run() -> DataFrame:
        rows = run_query(changed.spark, f"SELECT * FROM {source}")  # noqa: S608 - the statement's own words
        new = [sf.col(quoted(name)).alias(f"new_{number}") for number, name in enumerate(names)]
        shown = rows.select(sf.col("_rowaddr").alias("at"), *new).alias("new")
        merge = changed.table.alias("old").merge(shown, "old._rowaddr = new.at")
        values = {quoted(name): f"new.new_{number}" for number, name in enumerate(names)}
        return merge.whenMatchedUpdate(set=values).execute()

    return changed.command("ALTER TABLE", f"update columns {', '.join(names)} from {source}", run)


def _drop_columns(changed: Changed, cursor: Cursor) -> Command:
    cursor.takes_any("COLUMN", "COLUMNS")
    missing_ok = cursor.takes("IF", "EXISTS")
    if cursor.peek() == "(":
        names = cursor.names()
    else:
        names = [dotted(cursor.name().parts)]
        while cursor.takes(","):
            names.append(dotted(cursor.name().parts))
    cursor.ends()

    def run() -> DataFrame:
        table = changed.table
        known = arrow_schema_of(table.snapshot()).names
        cases = is_case_sensitive(changed.spark)
        found = [find_name(name.strip("`"), known, case_sensitive=cases) or name for name in names]
        gone = [name for name in found if not missing_ok or name in known or "." in name]
        if gone:
            table.dropColumns(gone)
        return empty_frame(changed.spark)

    return changed.command("ALTER TABLE", f"dropColumns({', '.join(names)})", run)


def _rename_column(changed: Changed, cursor: Cursor) -> Command:
    old = cursor.name().parts
    cursor.needs("TO")
    new = cursor.identifier()
    cursor.ends()

    def run() -> DataFrame:
        table = changed.table
        table.renameColumn(_stored_path(changed, table, old), new)
        return empty_frame(changed.spark)

    return changed.command("ALTER TABLE", f"renameColumn({dotted(old)!r}, {new!r})", run)


def _stored_path(changed: Changed, table: LanceTable, parts: TableName) -> str:
    """Return the path of a column as the table calls it."""
    known = arrow_schema_of(table.snapshot()).names
    first = find_name(parts[0], known, case_sensitive=is_case_sensitive(changed.spark))
    return dotted((first or parts[0], *parts[1:]))


def _rename_table(changed: Changed, cursor: Cursor) -> Command:
    name = cursor.name()
    cursor.ends()
    place = changed.target.place
    attached = place.attached
    if attached is None:
        raise changed.refused("a path has no name in a catalog")
    named = catalogs_of(changed.spark).named(name.parts[0]) if len(name.parts) > 1 else None
    if named is not None and named is not attached:
        raise changed.refused("a table stays in its catalog")
    inner = name.parts[1:] if named is not None else name.parts
    if len(inner) == 1:
        inner = (*place.name[:-1], *inner)

    def run() -> DataFrame:
        attached.catalog.rename_table(place.name, inner)
        return empty_frame(changed.spark)

    return changed.command("ALTER TABLE", f"rename_table({'.'.join(inner)!r})", run)


def _alter_column(changed: Changed, cursor: Cursor) -> Command:
    cursor.takes("COLUMN")
    parts = cursor.name().parts
    if cursor.peek() in ("FIRST", "AFTER"):
        raise changed.refused(
            "columns of a Lance table keep their order; a SELECT shows them in another one"
        )
    if cursor.takes("COMMENT"):
        return _altered(changed, cursor, parts, "comment", _commented(cursor.text_literal()))
    if cursor.takes("TYPE"):
        return _altered(changed, cursor, parts, "type", _typed(type_text(cursor)))
    if cursor.takes("SET", "NOT", "NULL"):
        return _altered(changed, cursor, parts, "not null", _nullable(nullable=False))
    if cursor.takes("DROP", "NOT", "NULL"):
        return _altered(changed, cursor, parts, "nullable", _nullable(nullable=True))
    if cursor.peek() in ("SET", "DROP"):
        raise changed.refused("columns of Lance tables have no DEFAULT")
    new = cursor.identifier()  # Hive's CHANGE COLUMN old new type
    column = column_definition(cursor, (new,))

    def change(table: LanceTable, path: str) -> None:
        _typed(column.kind)(table, path)
        if column.comment is not None:
            _commented(column.comment)(table, path)
        if new != parts[-1]:
            table.renameColumn(path, new)

    return _altered(changed, cursor, parts, f"type {column.kind}", change)


def _commented(comment: str) -> Callable[[LanceTable, str], None]:
    def change(table: LanceTable, path: str) -> None:
        update_field_metadata(table.snapshot(), {path: {COMMENT: comment}})

    return change


def _typed(kind: str) -> Callable[[LanceTable, str], None]:
    return lambda table, path: table.alterColumn(path, dataType=kind)


def _nullable(*, nullable: bool) -> Callable[[LanceTable, str], None]:
    return lambda table, path: table.alterColumn(path, nullable=nullable)


def _altered(
    changed: Changed,
    cursor: Cursor,
    parts: TableName,
    detail: str,
    change: Callable[[LanceTable, str], None],
) -> Command:
    cursor.ends()

    def run() -> DataFrame:
        table = changed.table
        change(table, _stored_path(changed, table, parts))
        return empty_frame(changed.spark)

    return changed.command("ALTER TABLE", f"alterColumn({dotted(parts)!r}), {detail}", run)


def _set_properties(changed: Changed, cursor: Cursor) -> Command:
    values = {RENAMED_PROPERTIES.get(key, key): value for key, value in cursor.properties().items()}
    cursor.ends()

    def run() -> DataFrame:
        update_config(changed.table.snapshot(), values)
        return empty_frame(changed.spark)

    return changed.command("ALTER TABLE", f"set {values}", run)


def _unset_properties(changed: Changed, cursor: Cursor) -> Command:
    cursor.takes("IF", "EXISTS")
    cursor.needs("(")
    keys = [cursor.property_key()]
    while cursor.takes(","):
        keys.append(cursor.property_key())
    cursor.needs(")")
    cursor.ends()

    def run() -> DataFrame:
        snapshot = changed.table.snapshot()
        gone = {key: None for key in keys if key in snapshot.manifest.config}
        if gone:
            update_config(snapshot, gone)
        return empty_frame(changed.spark)

    return changed.command("ALTER TABLE", f"unset {keys}", run)


def _cluster_by(changed: Changed, cursor: Cursor) -> Command:
    names = [] if cursor.takes("NONE") else cursor.names()
    cursor.ends()

    def run() -> DataFrame:
        update_config(changed.table.snapshot(), {CLUSTERING: ",".join(names) or None})
        return empty_frame(changed.spark)

    return changed.command("ALTER TABLE", f"cluster by {names}", run)


def _primary_key(changed: Changed, cursor: Cursor) -> Command:
    names = cursor.names()
    cursor.ends()

    def run() -> DataFrame:
        set_primary_key(changed.table, names)
        return text_frame(
            changed.spark, ["status", "primary_key_columns"], [("OK", ",".join(names))]
        )

    return changed.command("ALTER TABLE", f"primary key {names}", run)


_ALTERATIONS: Final[Mapping[tuple[str, ...], Callable[[Changed, Cursor], Command]]] = {
    ("ADD", "COLUMN"): _add_columns,
    ("ADD", "COLUMNS"): _add_columns,
    ("UPDATE",): _update_columns,
    ("DROP", "COLUMN"): _drop_columns,
    ("DROP", "COLUMNS"): _drop_columns,
    ("RENAME", "COLUMN"): _rename_column,
    ("RENAME", "TO"): _rename_table,
    ("ALTER",): _alter_column,
    ("CHANGE",): _alter_column,
    ("SET", "TBLPROPERTIES"): _set_properties,
    ("UNSET", "TBLPROPERTIES"): _unset_properties,
    ("SET", "UNENFORCED", "PRIMARY", "KEY"): _primary_key,
    ("ADD", "PRIMARY", "KEY"): _primary_key,
    ("CLUSTER", "BY"): _cluster_by,
}
