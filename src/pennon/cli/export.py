"""``pennon export``: rows of a table as a file of another format."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pyarrow as pa

from pennon.cli.arguments import ROW_FORMATS, as_json, at, quiet, storage_option, uri
from pennon.cli.row_formats import RowOutput
from pennon.cli.row_options import RowChoice, row_choice
from pennon.cli.rows import open_table, scan
from pennon.cli.show import say, say_json
from pennon.cli.writing import watched
from pennon.display.cells import size
from pennon.ops.bars import Progress, bar


@click.command
@uri
@click.argument("file")
@click.option(
    "--format", "-f", type=click.Choice(ROW_FORMATS[1:]), help="By the suffix if not given."
)
@click.option("--rows", "-n", type=click.IntRange(0), help="How many rows; all if not given.")
@row_choice
@at
@click.option("--overwrite", is_flag=True, help="Replace FILE if it is there.")
@as_json
@storage_option
@quiet
def export(
    uri: str,
    file: str,
    format: str | None,
    rows: int | None,
    choice: RowChoice,
    at: str | None,
    overwrite: bool,
    as_json: bool,
    storage_option: Sequence[str],
    quiet: bool,
) -> None:
    """Write rows to a local FILE: CSV, JSON, JSON lines, Arrow or Parquet.

    The file appears when all rows are written; - is stdout.
    """
    started = time.monotonic()
    target = RowOutput.of(format, file, overwrite=overwrite)
    table = open_table(uri, at, storage_option)
    made = scan(table, choice, limit=rows)
    with watched(quiet), bar("exporting") as tell:
        total = 0 if tell is None else table.count_rows(choice.where)
        written = target.write(made.projected_schema, _told(made.to_batches(), tell, total))
    if target.file is None:
        return
    bytes_written = Path(file).stat().st_size
    if as_json:
        found = {"table": uri, "version": table.version, "file": file, "format": target.format}
        say_json({**found, "rows": written, "size_bytes": bytes_written})
    elif not quiet:
        seconds = time.monotonic() - started
        say(f"{file}: {written:,} rows, {size(bytes_written)}, {seconds:.1f} s")


def _told(
    batches: Iterator[pa.RecordBatch], tell: Progress | None, total: int
) -> Iterator[pa.RecordBatch]:
    """Pass batches on, and tell how many rows there were."""
    done = 0
    for batch in batches:
        yield batch
        done += batch.num_rows
        if tell is not None:
            tell(done, total)
