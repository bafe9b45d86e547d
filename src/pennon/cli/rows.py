"""Commands that show rows: ``count``, ``tail`` and ``sample``, and the scan that ``head`` and ``export`` share."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import click

from pennon.cli.arguments import (
    as_json,
    at,
    blobs,
    columns,
    order_by,
    parse_names,
    parse_order,
    parse_pairs,
    rows_out,
    storage_option,
    uri,
    where,
)
from pennon.cli.at import open_at
from pennon.cli.row_formats import RowOutput
from pennon.cli.show import say, say_json
from pennon.dataset.lance_dataset import LanceDataset
from pennon.dataset.scanner import LanceScanner
from pennon.scan.plan.query import ColumnOrdering
from pennon.scan.plan.row_masks import serialize_row_addrs
from pennon.scan.snapshot import Snapshot


def open_table(uri: str, at: str | None, storage_option: Sequence[str]) -> LanceDataset:
    """Open the version of a table that options name."""
    options = parse_pairs(storage_option)
    return LanceDataset.of_snapshot(uri, open_at(uri, at, options), options)


def scan(
    table: LanceDataset,
    columns: list[str] | None,
    where: str | None,
    order_by: str | None,
    blobs: str,
    **given: Any,
) -> LanceScanner:
    """Return the scan that options ask for."""
    order = parse_order(order_by)
    orderings = None if order is None else [ColumnOrdering(*each) for each in order]
    handling: Any = "all_binary" if blobs == "bytes" else None
    return table.scanner(columns, where, order_by=orderings, blob_handling=handling, **given)


def write_rows(
    uri: str,
    snapshot: Snapshot,
    options: Mapping[str, str],
    target: RowOutput,
    columns: list[str] | None,
    where: str | None,
    order_by: str | None,
    blobs: str,
    **given: Any,
) -> int:
    """Write the rows of a scan, and return how many there were."""
    table = LanceDataset.of_snapshot(uri, snapshot, options)
    made = scan(table, columns, where, order_by, blobs, **given)
    return target.write(made.projected_schema, made.to_batches())


@click.command
@uri
@where
@at
@as_json
@storage_option
def count(
    uri: str, where: str | None, at: str | None, as_json: bool, storage_option: Sequence[str]
) -> None:
    """Count rows."""
    table = open_table(uri, at, storage_option)
    rows = table.count_rows(where)
    if as_json:
        say_json({"table": uri, "version": table.version, "rows": rows})
    else:
        say(str(rows))


@click.command
@uri
@click.option("--rows", "-n", type=click.IntRange(0), default=10, help="How many rows.")
@columns
@where
@order_by
@blobs
@at
@rows_out
@storage_option
def tail(
    uri: str,
    rows: int,
    columns: str | None,
    where: str | None,
    order_by: str | None,
    blobs: str,
    at: str | None,
    as_json: bool,
    format: str | None,
    output: str | None,
    overwrite: bool,
    storage_option: Sequence[str],
) -> None:
    """Show the last rows of a table, in its order or that of --order-by."""
    target = RowOutput.of(format, output, as_json=as_json, overwrite=overwrite)
    table = open_table(uri, at, storage_option)
    offset = max(table.count_rows(where) - rows, 0)
    made = scan(table, parse_names(columns), where, order_by, blobs, offset=offset, limit=rows)
    target.write(made.projected_schema, made.to_batches())


@click.command
@uri
@click.option("--rows", "-n", type=click.IntRange(0), default=10, help="How many rows.")
@click.option("--seed", type=int, help="The same number gives the same rows.")
@columns
@where
@order_by
@blobs
@at
@rows_out
@storage_option
def sample(
    uri: str,
    rows: int,
    seed: int | None,
    columns: str | None,
    where: str | None,
    order_by: str | None,
    blobs: str,
    at: str | None,
    as_json: bool,
    format: str | None,
    output: str | None,
    overwrite: bool,
    storage_option: Sequence[str],
) -> None:
    """Show rows chosen at random, none twice; in the table's order unless --order-by is given."""
    target = RowOutput.of(format, output, as_json=as_json, overwrite=overwrite)
    table = open_table(uri, at, storage_option)
    chosen = _choose(table, where, rows, seed)
    made = scan(table, parse_names(columns), None, order_by, blobs, row_addr_allowlist=chosen)
    target.write(made.projected_schema, made.to_batches())


def _choose(table: LanceDataset, where: str | None, rows: int, seed: int | None) -> bytes:
    """Return the ids of rows chosen at random, as a scan takes them."""
    ids = table.scanner([], where, with_row_id=True).to_table()["_rowid"].to_numpy()
    numbers = random.Random(seed).sample(range(len(ids)), min(rows, len(ids)))  # noqa: S311 - no secret
    return serialize_row_addrs(ids[sorted(numbers)].tolist())
