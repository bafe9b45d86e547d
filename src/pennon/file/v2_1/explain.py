"""One page of a file of version 2.1 or 2.2 explained."""

from __future__ import annotations

from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import run
from pennon.encoding.v2_1.explain import PageMeasures, measure_page, parts_of, sketch_page
from pennon.encoding.v2_1.layouts import BlobPage
from pennon.errors import LanceError
from pennon.file.container.column_metadata import Column
from pennon.file.container.page_report import PageReport, Part
from pennon.file.v2_1.leaf_reader import parse_page_layout
from pennon.io.store import ObjectReader


def explain_layout(
    source: ObjectReader, column: Column, name: str, number: int, data: bytes, chunks: bool
) -> PageReport:
    """See `pennon.file.container.page_report.ExplainPage`."""
    page = column.pages[number]
    layout = parse_page_layout(data)
    buffers = PageBuffers(page.rows, page.buffers)
    sketch = sketch_page(layout, buffers)
    found, facts = PageMeasures(), sketch.facts
    if chunks:
        try:
            found = run(measure_page(layout, buffers), source.read)
        except LanceError as error:
            facts = (*facts, f"chunks unreadable: {error.message}")
    parts = tuple(
        Part(kind, extent, parts_of(extent, found.parts) if kind in ("chunks", "values") else "")
        for kind, extent in zip(sketch.buffers, page.buffers, strict=True)
    )
    encodings = tuple(
        (what, found.values if what == "values" and found.values else how)
        for what, how in sketch.encodings
    )
    is_blob = isinstance(layout, BlobPage)
    facts = (*facts, *found.facts)
    return PageReport(
        name, number, page.rows, sketch.layout, encodings, facts, parts, is_blob, found.blobs
    )
