"""Binary: byte strings and text as end offsets and one run of bytes.

    ["ab", NULL, "c"]       indices  2, 6, 3    null_adjustment 4
                            bytes    a b c

A row costs two rounds: its two offsets, then its bytes.  The bytes of many rows are gathered in the
order of the rows, which is just what the data buffer of an Arrow array looks like.

Source: ledger F-10 (pylance 14.0.2): the adjustment is the last offset + 1, indices are 64 bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.encoding.arrow_buffers import (
    EMPTY,
    arrow_offsets,
    as_bytes,
    data_of,
    without_hidden_bytes,
)
from pennon.encoding.block import Block, FixedWidthBlock, NullableBlock, VariableBlock
from pennon.encoding.kernels.offsets import encode_end_offsets
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encodings import ArrayEncoding, Binary, Compression, Encoded, NoNulls
from pennon.encoding.v2_0.flat import encode_flat
from pennon.encoding.v2_0.offsets import NO_LIMIT, read_spans
from pennon.errors import FormatError


def decode_binary(encoding: Binary, page: PageBuffers, rows: Rows, codecs: Codecs) -> Steps[Block]:
    """Return the byte strings of ``rows``, in two rounds.

    Raises FormatError if offsets fall or leave the bytes.
    """
    spans = yield from read_spans(
        encoding.indices, encoding.null_adjustment, NO_LIMIT, page, rows, codecs
    )
    data = EMPTY
    if spans.contents.count:
        data = yield from _read_bytes(encoding.bytes, page, spans.contents, codecs)
    values = VariableBlock(rows.count, spans.offset_bits, spans.offsets, data)
    return values if spans.validity is None else NullableBlock(rows.count, spans.validity, values)


def _read_bytes(
    encoding: ArrayEncoding, page: PageBuffers, wanted: Rows, codecs: Codecs
) -> Steps[pa.Buffer]:
    """Read bytes of the page, packed."""
    block = yield from codecs.decode(encoding, page, wanted)
    if not isinstance(block, FixedWidthBlock) or block.bits_per_value != 8:
        message = f"the bytes of a binary page are {type(block).__name__}"
        raise FormatError(message)
    if block.data.size < wanted.count:
        message = f"a binary page has {block.data.size} of the {wanted.count} bytes asked for"
        raise FormatError(message)
    return block.data


def encode_binary(
    array: pa.Array, first: int = 0, compression: Compression | None = None
) -> Encoded:
    """Encode (large) strings or binaries; ``compression`` applies to the bytes."""
    stored, adjustment, under_nulls = _end_offsets(array)
    if under_nulls:
        array = without_hidden_bytes(array)
        stored, adjustment, _ = _end_offsets(array)
    indices = encode_flat(pa.py_buffer(stored), 64, first)
    data = encode_flat(data_of(array), 8, first + 1, compression)
    encoding = Binary(NoNulls(indices.encoding), data.encoding, adjustment)
    return Encoded(encoding, indices.buffers + data.buffers)


def _end_offsets(array: pa.Array) -> tuple[npt.NDArray[np.uint64], int, int]:
    """Return the stored offsets, the adjustment, and how many bytes lie under NULLs."""
    validity = as_bytes(array.buffers()[0]) if array.null_count else None
    return encode_end_offsets(arrow_offsets(array), validity, array.offset)
