"""``pennon convert``: a table's data files in another file version."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

import pennon.spark
from pennon.cli.arguments import as_json, master_help, parse_pairs, quiet, storage_option, uri
from pennon.cli.show import say, say_json
from pennon.cli.spark_session import session
from pennon.cli.writing import watched
from pennon.io import open_store
from pennon.ops.convert import convert as convert_table
from pennon.ops.convert import plan_convert
from pennon.schema.version import FileVersion
from pennon.table.indices import SYSTEM
from pennon.table.indices_wire import parse_indices
from pennon.table.versions import read_manifest


@click.command
@uri
@click.option("--to", required=True, metavar="VERSION", help="0.1, 2.0, 2.1 or 2.2.")
@click.option("--master", help=f"Let Spark do it: {master_help}")
@as_json
@storage_option
@quiet
def convert(
    uri: str,
    to: str,
    master: str | None,
    as_json: bool,
    storage_option: Sequence[str],
    quiet: bool,
) -> None:
    """Rewrite a table's data files in another file version.

    Makes one new version of the table: the same rows in the same order, without those that are
    deleted.  Indices are dropped.  Older versions stay as they are.  Only 2.2 has maps: below, they are marked lists of
    entries, which become maps again on the way up.
    """
    started = time.monotonic()
    stores = parse_pairs(storage_option)
    dropped = _names_of_indices(uri, stores)
    with watched(quiet):
        version = (
            _locally(uri, to, stores) if master is None else _by_spark(master, uri, to, stores)
        )
    if as_json:
        found = {"table": uri, "version": version, "file_version": to, "dropped_indices": dropped}
        say_json(found)
    elif not quiet:
        seconds = time.monotonic() - started
        say(f"{uri}: version {version} has files of version {to}, {seconds:.1f} s")
        if dropped:
            say(f"{uri}: these indices were dropped, make them anew: {', '.join(dropped)}")


def _names_of_indices(uri: str, stores: dict[str, str]) -> list[str]:
    """Return the names of the indices of a table."""
    manifest = read_manifest(open_store(uri, stores or None))
    return sorted({each.name for each in parse_indices(manifest.indices)} - SYSTEM)


def _locally(uri: str, to: str, stores: dict[str, str]) -> int:
    return convert_table(
        plan_convert(open_store(uri, stores or None), FileVersion.parse(to))
    ).version


def _by_spark(master: str, uri: str, to: str, stores: dict[str, str]) -> int:
    return pennon.spark.convert(session(master), uri, to, storage_options=stores or None)
