"""``pennon ingest``: files become a table; local ones by pyarrow, all others by Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import click
import pyarrow as pa

import pennon.spark
from pennon.cli.arguments import (
    as_json,
    branch,
    master_help,
    parse_pairs,
    quiet,
    storage_option,
    uri,
)
from pennon.cli.local_files import FORMATS, LocalRows, as_vectors, find_files, format_of, read_files
from pennon.cli.show import say, say_json
from pennon.cli.spark_session import session, spark_progress
from pennon.cli.writing import open_to_write, watched
from pennon.dataset.lance_dataset import LanceDataset
from pennon.dataset.open import dataset, write_dataset
from pennon.errors import ArgumentError, NotFoundError
from pennon.ops.bars import Progress, bar


@click.command
@click.argument("source", type=click.Path())
@uri
@click.option(
    "--format", "-f", help=f"{', '.join(FORMATS)}, or Spark's name; by the suffix if not given."
)
@click.option(
    "--mode",
    type=click.Choice(["create", "append", "overwrite"]),
    default="create",
    show_default=True,
    help="What to do about a table that is there.",
)
@click.option("--master", help=f"Let Spark do it: {master_help}")
@click.option("--option", "-o", multiple=True, metavar="KEY=VALUE", help="Given to Spark's reader.")
@click.option(
    "--fixed-size-list", metavar="COLUMN:N,...", help="Lists stored as vectors of N items."
)
@click.option("--max-rows-per-file", type=click.IntRange(1))
@branch
@as_json
@storage_option
@quiet
def ingest(
    source: str,
    uri: str,
    format: str | None,
    mode: str,
    master: str | None,
    option: Sequence[str],
    fixed_size_list: str | None,
    max_rows_per_file: int | None,
    branch: str | None,
    as_json: bool,
    storage_option: Sequence[str],
    quiet: bool,
) -> None:
    """Write files as a Lance table.

    SOURCE is a file, a folder or a pattern: CSV, JSON, Parquet, Arrow, or a folder of images.  Local ones are
    read here; other places, other formats (ORC, ...), --master and --option need Spark.
    """
    started = time.monotonic()
    stores = parse_pairs(storage_option)
    limit = {} if max_rows_per_file is None else {"max_rows_per_file": max_rows_per_file}
    files = [] if master is not None or option else find_files(source)
    kind = format if format is not None else format_of(files)
    if files and kind in FORMATS:
        rows = read_files(source, files, kind)
        if fixed_size_list is not None:
            rows = as_vectors(rows, _sizes(fixed_size_list))
        with watched(quiet):
            table = _write(rows, uri, mode, branch, stores, limit)
    elif branch is not None:
        message = "--branch goes with local files that pyarrow reads; Spark writes to the main line"
        raise ArgumentError(message)
    elif not files and master is None and not option and "://" not in source:
        message = f"there is no file at {source!r}"
        raise NotFoundError(message)
    else:
        given = {"format": format, "mode": mode, "read_options": parse_pairs(option), **limit}
        given["fixed_size_list"] = fixed_size_list
        table = _by_spark(master or "local[*]", source, uri, stores, given, quiet)
    found = {"table": uri, "branch": table.branch, "version": table.version}
    found["rows"] = table.count_rows()
    if as_json:
        say_json(found)
    elif not quiet:
        seconds = time.monotonic() - started
        say(f"{uri}: version {table.version}, {found['rows']:,} rows, {seconds:.1f} s")


def _write(
    rows: LocalRows,
    uri: str,
    mode: Any,
    branch: str | None,
    stores: dict[str, str],
    limit: dict[str, Any],
) -> LanceDataset:
    """Write rows, those that are appended as the table has its columns."""
    target: Any = uri
    known = None if mode == "create" and branch is None else _known(uri, branch, stores)
    if branch is not None:
        target = known
    if known is not None and mode == "append":
        rows = rows.cast(known.schema)
    with bar("ingesting") as tell:
        reader = pa.RecordBatchReader.from_batches(rows.schema, _told(rows, tell))
        given: dict[str, Any] = (
            limit if branch is not None else {"storage_options": stores, **limit}
        )
        return write_dataset(reader, target, mode=mode, **given)


def _known(uri: str, branch: str | None, stores: dict[str, str]) -> LanceDataset | None:
    try:
        return open_to_write(uri, branch, stores)
    except NotFoundError:
        if branch is not None:
            raise
        return None


def _told(rows: LocalRows, tell: Progress | None) -> Iterator[pa.RecordBatch]:
    done = 0
    for batch in rows.batches:
        yield batch
        done += batch.num_rows
        if tell is not None:
            tell(done, rows.count)


def _sizes(text: str) -> dict[str, int]:
    """Return ``COLUMN:N,...`` as lengths by column; ``=`` does for the colon."""
    found = {}
    for part in text.split(","):
        name, _, size = part.replace("=", ":").rpartition(":")
        if not name.strip() or not size.strip().isdecimal():
            message = f"--fixed-size-list wants COLUMN:N, ..., not {part!r}"
            raise ArgumentError(message)
        found[name.strip()] = int(size)
    return found


def _by_spark(
    master: str, source: str, uri: str, stores: dict[str, str], given: dict[str, Any], quiet: bool
) -> LanceDataset:
    spark = session(master)
    if given["fixed_size_list"] is not None:
        given["fixed_size_list"] = given["fixed_size_list"].replace("=", ":")
    with watched(quiet), spark_progress(spark, "ingesting"):
        version = pennon.spark.ingest(spark, source, uri, storage_options=stores or None, **given)
    return dataset(uri, version=version, storage_options=stores or None)
