"""One page of a file of version 2.0 explained."""

from __future__ import annotations

from pennon.encoding.v2_0.encodings import BufferRef
from pennon.file.container.column_metadata import Column
from pennon.file.container.page_report import PageReport, Part, buffer_roles, describe
from pennon.file.v2_0.page_encoding import parse_page_encoding
from pennon.io.store import ObjectReader


def explain_arrays(
    _source: ObjectReader, column: Column, name: str, number: int, data: bytes, _chunks: bool
) -> PageReport:
    """See `pennon.file.container.page_report.ExplainPage`."""
    page = column.pages[number]
    encoding = parse_page_encoding(data)
    roles = dict(buffer_roles(encoding))
    parts = tuple(
        Part("page buffer", extent, roles.get(BufferRef(index), "not named by the encoding"))
        for index, extent in enumerate(page.buffers)
    )
    return PageReport(name, number, page.rows, "", (("values", describe(encoding)),), (), parts)
