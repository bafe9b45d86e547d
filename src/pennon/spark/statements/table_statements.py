"""Statements that make and drop tables and views: CREATE, CTAS, REPLACE, CLONE, DROP."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import types as st

from pennon.catalog.base import TableName
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    LanceError,
    NotFoundError,
    UnsupportedError,
)
from pennon.ops.columns.settings import update_config
from pennon.spark.names import quoted
from pennon.spark.source.scan_task import open_snapshot
from pennon.spark.statements.columns import (
    RENAMED_PROPERTIES,
    ColumnText,
    column_definitions,
    schema_of,
    set_primary_key,
)
from pennon.spark.statements.commands import (
    Command,
    affected_frame,
    empty_frame,
    new_rows,
    refused,
)
from pennon.spark.statements.queries import run_query
from pennon.spark.statements.session import (
    Attached,
    Place,
    catalogs_of,
    find_place,
    is_path,
    new_place,
)
from pennon.spark.statements.tables import Target, open_place, read_target, read_version
from pennon.spark.statements.words import Cursor, Name, Statement
from pennon.spark.table.builder import CLUSTERING, COMMENT
from pennon.spark.table.column_properties import ColumnShape
from pennon.spark.table.functions import write
from pennon.spark.table.lance_table import LanceTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FORMAT: Final = "lance"
_STABLE: Final = "enable_stable_row_ids"
_FILE_VERSION: Final = "data_storage_version"
_OF_OTHERS: Final = ("PARTITIONED", "CLUSTERED", "SKEWED", "STORED", "ROW")


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
        new = {RENAMED_PROPERTIES.get(key, key): value for key, value in given.items()}
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
        columns, key = column_definitions(cursor)
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
    """The place of a new table: a name in a catalog, or a path; and the table that is there now."""

    title: str
    attached: Attached | None
    name: TableName
    path: str | None = None
    found: Place | None = None
    is_restored: bool = False

    def declared(self, location: str | None) -> Place:
        """Take the name, and return the place.  Raises AlreadyExistsError if it is taken."""
        if self.found is not None:
            return self.found
        if self.attached is None:
            raise ArgumentError("a table needs a name in a catalog, or a path")
        entry = self.attached.catalog.declare_table(self.name, location=location)
        return Place(self.title, entry, self.attached)

    def restored(self) -> Home:
        """Take back a dropped table whose files lie where a new one of its name would: it gets a new version."""
        if self.found is not None or self.attached is None:
            return self
        try:
            entry = self.attached.catalog.restore_table(self.name)
        except (NotFoundError, UnsupportedError):
            return self
        return replace(self, found=Place(self.title, entry, self.attached), is_restored=True)

    def forget(self) -> None:
        """Give the name back after a failure, if this statement took it."""
        if self.attached is None:
            return
        with suppress(LanceError):
            if self.is_restored:
                self.attached.catalog.deregister_table(self.name)
            elif self.found is None:
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
    if not is_there and asked.location is None:
        home = home.restored()
    place = home.declared(asked.location)
    try:
        return _filled(spark, place, asked, is_there=_is_there(home))
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
        return schema_of(spark, list(asked.columns))
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
        set_primary_key(table, list(asked.key))
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
    if not is_there and not shape.is_only_sizes:
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
