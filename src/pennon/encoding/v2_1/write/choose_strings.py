"""How byte strings are encoded: plain or FSST, compressed or not."""

from __future__ import annotations

from typing import Final

from pennon.encoding.v2_1.encodings import BufferCompression
from pennon.encoding.v2_1.write.blocks import Chunked, Single, StringValues
from pennon.encoding.v2_1.write.general import compress_chunks, compress_single
from pennon.encoding.v2_1.write.strings import (
    chunk_fsst,
    chunk_strings,
    single_fsst,
    single_strings,
)
from pennon.encoding.v2_1.write.symbols import TABLE_BYTES, SymbolTable, sample_ratio, train
from pennon.encoding.v2_1.write.wishes import Wishes

FEWEST_BYTES: Final = 2 * TABLE_BYTES
"""Below this, even the best symbols save less than their table costs."""

LARGE_VALUE_BYTES: Final = 32 * 1024
"""Values beyond this are compressed one by one."""

_ZSTD: Final = BufferCompression("zstd", 0)


def choose_strings(values: StringValues, wishes: Wishes) -> Chunked:
    """Return the chunks of a page's byte strings."""
    table = _table(values, wishes)
    plain = chunk_strings(values) if table is None else chunk_fsst(values, table)
    if wishes.compression is None:
        return plain
    # Codes of FSST look like noise to a compression, so it may do better on the plain bytes.
    packed = compress_chunks(chunk_strings(values), wishes.compression)
    return min((packed, compress_chunks(plain, wishes.compression)), key=lambda c: c.size_bytes)


def single_choice(values: StringValues, wishes: Wishes) -> Single:
    """Return the byte strings one by one, for a full-zip page."""
    if wishes.compression is not None:
        return _compressed(values, wishes.compression)
    longest = int((values.offsets[1:] - values.offsets[:-1]).max())
    if longest > LARGE_VALUE_BYTES and wishes.scheme is None:
        return _compressed(values, _ZSTD)
    table = _table(values, wishes)
    return single_strings(values) if table is None else single_fsst(values, table)


def _compressed(values: StringValues, compression: BufferCompression) -> Single:
    plain = single_strings(values)
    packed = compress_single(plain, compression)
    return packed if len(packed.data) < values.size_bytes else plain


def _table(values: StringValues, wishes: Wishes) -> SymbolTable | None:
    """Return the symbols to encode with, or None if they would save nothing."""
    if wishes.scheme == "none" or values.size_bytes == 0:
        return None
    if wishes.scheme == "fsst":
        return train(values)
    if values.size_bytes < FEWEST_BYTES:
        return None
    table = train(values)
    saved = (1.0 - sample_ratio(values, table)) * values.size_bytes
    return table if saved > TABLE_BYTES else None
