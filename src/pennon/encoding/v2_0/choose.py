"""The choice of an encoding for a page of version 2.0: the same as pylance's.

===========================  ==================================================================
all NULL                     Nullable.all_nulls, no buffer (text and binaries too)
numbers, times, booleans     Nullable(Flat)
fixed-size lists             Nullable(FixedSizeList(Nullable(...)))
text                         Dictionary with 8-bit indices if the page has 100 rows or more, less
                             than 100 distinct values, and gets smaller; else Binary
other text, binaries         Binary
dictionary arrays            Dictionary
packed structs               PackedStruct
===========================  ==================================================================

The field metadata ``lance-encoding:compression`` (zstd, lz4) compresses the bytes of Binary, and
nothing else.

Source: ledger F-14, F-15, F-19; the thresholds are pylance's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from pennon.core.units import align_up
from pennon.encoding.arrow_buffers import data_of
from pennon.encoding.v2_0.binary import encode_binary
from pennon.encoding.v2_0.dictionary import encode_dictionary, encode_text_dictionary
from pennon.encoding.v2_0.encodings import AllNulls, Compression, Encoded
from pennon.encoding.v2_0.fixed_size_list import encode_fixed_size_list
from pennon.encoding.v2_0.flat import encode_fixed_width
from pennon.encoding.v2_0.nullable import encode_nullable
from pennon.encoding.v2_0.packed_struct import encode_packed_struct
from pennon.errors import ArgumentError

COMPRESSION: Final = "lance-encoding:compression"
COMPRESSION_LEVEL: Final = "lance-encoding:compression-level"
_VARIABLE: Final = frozenset((pa.string(), pa.large_string(), pa.binary(), pa.large_binary()))
SCHEMES: Final = ("zstd", "lz4")
BUFFER_ALIGNMENT: Final = 64


def encode_page(array: pa.Array, metadata: Mapping[str, bytes]) -> Encoded:
    """Encode one page of a column that is no list and no unpacked struct.

    ``metadata`` is the field's.  Raises UnsupportedError for NULLs that a packed struct cannot hold.
    """
    if array.null_count == len(array):
        return Encoded(AllNulls())
    if _is_variable(array.type):
        return _encode_variable(array, _compression(metadata))
    return encode_values(array, 0)


def encode_values(array: pa.Array, first: int) -> Encoded:
    """Encode an array by its type alone; page buffers are numbered from ``first`` on."""
    if isinstance(array, pa.ExtensionArray):
        return encode_values(array.storage, first)
    kind = array.type
    if pa.types.is_dictionary(kind):
        return encode_dictionary(array, first, encode_values)
    if pa.types.is_struct(kind):
        return encode_packed_struct(array, first)
    if _is_variable(kind):
        return encode_binary(array, first)
    if pa.types.is_fixed_size_list(kind):
        return encode_nullable(array, first, _encode_list_values)
    return encode_nullable(array, first, encode_fixed_width)


def _encode_list_values(array: pa.Array, first: int) -> Encoded:
    return encode_fixed_size_list(array, first, encode_values)


def _encode_variable(array: pa.Array, compression: Compression | None) -> Encoded:
    """Encode text or binaries: Dictionary where it applies and is smaller, else Binary."""
    if pa.types.is_string(array.type):
        coded = encode_text_dictionary(array)
        if coded is not None and _stored_bytes(*coded.buffers) < _binary_bytes(array):
            return coded
    return encode_binary(array, 0, compression)


def _binary_bytes(array: pa.Array) -> int:
    """Return how many bytes of a file a Binary takes, not compressed."""
    return align_up(8 * len(array), BUFFER_ALIGNMENT) + _stored_bytes(data_of(array))


def _stored_bytes(*buffers: pa.Buffer) -> int:
    """Return how many bytes of a file the buffers take, padding included."""
    return sum(align_up(buffer.size, BUFFER_ALIGNMENT) for buffer in buffers)


def _is_variable(kind: pa.DataType) -> bool:
    """Tell whether values are text or bytes of any length."""
    return kind in _VARIABLE


def _compression(metadata: Mapping[str, bytes]) -> Compression | None:
    """Return the compression that a field asks for; schemes that are not known ask for none."""
    scheme = metadata.get(COMPRESSION, b"").decode("utf-8", "replace")
    if scheme not in SCHEMES:
        return None
    level = metadata.get(COMPRESSION_LEVEL)
    try:
        return Compression(scheme, None if level is None else int(level))
    except ValueError as error:
        message = f"{COMPRESSION_LEVEL} is {level!r}, not a number"
        raise ArgumentError(message) from error
