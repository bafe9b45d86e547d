"""The message that says how a page of version 2.0 is encoded."""

from __future__ import annotations

from functools import lru_cache

from pennon.encoding.read_protocol import Steps
from pennon.encoding.v2_0 import wire
from pennon.encoding.v2_0.encodings import ArrayEncoding
from pennon.errors import FormatError, LanceError
from pennon.file.container.column_metadata import Column, Page
from pennon.file.container.node import Node, encoding_bytes
from pennon.file.container.wire import unwrap_encoding, wrap_encoding


def page_encoding(page: Page) -> Steps[ArrayEncoding]:
    """Return the steps that get the encoding of a page."""
    data = yield from encoding_bytes(page.encoding)
    if data is None:
        message = "page without an encoding"
        raise FormatError(message)
    return parse_page_encoding(data)


def first_encoding(node: Node, column: Column) -> Steps[ArrayEncoding | None]:
    """Return the steps that get the encoding of a column's first page, which tells its kind."""
    if not column.pages:
        return None
    try:
        return (yield from page_encoding(column.pages[0]))
    except LanceError as error:
        raise error.located(node.place(column.pages[0], 0)) from error.__cause__


@lru_cache(maxsize=1024)
def parse_page_encoding(data: bytes) -> ArrayEncoding:
    """Return the encoding in an ``Any`` message; pages of a column mostly repeat it."""
    return wire.parse_array_encoding(unwrap_encoding(data, "ArrayEncoding"))


def serialize_page_encoding(encoding: ArrayEncoding) -> bytes:
    """Return the ``Any`` message of an encoding."""
    return wrap_encoding("encodings.ArrayEncoding", wire.serialize_array_encoding(encoding))
