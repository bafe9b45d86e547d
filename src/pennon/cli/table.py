"""Commands that look at a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from pyarrow import types

from pennon.cli.arguments import at, parse_names, parse_pairs, storage_option, uri
from pennon.cli.show import cell, print_table, say
from pennon.dataset.open import dataset
from pennon.display.cells import size
from pennon.io import open_store
from pennon.table.storage_version import describe_file_versions

if TYPE_CHECKING:
    import pyarrow as pa

    from pennon.dataset import LanceDataset


@click.command
@uri
@at
@storage_option
def info(uri: str, at: int | None, storage_option: Sequence[str]) -> None:
    """Show what a table holds: rows, fragments, files, schema."""
    table = _open(uri, at, storage_option)
    metadata = _version_metadata(table)
    facts = {
        "table": table.uri,
        "version": f"{table.version} (newest: {table.latest_version})",
        "file version": describe_file_versions(table.snapshot.manifest),
        "rows": f"{table.count_rows():,}",
        "fragments": f"{len(table.get_fragments()):,}",
        "data files": f"{int(metadata['total_data_files']):,}",
        "size": size(int(metadata["total_files_size"])),
        "deleted rows": f"{int(metadata['total_deletion_file_rows']):,}",
    }
    width = max(map(len, facts))
    for name, value in facts.items():
        say(value, label=f"{name:<{width}}  ")
    print_table(("column", "type", "nullable"), _schema_rows(table.schema), ())


@click.command
@uri
@click.option("--rows", "-n", type=click.IntRange(0), default=10, help="How many rows.")
@click.option("--columns", "-c", help="Only these, e.g. a,b.c")
@at
@storage_option
def head(
    uri: str, rows: int, columns: str | None, at: int | None, storage_option: Sequence[str]
) -> None:
    """Show the first rows of a table."""
    found = _first_rows(uri, rows, parse_names(columns), at, storage_option)
    cells = ([cell(value) for value in row.values()] for row in found.to_pylist())
    numbers = [i for i, field in enumerate(found.schema) if _is_number(field.type)]
    print_table(found.schema.names, cells, numbers)


@click.command
@uri
@storage_option
def versions(uri: str, storage_option: Sequence[str]) -> None:
    """List the versions of a table."""
    rows = [
        (
            str(each["version"]),
            f"{each['timestamp']:%Y-%m-%d %H:%M:%S}",
            f"{int(each['metadata']['total_rows']):,}",
            f"{int(each['metadata']['total_fragments']):,}",
            size(int(each["metadata"]["total_files_size"])),
        )
        for each in _open(uri, None, storage_option).versions()
    ]
    print_table(("version", "time", "rows", "fragments", "size"), rows, (0, 2, 3, 4))


def _first_rows(
    uri: str, rows: int, columns: list[str] | None, at: int | None, storage_option: Sequence[str]
) -> pa.Table:
    from pennon.cli.first_rows import first_rows  # saves scans where --help is asked for

    store = open_store(uri, parse_pairs(storage_option) or None)
    return first_rows(store, at, columns, rows)


def _open(uri: str, at: int | None, storage_option: Sequence[str]) -> LanceDataset:
    return dataset(uri, version=at, storage_options=parse_pairs(storage_option) or None)


def _version_metadata(table: LanceDataset) -> dict[str, Any]:
    return table.get_version()["metadata"]


def _schema_rows(schema: pa.Schema) -> list[tuple[str, str, str]]:
    return [(field.name, str(field.type), "" if field.nullable else "not null") for field in schema]


def _is_number(data_type: pa.DataType) -> bool:
    return bool(
        types.is_integer(data_type) or types.is_floating(data_type) or types.is_decimal(data_type)
    )
