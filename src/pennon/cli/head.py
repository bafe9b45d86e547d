"""``pennon head``: the first rows.  A plain one reads as `LanceDataset.head`, but without its bases: those import pandas."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pennon.cli.arguments import (
    at,
    blobs,
    columns,
    order_by,
    parse_names,
    parse_pairs,
    rows_out,
    storage_option,
    uri,
    where,
)
from pennon.cli.at import open_at
from pennon.cli.row_formats import RowOutput
from pennon.scan.projection import plan_scan_projection
from pennon.scan.read.execute import Scan, read_table
from pennon.scan.read.tasks import plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.blob import has_blobs


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
def head(
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
    """Show the first rows of a table."""
    target = RowOutput.of(format, output, as_json=as_json, overwrite=overwrite)
    options = parse_pairs(storage_option)
    snapshot = open_at(uri, at, options)
    names = parse_names(columns)
    if where is None and order_by is None and not has_blobs(snapshot.manifest.schema):
        _first_rows(snapshot, names, rows, target)
        return
    from pennon.cli.rows import write_rows  # saves pandas, expressions and searches at a plain head

    write_rows(uri, snapshot, options, target, names, where, order_by, blobs, limit=rows)


def _first_rows(
    snapshot: Snapshot, columns: list[str] | None, rows: int, target: RowOutput
) -> None:
    projection = plan_scan_projection(snapshot.shown_schema, columns)
    found = read_table(Scan(snapshot, projection, tuple(plan_tasks(snapshot, limit=rows))))
    target.write(found.schema, found.to_batches())
