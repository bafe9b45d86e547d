"""Encoders of packed structs: whole rows, as values of one width."""

from __future__ import annotations

from pennon.encoding.v2_1.encodings import PackedStruct
from pennon.encoding.v2_1.values import Chunked, RowValues
from pennon.encoding.v2_1.write.fixed import chunk_flat, values_per_chunk


def chunk_rows(values: RowValues) -> Chunked | None:
    """Return chunks of rows; None if a row is too wide for chunks."""
    if values_per_chunk(values.rows.bits) == 0:
        return None
    flat = chunk_flat(values.rows)
    encoding = PackedStruct(values.bits_per_field, flat.encoding)
    return Chunked(encoding, flat.counts, flat.buffers, flat.sizes)
