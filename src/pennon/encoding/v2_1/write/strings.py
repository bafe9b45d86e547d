"""Encoders of byte strings: plain or FSST, in chunks, one by one, or in one block."""

from __future__ import annotations

from typing import Final

import numpy as np

from pennon.encoding.kernels.chunks import cut_strings, write_strings
from pennon.encoding.v2_1.encodings import Flat, Fsst, Variable
from pennon.encoding.v2_1.symbols import SymbolTable, encode_with
from pennon.encoding.v2_1.values import Bytes, Chunked, Single, StringValues
from pennon.encoding.v2_1.write.fixed import MOST_VALUES

AIM_BYTES: Final = 4096
"""Bytes that the strings of a chunk take together; a point read fetches a whole chunk."""


def chunk_strings(values: StringValues) -> Chunked:
    """Return chunks of offsets and bytes."""
    counts = cut_strings(values.offsets, values.width, AIM_BYTES, MOST_VALUES)
    data, sizes = write_strings(values.data, values.offsets, counts, values.width)
    return Chunked(Variable(Flat(8 * values.width)), counts, (data,), (sizes,))


def chunk_fsst(values: StringValues, table: SymbolTable) -> Chunked:
    """Return chunks of offsets and codes."""
    inner = chunk_strings(encode_with(values, table))
    return Chunked(
        Fsst(table.serialize(), inner.encoding), inner.counts, inner.buffers, inner.sizes
    )


def single_strings(values: StringValues) -> Single:
    """Return the strings as they are, each for itself."""
    encoding = Variable(Flat(8 * values.width))
    return Single(encoding, values.data, None, values.offsets, values.width)


def single_fsst(values: StringValues, table: SymbolTable) -> Single:
    """Return the codes of each string."""
    inner = single_strings(encode_with(values, table))
    encoding = Fsst(table.serialize(), inner.encoding)
    return Single(encoding, inner.data, None, inner.offsets, inner.offset_width)


def string_block(values: StringValues) -> Bytes:
    """Return all strings in one buffer: width, begin of the bytes, offsets, bytes.

    That is how the strings of a dictionary are stored; its encoding is Variable(Flat).
    """
    dtype = np.dtype(f"<u{values.width}")
    offsets = (values.offsets - values.offsets[0]).astype(dtype)
    begin = 2 * values.width + offsets.nbytes
    head = np.array([8 * values.width, begin], dtype)
    data = values.data[values.offsets[0] : values.offsets[-1]]
    return np.concatenate([head.view(np.uint8), offsets.view(np.uint8), data])
