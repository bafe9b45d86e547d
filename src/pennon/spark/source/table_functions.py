"""Table functions for SQL: ``SELECT * FROM lance_versions('uri')``, without a catalog.

Spark calls a table function in one task, so the listings, which come of a table's manifests, are what they
are for.  ``lance_at`` and ``lance_changes`` read rows, too: all of them in that task, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pennon.errors import ArgumentError
from pennon.scan.read.tasks import plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.spark.pyspark_classes import AnalyzeArgument, AnalyzeResult, check_release
from pennon.spark.source import listings
from pennon.spark.source.change_reader import plan_changes, read_changes
from pennon.spark.source.data_source import shown_schema
from pennon.spark.source.options import ChangeRange, ReadOptions
from pennon.spark.source.scan_task import arrow_schema_of, open_snapshot, plan_table_scan
from pennon.spark.types import arrow_schema, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows: TypeAlias = Iterator[tuple[Any, ...]]
Convert: TypeAlias = Callable[[Any], Any]

LISTINGS: Final[Mapping[str, tuple[Callable[[Snapshot], Rows], str]]] = {
    "lance_versions": (listings.version_rows, listings.VERSION_SCHEMA),
    "lance_fragments": (listings.fragment_rows, listings.FRAGMENT_SCHEMA),
    "lance_files": (listings.file_rows, listings.FILE_SCHEMA),
    "lance_indices": (listings.index_rows, listings.INDEX_SCHEMA),
    "lance_history": (listings.history_rows, listings.HISTORY_SCHEMA),
}
ROWS_OF_VERSION: Final = "lance_at"
CHANGES: Final = "lance_changes"


def register(spark: SparkSession, storage_options: Mapping[str, str] | None = None) -> None:
    """Give a session the table functions ``lance_versions('uri')``, …, ``lance_at('uri', version)``.

    The others are ``lance_fragments``, ``lance_files``, ``lance_indices`` and ``lance_history``; all but
    ``lance_versions`` and ``lance_history`` tell of the newest version.  ``lance_at`` gives the rows of a version,
    which is a number, a tag, or the newest where it is left out; ``lance_changes('uri', begin, end)`` what
    `LanceTable.changes` does, ``end`` being the newest where it is left out.  ``storage_options`` are those of all tables
    that the functions open.

    >>> pennon.spark.register(spark)
    >>> spark.sql(f"SELECT version FROM lance_versions('{path}')").collect()
    [Row(version=1)]
    """
    check_release(
        (4, 0), "pennon.spark.register", "LanceTable has versions(), history(), changes()"
    )
    options = dict(storage_options or {})
    for name, (rows_of, schema) in LISTINGS.items():
        handler: Any = sf.udtf(_listing(rows_of, options), returnType=schema, useArrow=False)
        spark.udtf.register(name, handler)
    reader: Any = sf.udtf(_rows_of_version(options), useArrow=False)
    spark.udtf.register(ROWS_OF_VERSION, reader)
    changes: Any = sf.udtf(_changes_of_versions(options), useArrow=False)
    spark.udtf.register(CHANGES, changes)


def _listing(rows_of: Callable[[Snapshot], Rows], options: Mapping[str, str]) -> type:
    """Return the handler of a function that lists something of the table at a path."""

    class Listing:
        def eval(self, uri: str) -> Rows:
            return rows_of(open_snapshot(uri, options))

    return Listing


@dataclass
class PinnedVersion(AnalyzeResult):
    """The schema of a table, and the version that it is of: what runs later reads that one."""

    version: int | str | None = None


def _rows_of_version(options: Mapping[str, str]) -> type:
    """Return the handler of the function that reads a version."""

    class RowsOfVersion:
        def __init__(self, analyzed: PinnedVersion) -> None:
            self._analyzed = analyzed

        @staticmethod
        def analyze(uri: AnalyzeArgument, version: AnalyzeArgument | None = None) -> PinnedVersion:
            name = f"{ROWS_OF_VERSION}(uri, version)"
            wanted = None if version is None else _constant(version, "version", name)
            snapshot = open_snapshot(_constant(uri, "uri", name), options, wanted)
            pin = wanted if isinstance(wanted, str) else snapshot.manifest.version
            return PinnedVersion(spark_schema(arrow_schema_of(snapshot)), version=pin)

        def eval(self, uri: str, version: int | str | None = None) -> Rows:  # noqa: ARG002 - analyzed
            snapshot = open_snapshot(uri, options, self._analyzed.version)
            return rows_of(snapshot, self._analyzed.schema)

    return RowsOfVersion


@dataclass
class PinnedChanges(AnalyzeResult):
    """The schema of a table's changes, and the versions that they are of."""

    versions: tuple[int, int] = (0, 0)


def _changes_of_versions(options: Mapping[str, str]) -> type:
    """Return the handler of the function that reads what versions changed."""

    class ChangesOfVersions:
        def __init__(self, analyzed: PinnedChanges) -> None:
            self._analyzed = analyzed

        @staticmethod
        def analyze(
            uri: AnalyzeArgument, begin: AnalyzeArgument, end: AnalyzeArgument | None = None
        ) -> PinnedChanges:
            name = f"{CHANGES}(uri, begin, end)"
            place = _constant(uri, "uri", name)
            snapshot = open_snapshot(place, options)
            first = _constant(begin, "begin", name)
            last = None if end is None else _constant(end, "end", name)
            last = int(snapshot.manifest.version) if last is None else last
            shape = ReadOptions(place, changes=ChangeRange(first, last))
            schema = shown_schema(arrow_schema_of(snapshot), shape)
            return PinnedChanges(schema, versions=(first, last))

        def eval(self, uri: str, begin: int, end: int | None = None) -> Rows:  # noqa: ARG002 - analyzed
            schema = self._analyzed.schema
            arrow = arrow_schema(schema)
            converters = [_converter(field.dataType) for field in schema]
            snapshot = open_snapshot(uri, options)
            for part in plan_changes(snapshot, schema.names, self._analyzed.versions):
                for batch in read_changes(part, arrow):
                    yield from _tuples(batch, converters)

    return ChangesOfVersions


def _constant(argument: AnalyzeArgument, name: str, function: str) -> Any:
    if not argument.isConstantExpression or (argument.value is None and name in ("uri", "begin")):
        message = f"{function}: {name} is a literal, for Spark has to know the columns"
        raise ArgumentError(message)
    return argument.value


def rows_of(snapshot: Snapshot, schema: st.StructType) -> Rows:
    """Yield the rows of a version as Spark takes them from Python."""
    scan = plan_table_scan(snapshot, arrow_schema(schema), None)
    converters = [_converter(field.dataType) for field in schema]
    for batch in scan.read(plan_tasks(snapshot)):
        yield from _tuples(batch, converters)


def _tuples(batch: pa.RecordBatch, converters: list[Convert | None]) -> Rows:
    columns = [
        column.to_pylist() if convert is None else [convert(value) for value in column.to_pylist()]
        for column, convert in zip(batch.columns, converters, strict=True)
    ]
    return zip(*columns, strict=True)


def _converter(kind: st.DataType) -> Convert | None:
    """Return what makes a dict of the pairs of a map, wherever it stands; None where there is none."""
    if isinstance(kind, st.MapType):
        return _convert_map(_converter(kind.keyType), _converter(kind.valueType))
    if isinstance(kind, st.ArrayType):
        item = _converter(kind.elementType)
        return None if item is None else _convert_list(item)
    if isinstance(kind, st.StructType):
        parts = {field.name: _converter(field.dataType) for field in kind}
        known = {name: part for name, part in parts.items() if part is not None}
        return _convert_struct(known) if known else None
    return None


def _convert_map(key: Convert | None, value: Convert | None) -> Convert:
    def convert(pairs: Any) -> Any:
        if pairs is None:
            return None
        return {
            (k if key is None else key(k)): (v if value is None else value(v)) for k, v in pairs
        }

    return convert


def _convert_list(item: Convert) -> Convert:
    return lambda items: None if items is None else [item(each) for each in items]


def _convert_struct(parts: Mapping[str, Convert]) -> Convert:
    def convert(fields: Any) -> Any:
        if fields is None:
            return None
        return {**fields, **{name: part(fields[name]) for name, part in parts.items()}}

    return convert
