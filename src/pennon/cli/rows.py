"""Commands that show rows: ``count``, ``tail`` and ``sample``, and the scan that ``head`` and ``export`` share."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from pennon.cli.arguments import as_json, at, parse_pairs, storage_option, uri, where
from pennon.cli.at import open_at
from pennon.cli.row_formats import RowOutput
from pennon.cli.row_options import RowChoice, most_rows, row_choice, rows_out
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


def scan(table: LanceDataset, choice: RowChoice, **given: Any) -> LanceScanner:
    """Return the scan that options ask for."""
    orderings = None if choice.order is None else [ColumnOrdering(*each) for each in choice.order]
    handling: Any = "all_binary" if choice.blobs == "bytes" else None
    return table.scanner(
        choice.columns, choice.where, order_by=orderings, blob_handling=handling, **given
    )


def write_rows(
    uri: str,
    snapshot: Snapshot,
    options: Mapping[str, str],
    target: RowOutput,
    choice: RowChoice,
    **given: Any,
) -> int:
    """Write the rows of a scan, and return how many there were."""
    made = scan(LanceDataset.of_snapshot(uri, snapshot, options), choice, **given)
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
@most_rows
@row_choice
@at
@rows_out
@storage_option
def tail(
    uri: str,
    rows: int,
    choice: RowChoice,
    at: str | None,
    target: RowOutput,
    storage_option: Sequence[str],
) -> None:
    """Show the last rows of a table, in its order or that of --order-by."""
    table = open_table(uri, at, storage_option)
    offset = max(table.count_rows(choice.where) - rows, 0)
    made = scan(table, choice, offset=offset, limit=rows)
    target.write(made.projected_schema, made.to_batches())


@click.command
@uri
@most_rows
@click.option("--seed", type=int, help="The same number gives the same rows.")
@row_choice
@at
@rows_out
@storage_option
def sample(
    uri: str,
    rows: int,
    seed: int | None,
    choice: RowChoice,
    at: str | None,
    target: RowOutput,
    storage_option: Sequence[str],
) -> None:
    """Show rows chosen at random, none twice; in the table's order unless --order-by is given."""
    table = open_table(uri, at, storage_option)
    chosen = _choose(table, choice.where, rows, seed)
    made = scan(table, replace(choice, where=None), row_addr_allowlist=chosen)
    target.write(made.projected_schema, made.to_batches())


def _choose(table: LanceDataset, where: str | None, rows: int, seed: int | None) -> bytes:
    """Return the ids of rows chosen at random, as a scan takes them."""
    ids = table.scanner([], where, with_row_id=True).to_table()["_rowid"].to_numpy()
    numbers = random.Random(seed).sample(range(len(ids)), min(rows, len(ids)))  # noqa: S311 - no secret
    return serialize_row_addrs(ids[sorted(numbers)].tolist())
