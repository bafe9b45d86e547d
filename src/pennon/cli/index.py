"""``pennon index``: the indices of a table listed, created, dropped, brought up to date."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import click

from pennon import ops
from pennon.cli.arguments import as_json, at, branch, parse_pairs, quiet, storage_option, uri
from pennon.cli.complete import complete_columns, complete_indices
from pennon.cli.rows import open_table
from pennon.cli.show import print_table, say, say_json
from pennon.cli.writing import open_to_write, watched
from pennon.dataset.lance_dataset import LanceDataset
from pennon.display.cells import size
from pennon.errors import ArgumentError


@click.group
def index() -> None:
    """List, create, drop and optimize indices."""


@index.command("list")
@uri
@at
@as_json
@storage_option
def list_indices(uri: str, at: str | None, as_json: bool, storage_option: Sequence[str]) -> None:
    """List the indices of a table, and how many rows each covers."""
    table = open_table(uri, at, storage_option)
    rows = table.count_rows()
    found = [
        {
            "name": each.name,
            "kind": each.index_type,
            "columns": each.field_names,
            "indexed_rows": each.num_rows_indexed,
            "unindexed_rows": rows - each.num_rows_indexed,
            "segments": len(each.segments),
            "size_bytes": each.total_size_bytes,
            "details": json.loads(json.dumps(each.details, default=str)),
        }
        for each in table.describe_indices()
    ]
    if as_json:
        say_json(found)
        return
    lines = [
        (
            each["name"],
            each["kind"],
            ", ".join(each["columns"]),
            f"{each['indexed_rows']:,}",
            f"{each['unindexed_rows']:,}",
            "" if each["size_bytes"] is None else size(each["size_bytes"]),
            each["details"].get("not_asked", ""),
        )
        for each in found
    ]
    heads = ("index", "kind", "columns", "rows", "not indexed", "size", "not used because")
    print_table(heads, lines, (3, 4, 5))


@index.command("create")
@uri
@click.argument("column", shell_complete=complete_columns)
@click.option(
    "--kind",
    required=True,
    help="BTREE, BITMAP, LABEL_LIST, NGRAM, ZONEMAP, BLOOMFILTER, INVERTED (full text), IVF_FLAT, IVF_PQ, IVF_SQ, "
    "IVF_RQ, IVF_HNSW_SQ, ...",
)
@click.option("--name", help="COLUMN_idx if not given.")
@click.option("--metric", help="Of vectors: l2, cosine, dot or hamming.")
@click.option(
    "--parameter",
    "-p",
    multiple=True,
    metavar="KEY=VALUE",
    help="Of the kind, e.g. num_partitions=256 or base_tokenizer=ngram.",
)
@click.option("--replace", is_flag=True, help="Replace an index of that name.")
@branch
@as_json
@storage_option
@quiet
def create_index(
    uri: str,
    column: str,
    kind: str,
    name: str | None,
    metric: str | None,
    parameter: Sequence[str],
    replace: bool,
    branch: str | None,
    as_json: bool,
    storage_option: Sequence[str],
    quiet: bool,
) -> None:
    """Create an index of a column."""
    started = time.monotonic()
    table = open_to_write(uri, branch, parse_pairs(storage_option))
    given: dict[str, Any] = {key: _value(value) for key, value in parse_pairs(parameter).items()}
    kind = "INVERTED" if kind.upper() == "FTS" else kind.upper()
    if metric is not None:
        if not ops.is_vector_kind(kind):
            message = f"--metric is for indices of vectors, {kind} is none"
            raise ArgumentError(message)
        given["metric"] = metric
    chosen: Any = kind
    with watched(quiet):
        table.create_index(column, chosen, name, replace=replace, **given)
    seconds = time.monotonic() - started
    _tell(uri, table, "created", name or f"{column}_idx", as_json, quiet, f", {seconds:.1f} s")


@index.command("drop")
@uri
@click.argument("name", shell_complete=complete_indices)
@branch
@as_json
@storage_option
@quiet
def drop_index(
    uri: str,
    name: str,
    branch: str | None,
    as_json: bool,
    storage_option: Sequence[str],
    quiet: bool,
) -> None:
    """Drop an index; its files go at a clean-up."""
    table = open_to_write(uri, branch, parse_pairs(storage_option))
    table.drop_index(name)
    _tell(uri, table, "dropped", name, as_json, quiet)


@index.command("optimize")
@uri
@click.option(
    "--name",
    "names",
    multiple=True,
    shell_complete=complete_indices,
    help="Only this one; all if not given.",
)
@click.option("--retrain", is_flag=True, help="Make them anew.")
@click.option(
    "--merge",
    type=click.IntRange(0),
    help="Merge new rows with so many segments; 1 if not given, 0: a segment of their own.",
)
@branch
@as_json
@storage_option
@quiet
def optimize_indices(
    uri: str,
    names: Sequence[str],
    retrain: bool,
    merge: int | None,
    branch: str | None,
    as_json: bool,
    storage_option: Sequence[str],
    quiet: bool,
) -> None:
    """Index the rows that came since, and merge segments."""
    table = open_to_write(uri, branch, parse_pairs(storage_option))
    before = table.version
    options: dict[str, Any] = {"retrain": True} if retrain else {}
    options |= {"index_names": list(names)} if names else {}
    options |= {} if merge is None else {"num_indices_to_merge": merge}
    with watched(quiet):
        table.optimize.optimize_indices(**options)
    action = "unchanged" if table.version == before else "optimized"
    _tell(uri, table, action, ", ".join(names) or None, as_json, quiet)


def _value(text: str) -> Any:
    """Return a parameter's value: a number, true, false or null as JSON has them, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _tell(
    uri: str,
    table: LanceDataset,
    action: str,
    name: str | None,
    as_json: bool,
    quiet: bool,
    more: str = "",
) -> None:
    if as_json:
        found = {"table": uri, "branch": table.branch, "version": table.version, "name": name}
        say_json({**found, "action": action})
    elif not quiet:
        what = "indices" if name is None else f"index {name}"
        say(f"{uri}: version {table.version}, {what} {action}{more}")
