"""List: where each list's items end; the items themselves are the next column.

    [[A, B], NULL, [], [C, D, E]]      offsets  2, 8, 2, 5     null_offset_adjustment 6
                                       items    A B C D E      in the column that follows

A list page and its items are separate pages of separate columns, so decoding stops at the ranges of
items: `pennon.file.columns` reads those from the item column, whose row 0 for this page is the sum
of ``num_items`` of the pages in front of it.

Source: seed 004 (message List); pylance 14.0.2 writes the adjustment items + 1.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.encoding.kernels.offsets import encode_end_offsets
from pennon.encoding.page import PageBuffers
from pennon.encoding.rows import Rows
from pennon.encoding.steps import Steps
from pennon.encoding.v2_0.binary import arrow_offsets
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encoded import Encoded, as_bytes
from pennon.encoding.v2_0.encodings import List, NoNulls
from pennon.encoding.v2_0.flat import encode_flat
from pennon.encoding.v2_0.offsets import Spans, read_spans


def decode_list(encoding: List, page: PageBuffers, rows: Rows, codecs: Codecs) -> Steps[Spans]:
    """Return the lists of ``rows`` without their items, in one round.

    The items to read are ``contents``, counted from the first item of this page.
    Raises FormatError if offsets fall or exceed ``num_items``.
    """
    limit = min(encoding.num_items, 2**63 - 1)
    return (
        yield from read_spans(
            encoding.offsets, encoding.null_offset_adjustment, limit, page, rows, codecs
        )
    )


def encode_list(array: pa.Array, first: int = 0) -> tuple[Encoded, pa.Array]:
    """Encode the offsets of (large) lists; return them and the items, of which none is hidden."""
    offsets = arrow_offsets(array)
    validity = as_bytes(array.buffers()[0]) if array.null_count else None
    stored, adjustment, under_nulls = encode_end_offsets(offsets, validity, array.offset)
    if under_nulls:
        return encode_list(_without_hidden_items(array), first)
    start, end = int(offsets[0]), int(offsets[-1])
    flat = encode_flat(pa.py_buffer(stored), 64, first)
    encoding = List(NoNulls(flat.encoding), adjustment, end - start)
    return Encoded(encoding, flat.buffers), array.values.slice(start, end - start)


def _without_hidden_items(array: pa.Array) -> pa.Array:
    """Return the same lists with no items under the NULLs."""
    offsets, valid = arrow_offsets(array), array.is_valid().to_numpy(zero_copy_only=False)
    lengths = np.where(valid, np.diff(offsets), 0)
    ends = np.concatenate([np.zeros(1, offsets.dtype), lengths.cumsum().astype(offsets.dtype)])
    return type(array).from_arrays(ends, array.flatten(), array.type, mask=pa.array(~valid))
