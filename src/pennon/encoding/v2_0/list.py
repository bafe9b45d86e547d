"""List: where each list's items end; the items themselves are the next column.

    [[A, B], NULL, [], [C, D, E]]      offsets  2, 8, 2, 5     null_offset_adjustment 6
                                       items    A B C D E      in the column that follows

A list page and its items are separate pages of separate columns, so decoding stops at the ranges of
items: `pennon.file.v2_0.reader` reads those from the item column, whose row 0 for this page is the sum
of ``num_items`` of the pages in front of it.

Source: seed 004 (message List); pylance 14.0.2 writes the adjustment items + 1.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.encoding.arrow_buffers import arrow_offsets
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encodings import Encoded, List, NoNulls
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


def encode_list(lengths: pa.Array, first: int = 0) -> Encoded:
    """Encode the lengths of lists, NULL for a list that is NULL."""
    counts = pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False)
    stored = np.cumsum(counts, dtype=np.uint64)
    num_items = int(stored[-1]) if len(stored) else 0
    if lengths.null_count:
        missing = lengths.is_null().to_numpy(zero_copy_only=False)
        stored[missing] += np.uint64(num_items + 1)
    flat = encode_flat(pa.py_buffer(stored), 64, first)
    return Encoded(List(NoNulls(flat.encoding), num_items + 1, num_items), flat.buffers)


def part_lists(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the lengths of (large) lists, NULL for NULL, and the items of the others.

    A NULL list of an Arrow array may hide items; they are left out.
    """
    lengths = pc.list_value_length(array)
    offsets = arrow_offsets(array)
    start, end = int(offsets[0]), int(offsets[-1])
    if array.null_count and (pc.sum(lengths).as_py() or 0) != end - start:
        return lengths, array.flatten()
    return lengths, array.values.slice(start, end - start)
