"""Functions over a Spark session: read, write and ingest without the data source's detours.

``read`` sends task descriptors through ``mapInArrow``: columns are pruned before anything is read,
and Spark's scan of a Python source is left out.  ``write`` collects what the tasks wrote and
commits in this process, so it returns the version it made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Unpack

from pennon.errors import AlreadyExistsError, ArgumentError
from pennon.io import open_store
from pennon.ops.columns.alter import AlterTask
from pennon.ops.write import WriteMode
from pennon.spark.changes.partial_overwrite import overwrite_keys, overwrite_where
from pennon.spark.frames.aggregate import aggregate_frame
from pennon.spark.frames.scan import first_rows, frame_of, passing_rows
from pennon.spark.keywords import WriteKeywords
from pennon.spark.moments import moment_in
from pennon.spark.run_tasks import run_on_rows, run_tasks
from pennon.spark.session import is_case_sensitive, merges_schemas
from pennon.spark.source.conditions import Condition
from pennon.spark.source.options import (
    DEFAULT_PARTITION_BYTES,
    ReadOptions,
    WriteOptions,
    parse_fixed_size_lists,
)
from pennon.spark.source.row_write import TableWrite, commit_fragments
from pennon.spark.source.scan_task import snapshot_of
from pennon.spark.source.write_task import plan_table_write
from pennon.spark.stream_query import pass_over
from pennon.spark.table_place import place_of
from pennon.table.fragment import Fragment
from pennon.table.transaction import app_version
from pennon.table.versions import read_newest_if_any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".orc": "orc",
    ".lance": "lance",
    ".txt": "text",
}
_REFUSING = ("error", "errorifexists")
"""Spark's names for "create"."""
_COMPRESSIONS = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")


def read(
    spark: SparkSession,
    uri: str,
    columns: Sequence[str] | None = None,
    *,
    filter: str | None = None,
    limit: int | None = None,
    aggregate: Mapping[str, str | Sequence[str]] | None = None,
    group_by: Sequence[str] = (),
    version: int | str | None = None,
    tag: str | None = None,
    branch: str | None = None,
    asof: datetime | str | None = None,
    batch_size: int | None = None,
    with_row_id: bool = False,
    with_row_address: bool = False,
    max_partition_bytes: int = DEFAULT_PARTITION_BYTES,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return a DataFrame over one version of a table, pinned now.

    ``columns`` (dotted for parts of a struct) are all that is read.  ``filter`` is a condition in the
    SQL of `LanceDataset.scanner` (not Spark's), on any column of the table: its columns are read
    first, and the others for the rows that it keeps.  Large fragments are split for
    all cores, and so that no partition has more than ``max_partition_bytes``; small ones share a
    partition.  Rows keep the table's order.

    ``version``: a number, or a tag's name, for which there is ``tag``, too; ``branch``: numbers, times
    and the newest version are those of the branch; ``asof``: a time, as text an ISO one, in the session's
    zone if it says none (a ``datetime`` without a zone is one of this machine, as PySpark takes it).

    ``limit``: so many rows, the first ones; a small number of them comes through this process,
    without a job, and so do few rows that pass a ``filter``, where little has to be tested for them.
    ``aggregate``: what Spark's ``groupBy(*group_by).agg(aggregate)`` would give
    (`pennon.spark.frames.aggregate`), worked out where the table is read: ``{"price": "sum"}``,
    ``{"price": ["min", "max"], "*": "count"}``.

    >>> pennon.spark.read(spark, path, ["key"], filter="value > 1").collect()
    [Row(key='b'), Row(key='c')]
    """
    uri, store = place_of(spark, uri, storage_options)
    options = ReadOptions(
        uri=uri,
        columns=None if columns is None else tuple(columns),
        version=_one_name(version, tag),
        branch=branch,
        asof=moment_in(spark, asof),
        with_row_id=with_row_id,
        with_row_address=with_row_address,
        batch_size=batch_size,
        max_partition_bytes=max_partition_bytes,
        storage_options=store,
    )
    if aggregate is None and not group_by:
        snapshot = snapshot_of(options)
        if limit is not None:
            return first_rows(spark, snapshot, options, limit, filter)
        if filter is not None:
            return passing_rows(spark, snapshot, options, filter)
        return frame_of(spark, snapshot, options)
    if columns is not None or limit is not None or with_row_id or with_row_address:
        message = "an aggregate has its own columns: give no columns, limit, row ids or addresses"
        raise ArgumentError(message)
    return aggregate_frame(spark, snapshot_of(options), options, filter, aggregate or {}, group_by)


def _one_name(version: int | str | None, tag: str | None) -> int | str | None:
    if version is not None and tag is not None:
        message = "give version or tag, not both"
        raise ArgumentError(message)
    return version if tag is None else tag


def write(
    df: DataFrame,
    uri: str,
    mode: str = "create",
    *,
    fixed_size_list: str | Mapping[str, int] | None = None,
    max_rows_per_file: int | None = None,
    max_bytes_per_file: int | None = None,
    data_storage_version: str | None = None,
    where: Condition | None = None,
    overwrite_by: Sequence[str] = (),
    merge_schema: bool = False,
    overwrite_schema: bool = False,
    enable_stable_row_ids: bool = False,
    txn_app_id: str | None = None,
    txn_version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> int:
    """Write a DataFrame as one version of a table and return that version.

    ``mode``: "create" (or Spark's "errorifexists", "error") refuses where there is a table, "ignore" then
    does nothing, "append" creates it where there is none, "overwrite" replaces all rows and keeps the table's
    types.  Tasks write fragments in parallel; the commit happens once, here, and only if all of them
    succeeded.

    An overwrite with ``where``, a condition in Spark's SQL or a Column, replaces the rows for which it is
    true, and refuses a row for which it is not; with ``overwrite_by``, those that have the values of a new
    row in these columns.

    ``merge_schema`` gives the table columns that it lacks, and wider numbers; ``overwrite_schema`` the columns
    and types of the DataFrame.  ``enable_stable_row_ids`` is for a new table.

    ``txn_app_id`` and ``txn_version``: a name of the application and the number of its batch.  A batch that was
    committed before, or one with a smaller number, is not written again: in ``foreachBatch`` each is written once.

    >>> rows = spark.createDataFrame([("d", 4)], "key string, value long")
    >>> pennon.spark.write(rows, path, mode="append")
    2
    """
    if not hasattr(df, "sparkSession"):
        message = f"the first argument is a DataFrame of Spark, not a value of type {type(df).__name__}: spark.createDataFrame(rows)"
        raise TypeError(message)
    sizes = fixed_size_list or {}
    uri, store = place_of(df.sparkSession, uri, storage_options)
    options = WriteOptions(
        uri=uri,
        fixed_size_lists=parse_fixed_size_lists(sizes) if isinstance(sizes, str) else sizes,
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        data_storage_version=data_storage_version,
        storage_options=store,
        overwrite_by=tuple(overwrite_by),
        merge_schema=merge_schema or (not overwrite_schema and merges_schemas(df.sparkSession)),
        overwrite_schema=overwrite_schema,
        stable_row_ids=enable_stable_row_ids,
        case_sensitive=is_case_sensitive(df.sparkSession),
        app=app_version(txn_app_id, txn_version),
    )
    if mode.lower() == "ignore":
        return _write_if_absent(df, options)
    parsed = WriteMode.parse("create" if mode.lower() in _REFUSING else mode)
    if where is None and not overwrite_by:
        return _write_all(df, options, parsed)
    if parsed is not WriteMode.OVERWRITE:
        message = f"where and overwrite_by go with mode='overwrite', not {mode!r}"
        raise ArgumentError(message)
    if where is None:
        return overwrite_keys(df, options)
    return overwrite_where(df, replace(options, where=str(where)), where)


def _write_all(df: DataFrame, options: WriteOptions, mode: WriteMode) -> int:
    plan = plan_table_write(options, df.schema, mode)
    if plan.known_version is not None:
        pass_over(df)
        return plan.known_version

    def widen(task: AlterTask) -> list[Fragment]:
        return run_tasks(df.sparkSession, task, task.count)

    written = run_on_rows(df, TableWrite(plan.write.task))
    return commit_fragments(plan, [each for several in written for each in several], widen)


def _write_if_absent(df: DataFrame, options: WriteOptions) -> int:
    """Write a table where there is none; else return the version that there is."""
    store = open_store(options.uri, dict(options.storage_options) or None)
    known = read_newest_if_any(store)
    if known is not None:
        return known.version
    try:
        return _write_all(df, options, WriteMode.CREATE)
    except AlreadyExistsError:
        known = read_newest_if_any(store)
        if known is None:
            raise
        return known.version


def ingest(
    spark: SparkSession,
    source: str | Sequence[str],
    uri: str,
    format: str | None = None,
    mode: str = "create",
    *,
    read_options: Mapping[str, Any] | None = None,
    **write_options: Unpack[WriteKeywords],
) -> int:
    """Read files with Spark (CSV, JSON, Parquet, ORC, any format it knows) into a table.

    The format comes from the names of the files where it is not given; they must have one in common.  CSV is taken
    to have a header line, and types are inferred; values of ``.tsv`` files stand between tabs; ``read_options``
    overrule.  Returns the version made.

    >>> _ = spark.createDataFrame([("d", 4)], "key string, value long").write.json(path + ".json")
    >>> pennon.spark.ingest(spark, path + ".json", path, mode="append")
    2
    """
    paths = [source] if isinstance(source, str) else [str(each) for each in source]
    kind = _common_format(paths) if format is None else format
    options: dict[str, Any] = {}
    if kind in {"csv", "tsv"}:
        options = {"header": True, "inferSchema": True}
        if kind == "tsv" or all(_format_suffix(each) == ".tsv" for each in paths):
            options["sep"] = "\t"
        kind = "csv"
    options.update(read_options or {})
    df = spark.read.format(kind).options(**options).load(paths)
    return write(df, uri, mode, **write_options)


def _common_format(paths: Sequence[str]) -> str:
    """Return the format of some files, "tsv" for those of tabs.  Raises ArgumentError if there are two, or no file."""
    if not paths:
        message = "there is no file to ingest: the list of sources is empty"
        raise ArgumentError(message)
    kinds = {each: guess_format(each) for each in paths}
    kinds |= {each: "tsv" for each in paths if _format_suffix(each) == ".tsv"}
    found = sorted(set(kinds.values()))
    if len(found) > 1:
        message = (
            f"the files are of more than one format ({', '.join(found)}): ingest those of one format, then "
            "append the others (mode='append')"
        )
        raise ArgumentError(message)
    return found[0]


def _format_suffix(source: str) -> str:
    """Return the last suffix of a file that is not compression, in small letters."""
    suffixes = [each.lower() for each in PurePosixPath(source).suffixes]
    return next((each for each in reversed(suffixes) if each not in _COMPRESSIONS), "")


def guess_format(source: str) -> str:
    """Return Spark's name for the format of a file, from its last suffix that is not compression."""
    kind = _FORMATS.get(_format_suffix(source))
    if kind is None:
        message = f"cannot tell the format of {source!r}; say format=, one of {_known_formats()}"
        raise ArgumentError(message)
    return kind


def _known_formats() -> str:
    return ", ".join(sorted(set(_FORMATS.values())))
