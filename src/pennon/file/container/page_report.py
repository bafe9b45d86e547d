"""One page of a data file explained: its layout, its encodings, and what each of its bytes is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Final

from pennon.core.byte_ranges import Extent
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import run
from pennon.encoding.v2_0.encodings import BufferRef
from pennon.encoding.v2_1.explain import PageMeasures, measure_page, parts_of, sketch_page
from pennon.encoding.v2_1.layouts import BlobPage
from pennon.errors import LanceError
from pennon.file.container.file import DataFile
from pennon.file.container.node import encoding_bytes
from pennon.file.container.wire import Column, parse_array_encoding, parse_page_layout
from pennon.schema.version import V2_0, V2_1, V2_2, FileVersion


@dataclass(frozen=True, slots=True)
class Part:
    """A buffer of a page: what kind of thing, where, and what of."""

    kind: str
    extent: Extent
    detail: str = ""


@dataclass(frozen=True, slots=True)
class PageReport:
    """What is known of a page.

    ``encodings`` are (what, how) pairs; an unreadable page has one that says why.  ``blobs`` are the
    stretches of the file that values outside the page lie in, None if nobody looked.
    """

    column: str
    number: int
    rows: int
    layout: str
    encodings: tuple[tuple[str, str], ...]
    facts: tuple[str, ...]
    parts: tuple[Part, ...]
    is_blob: bool = False
    blobs: tuple[Extent, ...] | None = None

    @property
    def summary(self) -> str:
        """Return encodings and rows on one line."""
        how = ", ".join(
            text if what == "values" else f"{what} {text}" for what, text in self.encodings
        )
        rows = f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
        return ", ".join(filter(None, (self.layout, how, rows)))


def explain_page(
    file: DataFile, column: Column, name: str, number: int, *, chunks: bool = True
) -> PageReport:
    """Return what is known of a page; ``chunks``: read them, too, and tell their bytes apart.

    Damage does not raise: it is part of the report.
    """
    page = column.pages[number]
    try:
        data = run(encoding_bytes(page.encoding), file.source.read)
        if data is None:
            return _unreadable(column, name, number, "no encoding")
        return _EXPLAINERS[file.version](file, column, name, number, data, chunks)
    except LanceError as error:
        return _unreadable(column, name, number, error.message)


def _unreadable(column: Column, name: str, number: int, why: str) -> PageReport:
    page = column.pages[number]
    parts = tuple(Part("page buffer", extent, "of an unreadable page") for extent in page.buffers)
    return PageReport(name, number, page.rows, "", (("unreadable:", why),), (), parts)


# --- 2.0 ------------------------------------------------------------------------------------------


def describe(encoding: object) -> str:
    """Return an encoding on one line, e.g. ``SomeNulls(Flat(1), Flat(64))``."""
    if not is_dataclass(encoding):
        return "..." if isinstance(encoding, bytes) and len(encoding) > 8 else repr(encoding)
    values = [getattr(encoding, each.name) for each in fields(encoding)]
    parts: list[str] = []
    for value in values:
        if isinstance(value, tuple):
            parts += [describe(each) for each in value]
        elif value is not None and not isinstance(value, BufferRef):
            parts.append(describe(value))
    name = type(encoding).__name__
    return f"{name}({', '.join(parts)})" if parts else name


def buffer_roles(encoding: object, path: str = "") -> Iterator[tuple[BufferRef, str]]:
    """Yield the buffers that an encoding names, each with its way through the encoding.

    The validity bitmap of a column with NULLs is ``validity``, the bytes of its strings
    ``values.bytes``.
    """
    if isinstance(encoding, BufferRef):
        yield encoding, path or "values"
    elif isinstance(encoding, tuple):
        for number, part in enumerate(encoding):
            yield from buffer_roles(part, f"{path}[{number}]")
    elif is_dataclass(encoding):
        for each in fields(encoding):
            step = "" if each.name in ("buffer", "inner") else each.name
            yield from buffer_roles(
                getattr(encoding, each.name), ".".join(filter(None, (path, step)))
            )


def _explain_arrays(
    _file: DataFile, column: Column, name: str, number: int, data: bytes, _chunks: bool
) -> PageReport:
    page = column.pages[number]
    encoding = parse_array_encoding(data)
    roles = dict(buffer_roles(encoding))
    parts = tuple(
        Part("page buffer", extent, roles.get(BufferRef(index), "not named by the encoding"))
        for index, extent in enumerate(page.buffers)
    )
    return PageReport(name, number, page.rows, "", (("values", describe(encoding)),), (), parts)


# --- 2.1 and 2.2 ----------------------------------------------------------------------------------


def _explain_layout(
    file: DataFile, column: Column, name: str, number: int, data: bytes, chunks: bool
) -> PageReport:
    page = column.pages[number]
    layout = parse_page_layout(data)
    buffers = PageBuffers(page.rows, page.buffers)
    sketch = sketch_page(layout, buffers)
    found, facts = PageMeasures(), sketch.facts
    if chunks:
        try:
            found = run(measure_page(layout, buffers), file.source.read)
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


_Explain = Callable[[DataFile, Column, str, int, bytes, bool], PageReport]

_EXPLAINERS: Final[Mapping[FileVersion, _Explain]] = {
    V2_0: _explain_arrays,
    V2_1: _explain_layout,
    V2_2: _explain_layout,
}
