"""Statements about whole tables and namespaces: CREATE, CTAS, REPLACE, CLONE, DROP, ALTER."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pennon.catalog.base import TableName
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    LanceError,
    NotFoundError,
    UnsupportedError,
)
from pennon.ops.columns.add import commit_add, plan_null_columns
from pennon.ops.columns.settings import update_config, update_field_metadata
from pennon.schema.wire import PRIMARY_KEY, is_primary_key
from pennon.spark.names import find_name, quoted
from pennon.spark.session import is_case_sensitive
from pennon.spark.source.scan_task import arrow_schema_of, open_snapshot
from pennon.spark.statements.commands import (
    Changed,
    Command,
    affected_frame,
    empty_frame,
    new_rows,
    refused,
    text_frame,
)
from pennon.spark.statements.queries import run_query
from pennon.spark.statements.ref_statements import ALTER_REFS
from pennon.spark.statements.session import (
    Attached,
    Place,
    catalogs_of,
    find_place,
    is_path,
    new_place,
)
from pennon.spark.statements.tables import Target, open_place, read_target, read_version
from pennon.spark.statements.words import Cursor, Name, Statement, Word, dotted
from pennon.spark.table.builder import CLUSTERING, COMMENT, parse_type
from pennon.spark.table.column_properties import ColumnShape
from pennon.spark.table.functions import write
from pennon.spark.table.lance_table import LanceTable
from pennon.spark.types import lance_schema
from pennon.table.storage_version import storage_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FORMAT: Final = "lance"
_RENAMED: Final = {"file_format_version": "data_storage_version"}
_STABLE: Final = "enable_stable_row_ids"
_FILE_VERSION: Final = "data_storage_version"
_AFTER_TYPE: Final = frozenset(
    {
        "NOT", "NULL", "COMMENT", "DEFAULT", "GENERATED", "PRIMARY", "UNIQUE", "CHECK", "MASK", "FIRST", "AFTER",
        "CONSTRAINT", ",", ")", "REFERENCES",
    }
)  # fmt: skip
_ANGLES: Final = re.compile(r"[<>]+")
_OF_OTHERS: Final = ("PARTITIONED", "CLUSTERED", "SKEWED", "STORED", "ROW")
_NAMESPACES: Final = ("NAMESPACE", "SCHEMA", "DATABASE")


# --- columns ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnText:
    """A column as a statement defines it: the type is text."""

    name: str
    kind: str
    nullable: bool = True
    comment: str | None = None
    is_key: bool = False


def _column_definitions(cursor: Cursor) -> tuple[list[ColumnText], list[str]]:
    """Read ``(name type [NOT NULL] [COMMENT 'text'], ...)``; return columns, and those of PRIMARY KEY."""
    cursor.needs("(")
    columns: list[ColumnText] = []
    key: list[str] = []
    while True:
        if cursor.takes("CONSTRAINT"):
            cursor.identifier()
        if cursor.takes("PRIMARY", "KEY"):
            key += cursor.names()
            cursor.takes("NOT", "ENFORCED")
        elif cursor.peek() in ("UNIQUE", "CHECK", "FOREIGN"):
            raise refused(
                cursor.statement, "a Lance table has no constraints but NOT NULL and PRIMARY KEY"
            )
        else:
            column = _column_definition(cursor, (cursor.identifier(),))
            key += [column.name] if column.is_key else []
            columns.append(column)
        if not cursor.takes(","):
            break
    cursor.needs(")")
    return columns, key


def _column_definition(cursor: Cursor, name: TableName) -> ColumnText:
    cursor.takes(":")
    found = ColumnText(dotted(name) if len(name) > 1 else name[0], _type_text(cursor))
    while True:
        if cursor.takes("NOT", "NULL"):
            found = replace(found, nullable=False)
        elif cursor.takes("PRIMARY", "KEY"):
            found = replace(found, nullable=False, is_key=True)
        elif cursor.takes("NULL"):
            pass
        elif cursor.takes("COMMENT"):
            found = replace(found, comment=cursor.text_literal())
        elif cursor.peek() in ("DEFAULT", "GENERATED"):
            raise refused(
                cursor.statement,
                f"column {found.name!r}: a Lance table has no default values, and no generated columns",
            )
        elif cursor.peek() in ("FIRST", "AFTER"):
            raise refused(
                cursor.statement,
                f"column {found.name!r}: new columns are the last ones of a Lance table",
            )
        else:
            return found


def _type_text(cursor: Cursor) -> str:
    first, depth = cursor.at, 0
    while not cursor.is_done:
        word = cursor.peek()
        if depth == 0 and word in _AFTER_TYPE:
            break
        depth += _depth(cursor.words[cursor.at])
        cursor.at += 1
    if cursor.at == first:
        raise cursor.wrong("the type of a column")
    return cursor.statement.slice(first, cursor.at)


def _depth(word: Word) -> int:
    if word.is_text or word.is_quoted:
        return 0
    if _ANGLES.fullmatch(word.text):
        return word.text.count("<") - word.text.count(">")
    return (word.text == "(") - (word.text == ")")


def _schema(spark: SparkSession, columns: list[ColumnText]) -> st.StructType:
    """Return Spark's schema of columns that a statement defines."""
    parts = ", ".join(f"{quoted(each.name)}: {each.kind}" for each in columns)
    kind = parse_type(spark, f"STRUCT<{parts}>")
    if not isinstance(kind, st.StructType) or len(kind.fields) != len(columns):
        message = f"the columns {parts} are no list of names and types"
        raise ArgumentError(message)
    pairs = zip(columns, kind.fields, strict=True)
    return st.StructType(
        [
            st.StructField(said.name, found.dataType, said.nullable, _comment(said))
            for said, found in pairs
        ]
    )


def _comment(said: ColumnText) -> dict[str, str]:
    return {} if said.comment is None else {COMMENT: said.comment}


# --- CREATE TABLE ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that a statement makes: its columns or its query, properties, and whether it may be there."""

    way: str
    columns: tuple[ColumnText, ...] = ()
    key: tuple[str, ...] = ()
    query: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    clone: Cloned | None = None
    like: Name | None = None

    def with_properties(self, given: Mapping[str, str]) -> NewTable:
        """Return the table with more properties."""
        new = {_RENAMED.get(key, key): value for key, value in given.items()}
        return replace(self, properties={**self.properties, **new})

    @property
    def detail(self) -> str:
        """Return what is done, for ``explain=True``."""
        if self.clone is not None:
            return f"clone({self.clone.source.place.title!r}, isShallow={self.clone.is_shallow})"
        return f"{self.way}()" if self.query is None else f"{self.way} as query"


@dataclass(frozen=True, slots=True)
class Cloned:
    """The table that a new one is a clone of."""

    source: Target
    version: int | None
    is_shallow: bool


def create_table(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name ...``, ``REPLACE TABLE name ...``."""
    cursor = Cursor(statement)
    way = "replace" if cursor.takes("REPLACE") else "create"
    if way == "create":
        cursor.needs("CREATE")
        way = "createOrReplace" if cursor.takes("OR", "REPLACE") else way
    cursor.needs("TABLE")
    if cursor.takes("IF", "NOT", "EXISTS"):
        way = "createIfNotExists"
    name = cursor.name()
    asked, provider = _table_clauses(spark, cursor, NewTable(way))
    home = _home(spark, name, provider)
    if home is None:
        return None
    if provider not in ("", _FORMAT):
        raise refused(
            statement,
            f"{home.title} is in a catalog of Lance tables, so it cannot be USING {provider}",
        )
    return Command("CREATE TABLE", home.title, asked.detail, lambda: _make(spark, home, asked))


def _table_clauses(spark: SparkSession, cursor: Cursor, asked: NewTable) -> tuple[NewTable, str]:
    """Read what follows the name; return it, and the format in small letters."""
    provider = ""
    if cursor.peek() == "(":
        columns, key = _column_definitions(cursor)
        asked = replace(asked, columns=tuple(columns), key=tuple(key))
    while not cursor.is_done:
        if cursor.takes("USING"):
            provider = cursor.identifier_or_text().lower()
        elif cursor.peek() in ("SHALLOW", "DEEP", "CLONE"):
            found = _clone_source(spark, cursor)
            if found is None:
                return asked, "delta"
            asked = replace(asked, clone=found)
        elif cursor.peek() in _OF_OTHERS:
            return asked, _other_format(cursor, provider)
        elif cursor.takes("AS") or cursor.peek() in ("SELECT", "WITH", "VALUES", "FROM"):
            asked = replace(asked, query=cursor.rest())
        else:
            asked = _table_clause(cursor, asked)
    return asked, provider


def _table_clause(cursor: Cursor, asked: NewTable) -> NewTable:
    """Read a clause that says something of the table itself."""
    if cursor.takes_any("TBLPROPERTIES", "OPTIONS"):
        return asked.with_properties(cursor.properties())
    if cursor.takes("COMMENT"):
        return asked.with_properties({COMMENT: cursor.text_literal()})
    if cursor.takes("CLUSTER", "BY"):
        return asked.with_properties({CLUSTERING: ",".join(cursor.names())})
    if cursor.takes("LOCATION"):
        return replace(asked, location=cursor.text_literal())
    if cursor.takes("LIKE"):
        return replace(asked, like=cursor.name())
    raise cursor.wrong("USING, TBLPROPERTIES, COMMENT, LOCATION, CLUSTER BY, LIKE, CLONE or AS")


def _other_format(cursor: Cursor, provider: str) -> str:
    """Return the format of a table with partitions, buckets or Hive's clauses, which none of Lance has."""
    if provider not in ("", _FORMAT):
        return provider
    if cursor.peek() in ("STORED", "ROW"):
        return "hive"
    raise refused(
        cursor.statement,
        "a Lance table has no partitions and no buckets: CLUSTER BY, or write it sorted",
    )


def _clone_source(spark: SparkSession, cursor: Cursor) -> Cloned | None:
    is_shallow = cursor.takes("SHALLOW")
    cursor.takes("DEEP")
    cursor.needs("CLONE")
    source = read_target(spark, cursor)
    if source is None:
        return None
    choice = read_version(spark, cursor)
    version = None
    if choice is not None or source.place.ref is not None:
        place = source.place
        version = open_place(place, *(() if choice is None else (choice,))).manifest.version
    return Cloned(source, version, is_shallow)


@dataclass(frozen=True, slots=True)
class Home:
    """Where a new table goes: a name in a catalog, or a path; and the table that is there now."""

    title: str
    attached: Attached | None
    name: TableName
    path: str | None = None
    found: Place | None = None

    def declared(self, location: str | None) -> Place:
        """Take the name, and return the place.  Raises AlreadyExistsError if it is taken."""
        if self.found is not None:
            return self.found
        if self.attached is None:
            raise ArgumentError("a table needs a name in a catalog, or a path")
        if location is None:
            entry = self.attached.catalog.declare_table(self.name)
        else:
            entry = self.attached.catalog.declare_table(self.name, location=location)
        return Place(self.title, entry, self.attached)

    def forget(self) -> None:
        """Give the name back after a failure, if this statement took it."""
        if self.found is None and self.attached is not None:
            with suppress(LanceError):
                self.attached.catalog.drop_table(self.name)


def _home(spark: SparkSession, name: Name, provider: str) -> Home | None:
    """Return where a new table goes; None if it is Spark's."""
    if is_path(name.parts):
        return Home(str(name), None, (), name.parts[1], find_place(spark, name))
    if catalogs_of(spark).named(name.parts[0]) is None and provider not in ("", _FORMAT):
        return None
    new = new_place(spark, name)
    if new is None and provider == _FORMAT:
        shown = [each for each in catalogs_of(spark).attached.values() if each.views]
        new = (shown[0], name.parts) if len(shown) == 1 else None
    if new is None:
        return None
    attached, inner = new
    found = find_place(spark, name)
    if found is not None and (found.attached is not attached or found.name != inner):
        found = None
    return Home(".".join((attached.name, *inner)), attached, inner, None, found)


def _make(spark: SparkSession, home: Home, asked: NewTable) -> DataFrame:
    is_there = _is_there(home)
    if is_there and asked.way == "createIfNotExists":
        return empty_frame(spark)
    if is_there and asked.way == "create":
        message = f"there is a table {home.title} already"
        raise AlreadyExistsError(message)
    if not is_there and asked.way == "replace":
        message = f"there is no table {home.title} to replace"
        raise NotFoundError(message)
    place = home.declared(asked.location)
    try:
        return _filled(spark, place, asked, is_there=is_there)
    except BaseException:
        home.forget()
        raise


def _is_there(home: Home) -> bool:
    if home.found is None:
        return False
    try:
        open_place(home.found)
    except NotFoundError:
        return False
    return True


def _filled(spark: SparkSession, place: Place, asked: NewTable, *, is_there: bool) -> DataFrame:
    uri, options = place.entry.location, dict(place.entry.storage_options)
    if asked.clone is not None:
        source = asked.clone.source.place.entry
        table = LanceTable.forPath(spark, source.location, source.storage_options)
        how = {
            "isShallow": asked.clone.is_shallow,
            "replace": is_there,
            "properties": dict(asked.properties),
        }
        if asked.clone.version is None:
            table.clone(uri, **how)  # type: ignore[arg-type]
        else:
            table.cloneAtVersion(asked.clone.version, uri, **how)  # type: ignore[arg-type]
        return empty_frame(spark)
    if asked.query is not None:
        return _filled_by_query(spark, uri, options, asked, is_there=is_there)
    _empty_table(spark, uri, options, _fields(spark, asked), asked, is_there=is_there)
    return empty_frame(spark)


def _fields(spark: SparkSession, asked: NewTable) -> st.StructType:
    if asked.like is None:
        return _schema(spark, list(asked.columns))
    found = find_place(spark, asked.like)
    if found is None:
        return spark.table(".".join(map(quoted, asked.like.parts))).schema
    entry = found.entry
    return LanceTable.forPath(spark, entry.location, entry.storage_options).toDF().schema


def _empty_table(
    spark: SparkSession,
    uri: str,
    options: Mapping[str, str],
    columns: st.StructType,
    asked: NewTable,
    *,
    is_there: bool,
) -> LanceTable:
    make = LanceTable.createOrReplace if is_there else LanceTable.create
    builder = make(spark).location(uri).addColumns(columns)
    builder.storage_options = options
    for key, value in asked.properties.items():
        builder = builder.property(key, value)
    table = builder.execute()
    if asked.key:
        _set_primary_key(table, list(asked.key))
    return table


def _filled_by_query(
    spark: SparkSession, uri: str, options: Mapping[str, str], asked: NewTable, *, is_there: bool
) -> DataFrame:
    rows = run_query(spark, asked.query or "")
    if asked.columns:
        message = (
            "CREATE TABLE ... AS takes the columns of the query: leave the list of columns out"
        )
        raise ArgumentError(message)
    shape = ColumnShape.of(asked.properties, rows.columns)
    if not is_there and shape.columns:
        # Types that only the table has: it is made first, and takes the rows as an append.
        table = _empty_table(spark, uri, options, rows.schema, asked, is_there=False)
        version = write(rows, table.uri, "append", storage_options=options)
        return affected_frame(spark, new_rows(open_snapshot(uri, options, version), None))
    others = dict(shape.others)
    version = write(
        rows,
        uri,
        "overwrite" if is_there else "create",
        fixed_size_list=shape.dimensions,
        data_storage_version=others.pop(_FILE_VERSION, None),
        overwrite_schema=is_there,
        enable_stable_row_ids=others.pop(_STABLE, "false").lower() == "true",
        storage_options=options,
    )
    made = open_snapshot(uri, options, version)
    if others:
        update_config(made, others)
    before = open_snapshot(uri, options, version - 1) if is_there else None
    return affected_frame(spark, new_rows(made, before))


# --- views -----------------------------------------------------------------------------------------


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
    query = cursor.rest()
    from pennon.spark.statements.queries import prepare_query

    prepared = prepare_query(spark, Statement.of(query))
    if not prepared.frames and prepared.answer is None:
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


# --- DROP ------------------------------------------------------------------------------------------


def drop_table(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``DROP TABLE [IF EXISTS] name [PURGE]``: without PURGE the files stay."""
    cursor = Cursor(statement)
    cursor.needs("DROP", "TABLE")
    missing_ok = cursor.takes("IF", "EXISTS")
    name = cursor.name()
    place = find_place(spark, name)
    if place is None:
        if (
            missing_ok
            and len(name.parts) > 1
            and catalogs_of(spark).named(name.parts[0]) is not None
        ):
            return Command(
                "DROP TABLE",
                str(name),
                "nothing, there is no such table",
                lambda: empty_frame(spark),
            )
        return None
    purges = cursor.takes("PURGE")
    cursor.ends()
    attached = place.attached
    if attached is None:
        raise refused(statement, "a path is in no catalog, so it cannot be dropped")

    def run() -> DataFrame:
        if purges:
            attached.catalog.drop_table(place.name)
            return empty_frame(spark)
        try:
            attached.catalog.deregister_table(place.name)
        except UnsupportedError as error:
            message = f"{error}; DROP TABLE ... PURGE deletes the table's files, too"
            raise UnsupportedError(message) from error
        return empty_frame(spark)

    detail = "drop_table, its files are deleted" if purges else "deregister_table, its files stay"
    return Command("DROP TABLE", place.title, detail, run)


# --- namespaces ------------------------------------------------------------------------------------


def create_namespace(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``CREATE NAMESPACE [IF NOT EXISTS] name [COMMENT 'text'] [WITH PROPERTIES (...)]``."""
    cursor = Cursor(statement)
    cursor.needs("CREATE")
    cursor.takes_any(*_NAMESPACES)
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
    cursor.takes_any(*_NAMESPACES)
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
        cursor.takes_any("CATALOG", *_NAMESPACES)
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


# --- ALTER TABLE -----------------------------------------------------------------------------------


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
        columns, _ = _column_definitions(cursor)
    else:
        columns = [_column_definition(cursor, cursor.name().parts)]
        while cursor.takes(","):
            columns.append(_column_definition(cursor, cursor.name().parts))
    cursor.ends()
    if any(not each.nullable for each in columns):
        raise changed.refused(
            "rows that are there have NULL in a new column, so it cannot be NOT NULL"
        )

    def run() -> DataFrame:
        table = changed.table
        snapshot = table.snapshot()
        schema = _schema(changed.spark, columns)
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
        return _altered(changed, cursor, parts, "type", _typed(_type_text(cursor)))
    if cursor.takes("SET", "NOT", "NULL"):
        return _altered(changed, cursor, parts, "not null", _nullable(nullable=False))
    if cursor.takes("DROP", "NOT", "NULL"):
        return _altered(changed, cursor, parts, "nullable", _nullable(nullable=True))
    if cursor.peek() in ("SET", "DROP"):
        raise changed.refused("columns of Lance tables have no DEFAULT")
    new = cursor.identifier()  # Hive's CHANGE COLUMN old new type
    column = _column_definition(cursor, (new,))

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
    values = {_RENAMED.get(key, key): value for key, value in cursor.properties().items()}
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
        _set_primary_key(changed.table, names)
        return text_frame(
            changed.spark, ["status", "primary_key_columns"], [("OK", ",".join(names))]
        )

    return changed.command("ALTER TABLE", f"primary key {names}", run)


def _set_primary_key(table: LanceTable, names: list[str]) -> None:
    """Note down the columns of the primary key.  Raises ArgumentError for one that may be NULL or is nested."""
    snapshot = table.snapshot()
    fields = {each.name: each for each in snapshot.manifest.schema.fields}
    if any(map(is_primary_key, fields.values())):
        message = "the table has a primary key already, which cannot be changed"
        raise ArgumentError(message)
    if len({*names}) < len(names):
        message = f"a column of the primary key is named twice: {', '.join(names)}"
        raise ArgumentError(message)
    for name in names:
        found = fields.get(name)
        if found is None or found.nullable or found.children:
            message = f"a primary key has columns that are NOT NULL and no structs or lists; {name!r} is no such column"
            raise ArgumentError(message)
    values = {
        name: {PRIMARY_KEY: "true", f"{PRIMARY_KEY}:position": str(number)}
        for number, name in enumerate(names, start=1)
    }
    update_field_metadata(snapshot, values)


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
