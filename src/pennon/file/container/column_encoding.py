"""The encoding of a column as a whole: values, or what stands beside them (zone map, blobs).

It is one message in all versions from 2.0 on; how the values of a page are encoded is not.
"""

from __future__ import annotations

from functools import lru_cache

from pennon.encoding.v2_0.encodings import ColumnEncoding, Values
from pennon.encoding.v2_0.wire import parse_column_encoding, serialize_column_encoding
from pennon.file.container.wire import unwrap_encoding, wrap_encoding


def column_encoding_or_values(data: bytes | None) -> ColumnEncoding:
    """Return the encoding of a column; one that says nothing holds plain values."""
    return Values() if data is None else _parse(data)


@lru_cache(maxsize=64)
def _parse(data: bytes) -> ColumnEncoding:
    return parse_column_encoding(unwrap_encoding(data, "ColumnEncoding"))


@lru_cache(maxsize=64)
def wrap_column_encoding(encoding: ColumnEncoding) -> bytes:
    """Return the message of an encoding."""
    return wrap_encoding("encodings.ColumnEncoding", serialize_column_encoding(encoding))
