"""Fixed-size binary: byte strings that all have one length, stored without offsets.

Early writers chose it for string and binary pages; the offsets are made up while reading.  The bytes
are a Flat, of single bytes or of whole values, by the age of the writer: both say the same.

Source: `protos/pennon/proto/encodings_v2_0.proto` (message FixedSizeBinary).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.encoding.block import Block, FixedWidthBlock, VariableBlock
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encodings import FixedSizeBinary, Flat
from pennon.errors import FormatError


def decode_fixed_size_binary(
    encoding: FixedSizeBinary, page: PageBuffers, rows: Rows, codecs: Codecs
) -> Steps[Block]:
    """Return the steps that read the byte strings of ``rows``, with offsets of 64 bits."""
    width = encoding.byte_width
    if width == 0:
        message = "fixed-size binary of 0 bytes"
        raise FormatError(message)
    whole_values = isinstance(encoding.bytes, Flat) and encoding.bytes.bits_per_value == 8 * width
    data = yield from codecs.decode(
        encoding.bytes, page, rows if whole_values else rows.scaled(width)
    )
    if not isinstance(data, FixedWidthBlock) or data.data.size < rows.count * width:
        message = f"the bytes of a fixed-size binary are no values of {width} bytes"
        raise FormatError(message)
    offsets = np.arange(rows.count + 1, dtype=np.int64) * width
    return VariableBlock(rows.count, 64, pa.py_buffer(offsets), data.data)
