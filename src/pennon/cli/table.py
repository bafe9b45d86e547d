"""Commands that look at a table: ``info``, ``schema``, ``fragments``, ``versions``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from pennon.cli.arguments import as_json, at, parse_pairs, storage_option, uri
from pennon.cli.at import open_at
from pennon.cli.show import print_table, say, say_json
from pennon.display.cells import size
from pennon.scan.facts import table_facts
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import live_row_count, live_row_counts
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow, schema_to_arrow
from pennon.schema.field import Field
from pennon.schema.project import walk_paths
from pennon.schema.version import FileVersion
from pennon.table.fragment import Fragment
from pennon.table.indices import SYSTEM
from pennon.table.indices_wire import parse_indices
from pennon.table.manifest import Summary
from pennon.table.storage_version import describe_file_versions
from pennon.table.versions import latest_version, list_versions


@click.command
@uri
@at
@as_json
@storage_option
def info(uri: str, at: str | None, as_json: bool, storage_option: Sequence[str]) -> None:
    """Show what a table holds: rows, fragments, files, schema."""
    snapshot = open_at(uri, at, parse_pairs(storage_option))
    manifest, counted = snapshot.manifest, snapshot.manifest.summary
    found: dict[str, Any] = {
        "table": uri,
        "branch": manifest.branch,
        "version": manifest.version,
        "newest_version": latest_version(snapshot.store),
        "timestamp": _utc(counted.timestamp),
        "file_version": describe_file_versions(manifest),
        "stable_row_ids": manifest.has_stable_row_ids,
        "rows": sum(live_row_counts(snapshot)),
        "fragments": counted.fragments,
        "data_files": counted.files,
        "size_bytes": counted.size_bytes,
        "deleted_rows": counted.deleted_rows,
        "indices": sorted({each.name for each in parse_indices(manifest.indices)} - SYSTEM),
        "columns": _columns(snapshot),
    }
    if as_json:
        say_json(found)
        return
    facts = table_facts(snapshot, uri, found["newest_version"])
    if found["indices"]:
        facts["indices"] = ", ".join(found["indices"])
    width = max(map(len, facts))
    for name, value in facts.items():
        say(value, label=f"{name:<{width}}  ")
    _print_columns(found["columns"])


@click.command
@uri
@at
@as_json
@storage_option
def schema(uri: str, at: str | None, as_json: bool, storage_option: Sequence[str]) -> None:
    """Show the columns of a table, those in structs and lists too."""
    snapshot = open_at(uri, at, parse_pairs(storage_option))
    manifest = snapshot.manifest
    tree = [_field_tree(field) for field in manifest.schema.fields]
    if as_json:
        metadata = {key: _text(value) for key, value in manifest.schema.metadata.items()}
        found = {"table": uri, "version": manifest.version, "columns": tree, "metadata": metadata}
        say_json(found)
        return
    rows = [
        (path, str(field_to_arrow(field).type), "" if field.nullable else "not null", str(field.id))
        for path, field in walk_paths(manifest.schema)
    ]
    print_table(("column", "type", "nullable", "field id"), rows, (3,))


@click.command
@uri
@at
@as_json
@storage_option
def fragments(uri: str, at: str | None, as_json: bool, storage_option: Sequence[str]) -> None:
    """List the fragments of a table, with their files."""
    snapshot = open_at(uri, at, parse_pairs(storage_option))
    found = [_fragment(snapshot, fragment) for fragment in snapshot.manifest.fragments]
    if as_json:
        say_json(found)
        return
    rows = [
        (
            str(each["id"]),
            f"{each['rows']:,}",
            f"{each['deleted_rows']:,}",
            size(sum(file["size_bytes"] or 0 for file in each["files"])),
            ", ".join(file["path"] for file in each["files"]),
        )
        for each in found
    ]
    print_table(("fragment", "rows", "deleted", "size", "files"), rows, (0, 1, 2, 3))


@click.command
@uri
@at
@as_json
@storage_option
def versions(uri: str, at: str | None, as_json: bool, storage_option: Sequence[str]) -> None:
    """List the versions of a table; those of a branch with --at BRANCH."""
    snapshot = open_at(uri, at, parse_pairs(storage_option))
    newest = None if at is None else snapshot.manifest.version
    found = [
        each for each in list_versions(snapshot.store) if newest is None or each.version <= newest
    ]
    if as_json:
        say_json([_version(each) for each in found])
        return
    rows = [
        (
            str(each.version),
            f"{each.timestamp.astimezone():%Y-%m-%d %H:%M:%S}",
            f"{each.physical_rows - each.deleted_rows:,}",
            f"{each.fragments:,}",
            size(each.size_bytes),
        )
        for each in found
    ]
    print_table(("version", "time", "rows", "fragments", "size"), rows, (0, 2, 3, 4))


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _version(summary: Summary) -> dict[str, Any]:
    return {
        "version": summary.version,
        "timestamp": _utc(summary.timestamp),
        "rows": summary.physical_rows - summary.deleted_rows,
        "fragments": summary.fragments,
        "data_files": summary.files,
        "size_bytes": summary.size_bytes,
    }


def _columns(snapshot: Snapshot) -> list[dict[str, Any]]:
    shown = schema_to_arrow(snapshot.manifest.schema)
    return [
        {"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in shown
    ]


def _print_columns(columns: Sequence[dict[str, Any]]) -> None:
    rows = [
        (each["name"], each["type"], "" if each["nullable"] else "not null") for each in columns
    ]
    print_table(("column", "type", "nullable"), rows, ())


def _field_tree(field: Field) -> dict[str, Any]:
    """Return a field and those below it."""
    return {
        "name": field.name,
        "id": field.id,
        "type": str(field_to_arrow(field).type),
        "logical_type": field.logical_type,
        "nullable": field.nullable,
        "metadata": {key: _text(value) for key, value in field.metadata.items()},
        "children": [_field_tree(child) for child in field.children],
    }


def _fragment(snapshot: Snapshot, fragment: Fragment) -> dict[str, Any]:
    rows = live_row_count(snapshot, fragment)
    physical = FragmentReader(snapshot, fragment).physical_rows()
    deletion = fragment.deletion_file
    return {
        "id": fragment.id,
        "rows": rows,
        "physical_rows": physical,
        "deleted_rows": physical - rows,
        "files": [
            {
                "path": file.store_path,
                "size_bytes": file.size_bytes,
                "file_version": str(FileVersion.from_numbers(file.major, file.minor)),
                "field_ids": list(file.field_ids),
            }
            for file in fragment.files
        ],
        "deletion_file": None if deletion is None else deletion.store_path(fragment.id),
    }
