"""``pennon blob``: the bytes of one cell as a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final

import click

from pennon.cli.arguments import as_json, at, quiet, storage_option, uri, where
from pennon.cli.complete import complete_columns
from pennon.cli.row_formats import replaced
from pennon.cli.rows import open_table
from pennon.cli.show import binary_stdout, say, say_json, until_pipe_closes
from pennon.core.units import MIB
from pennon.dataset.lance_dataset import LanceDataset
from pennon.display.cells import size
from pennon.errors import ArgumentError, ColumnTypeError, NotFoundError
from pennon.schema.check import is_blob, is_blob_v2
from pennon.schema.project import resolve

_PIECE: Final = 8 * MIB


@click.command
@uri
@click.argument("column", shell_complete=complete_columns)
@click.option("--row", type=click.IntRange(0), help="The number of the row, from 0.")
@where
@at
@click.option(
    "--output", "-o", metavar="FILE", help="The file to write; - is stdout, and the default."
)
@click.option("--overwrite", is_flag=True, help="Replace the file if it is there.")
@as_json
@storage_option
@quiet
def blob(
    uri: str,
    column: str,
    row: int | None,
    where: str | None,
    at: str | None,
    output: str | None,
    overwrite: bool,
    as_json: bool,
    storage_option: Sequence[str],
    quiet: bool,
) -> None:
    """Save the bytes of one cell to a file: of a blob, a binary value or a text.

    The row is named by its number, or by a condition that one row passes.
    """
    if (row is None) == (where is None):
        message = "name the row, by --row N or by --where with a condition that one row passes"
        raise ArgumentError(message)
    table = open_table(uri, at, storage_option)
    pieces = _pieces(table, column, row, where)
    if output is None or output == "-":
        if as_json:
            message = "--json tells of a file: name it by --output"
            raise ArgumentError(message)
        with until_pipe_closes():
            _copy(pieces, binary_stdout(f"column {column}"))
            sys.stdout.flush()
        return
    with replaced(Path(output), overwrite=overwrite) as stream:
        size_bytes = _copy(pieces, stream)
    if as_json:
        found = {"table": uri, "version": table.version, "column": column, "file": output}
        say_json({**found, "size_bytes": size_bytes})
    elif not quiet:
        say(f"{output}: {size(size_bytes)}")


def _copy(pieces: Iterator[bytes], stream: IO[bytes]) -> int:
    size_bytes = 0
    for piece in pieces:
        stream.write(piece)
        size_bytes += len(piece)
    return size_bytes


def _pieces(
    table: LanceDataset, column: str, row: int | None, where: str | None
) -> Iterator[bytes]:
    """Return the bytes of a cell, a piece at a time.

    Raises NotFoundError if there is no such row or its value is NULL, ArgumentError if several rows pass the condition,
    ColumnTypeError for a column without bytes.
    """
    given: dict[str, Any] = {"limit": 2} if row is None else {"offset": row, "limit": 1}
    found = table.scanner([column], where, with_row_id=True, **given).to_table()
    name = f"row {row}" if row is not None else f"the row where {where}"
    if not found.num_rows:
        message = f"{name} is not there"
        raise NotFoundError(message)
    if found.num_rows > 1:
        message = f"more than one row passes {where!r}; a cell is of one row"
        raise ArgumentError(message)
    field = resolve(table.snapshot.manifest.schema, column)[-1]
    if is_blob(field) or is_blob_v2(field):
        file = table.take_blobs(column, ids=found["_rowid"].to_pylist())[0]
        return _of_file(_not_null(file, name, column))
    value = _not_null(found[0][0].as_py(), name, column)
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes):
        message = f"column {column!r} is {found[0].type}, which holds no bytes to save"
        raise ColumnTypeError(message)
    return iter([value])


def _not_null(value: Any, row: str, column: str) -> Any:
    if value is None:
        message = f"{row} has NULL in column {column!r}"
        raise NotFoundError(message)
    return value


def _of_file(file: Any) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE):
            yield piece
