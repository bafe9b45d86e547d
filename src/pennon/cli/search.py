"""``pennon search``: rows by a text, by the nearest vectors, or by both."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
import pyarrow as pa

from pennon.cli.arguments import at, columns, parse_names, storage_option, uri, where
from pennon.cli.complete import complete_columns
from pennon.cli.row_formats import RowOutput
from pennon.cli.row_options import rows_out
from pennon.cli.rows import open_table
from pennon.cli.show import say_all
from pennon.core.units import MIB
from pennon.dataset.lance_dataset import LanceDataset
from pennon.dataset.scanner_builder import ScannerBuilder
from pennon.errors import ArgumentError, NotFoundError
from pennon.scan.plan.vector_query import vector_columns
from pennon.scan.search.fusion import Fusion

_MOST_BYTES: Final = 64 * MIB
"""A file with one vector is not larger."""
_NPY: Final = b"\x93NUMPY"


@click.command
@uri
@click.argument("query", required=False)
@click.option("--row", type=click.IntRange(0), help="Search near the vector of this row.")
@click.option("--vector", metavar="JSON", help="Search near this vector, e.g. [0.5,1].")
@click.option(
    "--vector-file", metavar="FILE", help="Search near the vector of a file: JSON or NumPy's .npy."
)
@click.option("--rows", "-n", "-k", "k", type=click.IntRange(1), default=10, help="How many rows.")
@click.option(
    "--mode",
    type=click.Choice(["auto", "vector", "text", "hybrid"]),
    default="auto",
    help="How QUERY is looked for; auto does what the table has embeddings and indices for.",
)
@click.option(
    "--column", shell_complete=complete_columns, help="The vectors to search, if there are several."
)
@click.option(
    "--text-columns",
    metavar="NAMES",
    shell_complete=complete_columns,
    help="The texts to search; all with a full-text index if not given.",
)
@click.option("--metric", help="l2, cosine, dot or hamming; that of the index if not given.")
@click.option("--nprobes", type=click.IntRange(1), help="Partitions of the index to read.")
@click.option(
    "--refine-factor", type=click.IntRange(1), help="Compare so many times -n rows exactly."
)
@click.option("--ef", type=click.IntRange(1), help="Candidates of a search in an HNSW graph.")
@click.option("--explain", is_flag=True, help="Print the plan, and search nothing.")
@columns
@where
@at
@rows_out
@storage_option
def search(
    uri: str,
    query: str | None,
    row: int | None,
    vector: str | None,
    vector_file: str | None,
    k: int,
    mode: str,
    column: str | None,
    text_columns: str | None,
    metric: str | None,
    nprobes: int | None,
    refine_factor: int | None,
    ef: int | None,
    explain: bool,
    columns: str | None,
    where: str | None,
    at: str | None,
    target: RowOutput,
    storage_option: Sequence[str],
) -> None:
    """Find rows by a text, by the nearest vectors, or both, best first.

    QUERY is a text: it is embedded by the model that the table remembers, looked for in the full-text index, or both
    (--mode). --row, --vector and --vector-file give a vector; with a QUERY beside it, ranks of both are fused.
    """
    table = open_table(uri, at, storage_option)
    vector_query = _vector(table, column, row, vector, vector_file)
    if query is None and vector_query is None:
        message = "there is nothing to search for: give a QUERY, --row, --vector or --vector-file"
        raise ArgumentError(message)
    names, texts = parse_names(columns), parse_names(text_columns)
    tuned = {"nprobes": nprobes, "refine_factor": refine_factor, "ef": ef}
    tuned = {name: value for name, value in tuned.items() if value is not None}
    if vector_query is not None and (query is not None or metric is not None):
        near = {"column": _column(table, column), "q": vector_query, "k": k, **tuned}
        near |= {} if metric is None else {"metric": metric}
        found = _near(table, near, query, texts, k, names, where, explain=explain)
    else:
        if metric is not None:
            message = (
                "--metric goes with --row, --vector or --vector-file: a model remembers its own"
            )
            raise ArgumentError(message)
        asked = query if vector_query is None else vector_query
        options: dict[str, Any] = {"mode": mode if vector_query is None else "vector", **tuned}
        options |= {"column": column, "text_columns": texts, "columns": names, "filter": where}
        if explain:
            say_all(table.explain_search(asked, k, **options).splitlines())
            return
        found = table.search(asked, k, **options)
    if isinstance(found, str):
        say_all(found.splitlines())
    else:
        target.write(found.schema, found.to_batches())


def _near(
    table: LanceDataset,
    near: dict[str, Any],
    query: str | None,
    texts: list[str] | None,
    k: int,
    columns: list[str] | None,
    where: str | None,
    *,
    explain: bool,
) -> pa.Table | str:
    """Return the rows near a vector, or found by it and a text; or the plan."""
    shown = columns or [name for name in table.schema.names if name != near["column"]]
    builder = ScannerBuilder(table).apply_defaults({"nearest": near}).columns(shown).prefilter()
    if where is not None:
        builder.filter(where)
    if query is not None:
        builder.full_text_search({"query": query, "columns": texts} if texts else query)
        builder.fuse(Fusion.of(k, max(4 * k, 40)))
    made = builder.to_scanner()
    return made.explain_plan() if explain else made.to_table()


def _column(table: LanceDataset, column: str | None) -> str:
    """Return the column of vectors.  Raises ArgumentError if it is not clear which."""
    if column is not None:
        return column
    embedded = list(table.embeddings())
    found = embedded if len(embedded) == 1 else vector_columns(table.snapshot)
    if len(found) != 1:
        message = (
            f"name the vectors to search by --column: the table has {', '.join(found) or 'none'}"
        )
        raise ArgumentError(message)
    return found[0]


def _vector(
    table: LanceDataset, column: str | None, row: int | None, text: str | None, file: str | None
) -> Any:
    """Return the vector that options give, None if none does."""
    given = [each for each in (row, text, file) if each is not None]
    if len(given) > 1:
        message = "--row, --vector and --vector-file are three ways to give one vector; give one"
        raise ArgumentError(message)
    if row is not None:
        return _vector_of(table, _column(table, column), row)
    if text is not None:
        return _numbers(text, "--vector")
    if file is None:
        return None
    with Path(file).open("rb") as stream:
        data = stream.read(_MOST_BYTES)
    if data.startswith(_NPY):
        return np.load(io.BytesIO(data), allow_pickle=False).squeeze()
    return _numbers(data.decode("utf-8", "replace"), file)


def _vector_of(table: LanceDataset, column: str, row: int) -> Any:
    found = table.take([row], [column])[0].to_pylist()[0]
    if found is None:
        message = f"row {row} has no vector in column {column!r}"
        raise NotFoundError(message)
    return found


def _numbers(text: str, source: str) -> list[Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not found:
        message = f"{source} holds no vector: a JSON array of numbers such as [0.5, 1]"
        raise ArgumentError(message)
    return found
