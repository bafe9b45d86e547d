"""``pennon inspect``: every byte range of a data file, named."""

from __future__ import annotations

from typing import Annotated

import typer

from pennon.cli.arguments import StorageOptions, parse_pairs
from pennon.cli.show import console, print_table, size


def inspect(
    file: Annotated[str, typer.Argument(help="A data file (.lance) of file version 2.0.")],
    storage_option: StorageOptions = None,
) -> None:
    """List every byte range of a data file: pages, buffers, encodings, metadata, padding."""
    from pennon.file.inspect import inspect_file
    from pennon.io import open_store

    folder, _, name = file.rpartition("/")
    root = folder or ("/" if file.startswith("/") else ".")
    ranges = inspect_file(open_store(root, parse_pairs(storage_option)).open(name))
    rows = [
        (f"{each.start:,}", f"{each.end:,}", f"{each.size_bytes:,}", each.kind, each.detail)
        for each in ranges
    ]
    print_table(("from", "to", "bytes", "what", "of"), rows, (0, 1, 2))
    totals: dict[str, int] = {}
    for each in ranges:
        totals[each.kind] = totals.get(each.kind, 0) + each.size_bytes
    parts = sorted(totals.items(), key=lambda part: -part[1])
    summary = ", ".join(f"{kind} {size(count)}" for kind, count in parts)
    console().print(f"{size(ranges[-1].end)}: {summary}", soft_wrap=True)
