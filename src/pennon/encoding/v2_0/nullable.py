"""Nullable: no, some or all values are NULL.

::

    no_nulls     values
    some_nulls   validity (a bit a row, set: not NULL) and values; NULL rows have any value
    all_nulls    no buffer at all

Source: seed 004 (message Nullable).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from pennon.encoding.arrow_buffers import validity_of
from pennon.encoding.block import AllNullBlock, Block, FixedWidthBlock, NullableBlock
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps, together
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encodings import AllNulls, Encoded, NoNulls, SomeNulls
from pennon.encoding.v2_0.flat import encode_flat
from pennon.errors import FormatError

EncodeValues: TypeAlias = Callable[[pa.Array, int], Encoded]


def decode_no_nulls(
    encoding: NoNulls, page: PageBuffers, rows: Rows, codecs: Codecs
) -> Steps[Block]:
    """Return the steps of the values themselves."""
    return codecs.decode(encoding.values, page, rows)


def decode_some_nulls(
    encoding: SomeNulls, page: PageBuffers, rows: Rows, codecs: Codecs
) -> Steps[Block]:
    """Return the steps that read validity and values in the same rounds."""
    validity, values = yield from together(
        [codecs.decode(encoding.validity, page, rows), codecs.decode(encoding.values, page, rows)]
    )
    if not isinstance(validity, FixedWidthBlock) or validity.bits_per_value != 1:
        message = "validity is not a bit for each row"
        raise FormatError(message)
    return with_validity(validity.data, values)


def decode_all_nulls(
    _encoding: AllNulls, _page: PageBuffers, rows: Rows, _codecs: Codecs
) -> Steps[Block]:
    """Return NULLs without reading anything."""
    yield from ()
    return AllNullBlock(rows.count)


def with_validity(validity: pa.Buffer, values: Block) -> Block:
    """Return ``values`` under a bitmap; where they have one of their own, both must agree."""
    if isinstance(values, AllNullBlock):
        return values
    if isinstance(values, NullableBlock):
        size = min(validity.size, values.validity.size)
        both = np.frombuffer(validity, np.uint8, size) & np.frombuffer(
            values.validity, np.uint8, size
        )
        return NullableBlock(values.rows, pa.py_buffer(both), values.values)
    return NullableBlock(values.rows, validity, values)


def encode_nullable(array: pa.Array, first: int, encode_values: EncodeValues) -> Encoded:
    """Encode the NULLs of an array around its values, which ``encode_values`` encodes."""
    if array.null_count == len(array):
        return Encoded(AllNulls())
    if array.null_count == 0:
        values = encode_values(array, first)
        return Encoded(NoNulls(values.encoding), values.buffers)
    validity = encode_flat(pa.py_buffer(validity_of(array)), 1, first)
    values = encode_values(array, first + 1)
    encoding = SomeNulls(validity.encoding, values.encoding)
    return Encoded(encoding, validity.buffers + values.buffers)
