"""A report about a page: its layout, its encodings, and the use of each of its bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import TypeAlias

from pennon.core.byte_ranges import ByteRange
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.v2_0.encodings import BufferRef
from pennon.file.container.column_metadata import Column
from pennon.io.store import ObjectReader


@dataclass(frozen=True, slots=True)
class Part:
    """A buffer of a page: what kind of thing, where, and what of."""

    kind: str
    extent: ByteRange
    detail: str = ""


@dataclass(frozen=True, slots=True)
class PageReport:
    """A report about one page.

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
    blobs: tuple[ByteRange, ...] | None = None

    @property
    def summary(self) -> str:
        """Return encodings and rows on one line."""
        how = ", ".join(
            text if what == "values" else f"{what} {text}" for what, text in self.encodings
        )
        rows = f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
        return ", ".join(filter(None, (self.layout, how, rows)))


@dataclass(frozen=True, slots=True)
class FileReport:
    """A report about a file of version 0.1: its pages, and all parts that are no pages."""

    pages: list[PageReport]
    parts: list[Part]


ExplainPage: TypeAlias = Callable[[ObjectReader, Column, str, int, bytes, bool], PageReport]
"""Explains a page: of the column of a dotted name, its number, the message of its encoding, and whether
to read its chunks, too, to tell their bytes apart.  Raises FormatError."""


# --- encodings ------------------------------------------------------------------------------------


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
