"""``pennon diff``: in how many rows two versions of a table differ, and in which columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click

import pennon.spark
from pennon.cli.arguments import parse_names, parse_pairs, storage_option, uri
from pennon.cli.ingest import session
from pennon.cli.show import print_table


@click.command
@uri
@click.argument("before")
@click.argument("after", required=False)
@click.option("--on", required=True, help="The key columns, with commas.")
@click.option(
    "--master", default="local[*]", help="local[N], spark://host:port, or sc://host for Connect."
)
@storage_option
def diff(
    uri: str,
    before: str,
    after: str | None,
    on: str,
    master: str,
    storage_option: Sequence[str],
) -> None:
    """Count the rows in which two versions differ, by key columns.

    BEFORE and AFTER are numbers of versions or tags; AFTER is the newest version if it is left out.  Rows are told
    apart by their keys, so other files and another order are no difference.
    """
    spark = session(master)
    table = pennon.spark.LanceTable.forPath(spark, uri, parse_pairs(storage_option))
    newer = None if after is None else _version(after)
    found = table.diff(_version(before), newer, on=parse_names(on) or [])
    counts: Counter[str] = Counter()
    columns: Counter[str] = Counter()
    for row in found.groupBy("_difference", "_changed_columns").count().collect():
        counts[row["_difference"]] += row["count"]
        for name in row["_changed_columns"] or ():
            columns[name] += row["count"]
    rows = [(kind, f"{counts[kind]:,}") for kind in ("added", "removed", "changed")]
    changed = [(f"  {name}", f"{count:,}") for name, count in columns.most_common()]
    print_table(("difference", "rows"), [*rows, *changed], (1,))


def _version(said: str) -> int | str:
    return int(said) if said.isdecimal() else said
