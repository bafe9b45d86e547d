"""Functions over a Spark session: read, write and ingest without the data source's detours.

``read`` sends task descriptors through ``mapInArrow``: columns are pruned before anything is read,
and Spark's scan of a Python source is left out.  ``write`` collects what the tasks wrote and
commits in this process, so it returns the version it made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pennon.errors import ArgumentError
from pennon.ops.write import WriteMode
from pennon.spark.options import (
    DEFAULT_PARTITION_BYTES,
    ReadOptions,
    WriteOptions,
    parse_fixed_size_lists,
)
from pennon.spark.run_tasks import run_on_rows
from pennon.spark.scan_frame import frame_of
from pennon.spark.scan_task import open_snapshot
from pennon.spark.write_task import TableWrite, commit_messages, plan_table_write

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
_COMPRESSIONS = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")


def read(
    spark: SparkSession,
    uri: str,
    columns: Sequence[str] | None = None,
    *,
    filter: str | None = None,
    version: int | None = None,
    asof: datetime | None = None,
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
    """
    snapshot = open_snapshot(uri, dict(storage_options or {}), version, asof)
    options = ReadOptions(
        uri=uri,
        columns=None if columns is None else tuple(columns),
        with_row_id=with_row_id,
        with_row_address=with_row_address,
        batch_size=batch_size,
        max_partition_bytes=max_partition_bytes,
    )
    return frame_of(spark, snapshot, options, filter)


def write(
    df: DataFrame,
    uri: str,
    mode: str = "create",
    *,
    fixed_size_list: str | Mapping[str, int] | None = None,
    max_rows_per_file: int | None = None,
    max_bytes_per_file: int | None = None,
    data_storage_version: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> int:
    """Write a DataFrame as one version of a table and return that version.

    ``mode``: "create" refuses where there is a table, "append" creates it where there is none,
    "overwrite" replaces rows and schema.  Tasks write fragments in parallel; the commit happens
    once, here, and only if all of them succeeded.
    """
    sizes = fixed_size_list or {}
    options = WriteOptions(
        uri=uri,
        fixed_size_lists=parse_fixed_size_lists(sizes) if isinstance(sizes, str) else sizes,
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        data_storage_version=data_storage_version,
        storage_options=dict(storage_options or {}),
    )
    plan = plan_table_write(options, df.schema, WriteMode.parse(mode))
    return commit_messages(plan, run_on_rows(df, TableWrite(plan.write.task)))


def ingest(
    spark: SparkSession,
    source: str | Sequence[str],
    uri: str,
    format: str | None = None,
    mode: str = "create",
    *,
    read_options: Mapping[str, Any] | None = None,
    **write_options: Any,
) -> int:
    """Read files with Spark (CSV, JSON, Parquet, ORC, any format it knows) into a table.

    The format comes from the file name where it is not given.  CSV is taken to have a header line,
    and types are inferred; ``read_options`` overrule.  Returns the version made.
    """
    kind = format or guess_format(source if isinstance(source, str) else source[0])
    options: dict[str, Any] = {}
    if kind == "csv":
        options = {"header": True, "inferSchema": True}
        if str(source).endswith(".tsv"):
            options["sep"] = "\t"
    options.update(read_options or {})
    paths = source if isinstance(source, str) else list(source)
    df = spark.read.format(kind).options(**options).load(paths)
    return write(df, uri, mode, **write_options)


def guess_format(source: str) -> str:
    """Return Spark's name for the format of a file, from its last suffix that is not compression."""
    suffixes = [s for s in PurePosixPath(source).suffixes if s.lower() not in _COMPRESSIONS]
    kind = _FORMATS.get(suffixes[-1].lower()) if suffixes else None
    if kind is None:
        message = f"cannot tell the format of {source!r}; say format=, one of {_known_formats()}"
        raise ArgumentError(message)
    return kind


def _known_formats() -> str:
    return ", ".join(sorted(set(_FORMATS.values())))
