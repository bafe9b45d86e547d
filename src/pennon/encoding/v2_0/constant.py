"""Constant: one fixed-width value for every row, and no buffer.

Source: the proto only; no release is known to have written it into a 2.0 file.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from pennon.encoding.block import Block, FixedWidthBlock
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encodings import Constant
from pennon.errors import UnsupportedError

MAX_WIDTH: Final = 32
"""The widest primitive value (decimal256); anything wider would be a way to ask for much memory."""


def decode_constant(
    encoding: Constant, _page: PageBuffers, rows: Rows, _codecs: Codecs
) -> Steps[Block]:
    """Return the value, once for each row, without reading anything."""
    yield from ()
    width = len(encoding.value)
    if not 0 < width <= MAX_WIDTH:
        message = f"constant encoding of a value of {width} bytes; Pennon reads 1 to {MAX_WIDTH}"
        raise UnsupportedError(message)
    return FixedWidthBlock(rows.count, 8 * width, pa.py_buffer(encoding.value * rows.count))
