"""``pennon history``: what made each version of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from itertools import islice
from typing import Any, Final

import click

from pennon.cli.arguments import as_json, at, parse_pairs, storage_option, uri
from pennon.cli.at import open_at
from pennon.cli.show import cell, print_table, say_json
from pennon.errors import FormatError, NotFoundError
from pennon.io.store import Store
from pennon.scan.snapshot import Snapshot
from pennon.table.manifest import Manifest
from pennon.table.operations import operation_name
from pennon.table.transaction import Transaction
from pennon.table.transaction_wire import find_transaction
from pennon.table.versions import list_locations, read_manifest_at

_MESSAGE: Final = "__lance_commit_message"


@click.command
@uri
@click.option("--rows", "-n", "limit", type=click.IntRange(1), help="Only the newest N versions.")
@at
@as_json
@storage_option
def history(
    uri: str, limit: int | None, at: str | None, as_json: bool, storage_option: Sequence[str]
) -> None:
    """List what made each version of a table, the newest first; of a branch with --at BRANCH."""
    snapshot = open_at(uri, at, parse_pairs(storage_option))
    found = list(islice(entries(snapshot), limit))
    if as_json:
        say_json(found)
        return
    rows = [
        (
            str(each["version"]),
            each["timestamp"],
            each["operation"] or "(not known)",
            "" if each["read_version"] is None else str(each["read_version"]),
            f"{each['rows']:,}",
            each["writer"] or "",
            cell(each["message"]) if each["message"] else "",
        )
        for each in found
    ]
    heads = ("version", "time", "operation", "read version", "rows", "writer", "message")
    print_table(heads, rows, (0, 3, 4))


def entries(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """Yield the versions up to a snapshot's, newest first, each with the operation that made it.

    The operation is None if the transaction of a version is gone or damaged.
    """
    store = snapshot.store
    places = [each for each in list_locations(store) if each.version <= snapshot.manifest.version]
    for location in sorted(places, key=lambda each: -each.version):
        manifest = read_manifest_at(store, location)
        yield _entry(manifest, _transaction(store, manifest))


def _transaction(store: Store, manifest: Manifest) -> Transaction | None:
    try:
        return find_transaction(store, manifest)
    except (FormatError, NotFoundError):
        return None


def _entry(manifest: Manifest, made: Transaction | None) -> dict[str, Any]:
    counted, writer = manifest.summary, manifest.writer
    known = {} if made is None else dict(made.properties)
    return {
        "version": manifest.version,
        "timestamp": counted.timestamp.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "operation": None if made is None else operation_name(made.operation) or None,
        "read_version": None if made is None else made.read_version,
        "rows": counted.physical_rows - counted.deleted_rows,
        "fragments": counted.fragments,
        "writer": None if writer is None else f"{writer.library} {writer.version}",
        "message": known.pop(_MESSAGE, None),
        "properties": known,
    }
