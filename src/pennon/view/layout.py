"""The layout of a table for the page: fragments by columns, with bytes and encodings, and the pages behind each."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pennon.core.thread_pools import map_all
from pennon.dataset.lance_dataset import LanceDataset
from pennon.display.cells import size
from pennon.errors import LanceError, NotFoundError, printable
from pennon.file.container.page_report import PageReport
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Field
from pennon.schema.project import join_path
from pennon.table.fragment import Fragment
from pennon.table.fragments import Fragments
from pennon.view.asked import Asked
from pennon.view.cells import Json
from pennon.view.column_pages import MAX_PAGES, column_pages, explain, parts_of

MAX_FRAGMENTS: Final = 60
MAX_GRID_COLUMNS: Final = 40
MAX_BARS: Final = 240


def read_strip(dataset: LanceDataset) -> Json:
    """Return rows and bytes of all fragments, in at most `MAX_BARS` bars of neighbours; only the manifest is read.

    ``bytes`` of a bar is the mean of its fragments.
    """
    numbers = Fragments.of(dataset.snapshot.manifest.fragments).sizes()
    count = len(numbers)
    starts = np.unique(np.linspace(0, count, min(count, MAX_BARS), endpoint=False).astype(np.int64))
    bars: list[Json] = []
    if count:
        sums = np.add.reduceat(numbers, starts, axis=0).tolist()
        ends = [*starts[1:].tolist(), count]
        for first, end, (rows, deleted, size_bytes) in zip(
            starts.tolist(), ends, sums, strict=True
        ):
            some = (
                f"fragment {first:,}" if end == first + 1 else f"fragments {first:,} to {end - 1:,}"
            )
            text = f"{some}: {rows:,} rows, {size(size_bytes)}" + f", {deleted:,} deleted" * bool(
                deleted
            )
            bars.append(
                {"first": first, "bytes": size_bytes / (end - first), "rows": rows, "text": text}
            )
    return {"fragments": count, "bars": bars}


def read_grid(dataset: LanceDataset, asked: Asked) -> Json:
    """Return the fragments from ``first`` on, and for each column the bytes, pages and encoding in each of them."""
    snapshot = dataset.snapshot
    manifest = snapshot.manifest
    first = asked.number("first", 0, max(len(manifest.fragments) - 1, 0))
    most = asked.number("limit", MAX_FRAGMENTS, MAX_FRAGMENTS)
    fragments = list(manifest.fragments[first : first + most])
    first_column = asked.number("first_column", 0, len(manifest.schema.fields))
    fields = manifest.schema.fields[first_column : first_column + MAX_GRID_COLUMNS]
    grid = map_all(lambda each: _grid_row(snapshot, each, fields), fragments, snapshot.pool_spec)
    return {
        "first": first,
        "count": len(manifest.fragments),
        "first_column": first_column,
        "column_count": len(manifest.schema.fields),
        "columns": [{"name": printable(f.name), "path": join_path([f.name])} for f in fields],
        "fragments": [_fragment(each) for each in fragments],
        "cells": grid,
    }


def _fragment(fragment: Fragment) -> Json:
    size_bytes = sum(file.size_bytes or 0 for file in fragment.files)
    rows = "?" if fragment.physical_rows is None else f"{fragment.physical_rows:,}"
    deleted = fragment.num_deleted_rows
    return {
        "id": fragment.id,
        "rows": rows,
        "deleted": "?" if deleted is None else f"{deleted:,}",
        "size": size(size_bytes),
        "files": len(fragment.files),
    }


def _grid_row(snapshot: Snapshot, fragment: Fragment, fields: tuple[Field, ...]) -> list[Any]:
    return [_grid_cell(snapshot, fragment, field) for field in fields]


def _grid_cell(snapshot: Snapshot, fragment: Fragment, field: Field) -> Json | None:
    try:
        found = column_pages(snapshot, field, fragment)
    except (LanceError, OSError) as error:
        return {
            "bytes": 0,
            "size": "damaged",
            "pages": 0,
            "encoding": "damaged",
            "damage": printable(str(error)),
        }
    if found is None:
        return None
    return {
        "bytes": found.size_bytes,
        "size": size(found.size_bytes),
        "pages": found.pages,
        "encoding": found.encoding,
    }


def read_pages(dataset: LanceDataset, asked: Asked) -> Json:
    """Return the pages of a column in a fragment: rows, layout, encodings, and the use of their bytes.

    Raises NotFoundError for a fragment or a column that is not there.
    """
    snapshot = dataset.snapshot
    number, column = asked.number("fragment", 0, 1 << 32), asked.text("column")
    fragment = snapshot.manifest.fragment(number)
    field = next(
        (f for f in snapshot.manifest.schema.fields if join_path([f.name]) == column), None
    )
    if fragment is None or field is None:
        message = (
            f"there is no fragment {number}"
            if fragment is None
            else f"there is no column {column!r}"
        )
        raise NotFoundError(message)
    parts = []
    whole = column_pages(snapshot, field, fragment, encodings=False)
    for part in parts_of(field, fragment):
        reports = explain(snapshot, part, MAX_PAGES)
        parts.append(
            {
                "name": printable(part.name),
                "file": printable(part.file.path),
                "file_version": f"{part.file.major}.{part.file.minor}",
                "pages": [_page(report) for report in reports],
            }
        )
    return {
        "fragment": _fragment(fragment),
        "column": printable(field.name),
        "size": size(whole.size_bytes if whole else 0),
        "pages": f"{whole.pages if whole else 0:,}",
        "parts": parts,
    }


def _page(report: PageReport) -> Json:
    parts = [
        {
            "kind": f"{part.kind}" + f" ({printable(part.detail)})" * bool(part.detail),
            "bytes": part.extent.size_bytes,
            "size": size(part.extent.size_bytes),
            "from": f"{part.extent.position:,}",
            "to": f"{part.extent.end:,}",
        }
        for part in report.parts
    ]
    total = sum(part.extent.size_bytes for part in report.parts)
    return {
        "number": report.number,
        "rows": f"{report.rows:,}",
        "layout": report.layout,
        "encodings": [[what, printable(how)] for what, how in report.encodings],
        "facts": [printable(each) for each in report.facts],
        "bytes": total,
        "size": size(total),
        "parts": parts,
    }
