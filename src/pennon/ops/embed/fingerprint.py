"""Fingerprints: what tells that a value is another one than that which a vector was made from.

A fingerprint is the 64-bit xxHash, seed 0, of the bytes of a text (UTF-8) or of a binary value, as a signed number; that of
NULL is NULL.  It stands beside the vector, so it is right whoever changed the row, and however: rows that move keep both.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from pennon.errors import ColumnTypeError, UnsupportedError
from pennon.index.kernels.rows.bloom import xxhash64

FINGERPRINT_TYPE: Final = pa.int64()


def is_source(kind: pa.DataType) -> bool:
    """Return whether a column of this type can be embedded: texts or binary values."""
    return is_text(kind) or is_bytes(kind)


def is_text(kind: pa.DataType) -> bool:
    """Return whether values are texts."""
    plain = kind.value_type if t.is_dictionary(kind) else kind
    return bool(t.is_string(plain) or t.is_large_string(plain))


def is_bytes(kind: pa.DataType) -> bool:
    """Return whether values are bytes."""
    return bool(t.is_binary(kind) or t.is_large_binary(kind))


def plain_values(source: pa.Array[Any], path: str) -> pa.Array[Any]:
    """Return texts or bytes as they are hashed and embedded, without dictionary; blobs as their bytes.

    Raises ColumnTypeError for other types, UnsupportedError for blobs that lie outside of the table.
    """
    if isinstance(source, pa.ExtensionArray):
        source = source.storage
    if t.is_struct(source.type) and {"data", "uri"} <= {each.name for each in source.type}:
        return _bytes_of_blobs(source, path)
    if t.is_dictionary(source.type):
        source = source.dictionary_decode()
    if not is_source(source.type):
        message = f"column {path!r} is {source.type}; texts and binary values are embedded"
        raise ColumnTypeError(message)
    return source


def _bytes_of_blobs(source: Any, path: str) -> pa.Array[Any]:
    data, uri = source.field("data"), source.field("uri")
    outside = source.is_valid().to_numpy(zero_copy_only=False)
    outside = outside & uri.is_valid().to_numpy(zero_copy_only=False)
    outside = outside & data.is_null().to_numpy(zero_copy_only=False)
    if outside.any():
        message = f"column {path!r} has blobs outside of the table, which are not embedded; write their bytes into the table"
        raise UnsupportedError(message)
    return data


def fingerprints(values: pa.Array[Any]) -> pa.Array[Any]:
    """Return the fingerprints of texts or binary values, int64, NULL for NULL."""
    plain: Any = values.cast(pa.large_binary())
    count = len(plain)
    is_null = plain.is_null().to_numpy(zero_copy_only=False)
    buffers = plain.buffers()
    if not count or buffers[2] is None:
        hashed = np.full(count, xxhash64(b""), np.uint64)
    else:
        offsets = np.frombuffer(buffers[1], np.int64)[plain.offset : plain.offset + count + 1]
        data = memoryview(buffers[2]).cast("B")
        pairs = pairwise(offsets.tolist())
        hashed = np.fromiter((xxhash64(data[a:b]) for a, b in pairs), np.uint64, count)  # type: ignore[arg-type]
    return pa.array(hashed.view(np.int64), FINGERPRINT_TYPE, mask=is_null)


def differ(one: pa.Array[Any], other: pa.Array[Any]) -> npt.NDArray[np.bool_]:
    """Return where fingerprints differ; NULL is equal to NULL alone."""
    nulls = (
        one.is_null().to_numpy(zero_copy_only=False),
        other.is_null().to_numpy(zero_copy_only=False),
    )
    same = one.fill_null(0).to_numpy() == other.fill_null(0).to_numpy()
    found: npt.NDArray[np.bool_] = (nulls[0] != nulls[1]) | ~(same | nulls[0])
    return found
