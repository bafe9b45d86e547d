"""``pennon inspect``: the pages of a data file explained, and every byte range named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from pennon.cli.arguments import as_json, parse_pairs, storage_option
from pennon.cli.show import print_table, say, say_all, say_json
from pennon.display.cells import size
from pennon.file.container.page_report import PageReport
from pennon.file.inspect import NamedRange, inspect_pages
from pennon.io import open_store


@click.command
@click.argument("file")
@click.option("--pages/--no-pages", default=True, help="Explain each page.")
@click.option("--ranges/--no-ranges", default=True, help="List every byte range.")
@click.option(
    "--chunks/--no-chunks",
    default=True,
    help="Read the chunks of pages, too, to say what their bytes are for.",
)
@as_json
@storage_option
def inspect(
    file: str,
    pages: bool,
    ranges: bool,
    chunks: bool,
    as_json: bool,
    storage_option: Sequence[str],
) -> None:
    """Explain a data file of version 0.1 to 2.2.

    Its pages (layout, encodings, levels, sizes), and what each of its bytes is for.
    """
    folder, _, name = file.rpartition("/")
    root = folder or ("/" if file.startswith("/") else ".")
    source = open_store(root, parse_pairs(storage_option)).open(name)
    found = inspect_pages(source, chunks=chunks)
    if as_json:
        facts = {"file": file, "file_version": str(found.version), "rows": found.rows}
        facts["size_bytes"] = source.size_bytes
        if pages:
            facts["pages"] = [_page(page) for page in found.pages]
        if ranges:
            facts["ranges"] = [_range(each) for each in found.ranges]
        say_json(facts)
        return
    if pages:
        for page in found.pages:
            say_all(explained(page))
    if ranges:
        rows = [
            (f"{each.start:,}", f"{each.end:,}", f"{each.size_bytes:,}", each.kind, each.detail)
            for each in found.ranges
        ]
        print_table(("from", "to", "bytes", "what", "of"), rows, (0, 1, 2))
    say(
        f"version {found.version}, {found.rows:,} rows, {size(source.size_bytes)}: "
        + ", ".join(f"{kind} {size(count)}" for kind, count in totals(found.ranges))
    )


def _page(page: PageReport) -> dict[str, Any]:
    return {
        "column": page.column,
        "page": page.number,
        "rows": page.rows,
        "layout": page.layout,
        "encodings": [{"of": what, "encoding": how} for what, how in page.encodings],
        "facts": list(page.facts),
        "size_bytes": sum(part.extent.size_bytes for part in page.parts),
    }


def _range(each: NamedRange) -> dict[str, Any]:
    return {"start": each.start, "end": each.end, "kind": each.kind, "detail": each.detail}


def explained(page: PageReport) -> Iterator[str]:
    """Yield the lines that explain a page."""
    rows = f"{page.rows:,} row{'' if page.rows == 1 else 's'}"
    yield ", ".join(filter(None, (f"{page.column}, page {page.number}: {rows}", page.layout)))
    for what, how in page.encodings:
        yield f"    {what:<12} {how}"
    if page.facts:
        yield f"    {'holds':<12} {'; '.join(page.facts)}"
    sizes = [
        f"{part.kind} {part.extent.size_bytes:,}" + f" ({part.detail})" * bool(part.detail)
        for part in page.parts
    ]
    yield f"    {'bytes':<12} {', '.join(sizes) or 'none'}"


def totals(ranges: list[NamedRange]) -> list[tuple[str, int]]:
    """Return the bytes of each kind of range, the largest first."""
    found: dict[str, int] = {}
    for each in ranges:
        found[each.kind] = found.get(each.kind, 0) + each.size_bytes
    return sorted(found.items(), key=lambda part: -part[1])
