"""``pennon head``: the first rows.  A plain one reads as `LanceDataset.head`, but without its bases: those import pandas."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pennon.cli.arguments import at, parse_pairs, storage_option, uri
from pennon.cli.at import open_at
from pennon.cli.row_formats import RowOutput
from pennon.cli.row_options import RowChoice, most_rows, row_choice, rows_out
from pennon.scan.projection import plan_scan_projection
from pennon.scan.read.execute import Scan, read_table
from pennon.scan.read.tasks import plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.blob import has_blobs


@click.command
@uri
@most_rows
@row_choice
@at
@rows_out
@storage_option
def head(
    uri: str,
    rows: int,
    choice: RowChoice,
    at: str | None,
    target: RowOutput,
    storage_option: Sequence[str],
) -> None:
    """Show the first rows of a table."""
    options = parse_pairs(storage_option)
    snapshot = open_at(uri, at, options)
    is_plain = choice.where is None and choice.order is None
    if is_plain and not has_blobs(snapshot.manifest.schema):
        _first_rows(snapshot, choice.columns, rows, target)
        return
    from pennon.cli.rows import write_rows  # saves pandas, expressions and searches at a plain head

    write_rows(uri, snapshot, options, target, choice, limit=rows)


def _first_rows(
    snapshot: Snapshot, columns: list[str] | None, rows: int, target: RowOutput
) -> None:
    projection = plan_scan_projection(snapshot.shown_schema, columns)
    found = read_table(Scan(snapshot, projection, tuple(plan_tasks(snapshot, limit=rows))))
    target.write(found.schema, found.to_batches())
