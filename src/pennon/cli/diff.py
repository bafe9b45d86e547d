"""``pennon diff``: in how many rows two versions of a table differ, and in which columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import click

import pennon.spark
from pennon.cli.arguments import as_json, master_help, parse_names, parse_pairs, storage_option, uri
from pennon.cli.at import open_at
from pennon.cli.complete import complete_columns, complete_versions
from pennon.cli.show import print_table, say_json
from pennon.cli.spark_session import session
from pennon.errors import ArgumentError
from pennon.table.manifest import Manifest
from pennon.table.refs.tags_and_branches import branch_folder

_KINDS: Final = ("added", "removed", "changed")


@click.command
@uri
@click.argument("before", shell_complete=complete_versions)
@click.argument("after", required=False, shell_complete=complete_versions)
@click.option(
    "--on", required=True, shell_complete=complete_columns, help="The key columns, with commas."
)
@click.option("--master", default="local[*]", help=master_help)
@as_json
@storage_option
def diff(
    uri: str,
    before: str,
    after: str | None,
    on: str,
    master: str,
    as_json: bool,
    storage_option: Sequence[str],
) -> None:
    """Count the rows in which two versions differ, by key columns.

    BEFORE and AFTER name versions as --at does; AFTER is the newest version if it is left out.  Rows are told
    apart by their keys, so other files and another order are no difference.  This needs Spark.
    """
    options = parse_pairs(storage_option)
    old = open_at(uri, before, options).manifest
    new = open_at(uri, after, options).manifest
    if old.branch != new.branch:
        message = f"{before} is on branch {old.branch or 'main'}, {after} on {new.branch or 'main'}; diff compares versions of one"
        raise ArgumentError(message)
    found = _differences(session(master), uri, options, (old, new), parse_names(on) or [])
    if as_json:
        say_json({"table": uri, "before": old.version, "after": new.version, **found})
        return
    rows = [(kind, f"{found[kind]:,}") for kind in _KINDS]
    changed = [(f"  {name}", f"{count:,}") for name, count in found["columns"].items()]
    print_table(("difference", "rows"), [*rows, *changed], (1,))


def _differences(
    spark: Any,
    uri: str,
    options: dict[str, str],
    versions: tuple[Manifest, Manifest],
    keys: list[str],
) -> dict[str, Any]:
    """Return the rows of each kind of difference, and how many changed in each column."""
    old, new = versions
    place = uri if old.branch is None else f"{uri.rstrip('/')}/{branch_folder(old.branch)}"
    table = pennon.spark.LanceTable.forPath(spark, place, options)
    rows = table.diff(old.version, new.version, on=keys)
    counts: Counter[str] = Counter()
    columns: Counter[str] = Counter()
    for row in rows.groupBy("_difference", "_changed_columns").count().collect():
        counts[row["_difference"]] += row["count"]
        for name in row["_changed_columns"] or ():
            columns[name] += row["count"]
    return {**{kind: counts[kind] for kind in _KINDS}, "columns": dict(columns.most_common())}
