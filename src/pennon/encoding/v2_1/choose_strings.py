"""The choice of an encoding for byte strings: plain or FSST, compressed or not."""

from __future__ import annotations

from typing import Final

import numpy as np

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.decompress import are_believed
from pennon.encoding.v2_1.encoding_hints import EncodingHints
from pennon.encoding.v2_1.encodings import BufferCompression
from pennon.encoding.v2_1.fsst import encode_fsst, encode_fsst_values
from pennon.encoding.v2_1.general import compress_whole, encode_general, encode_general_values
from pennon.encoding.v2_1.symbol_training import (
    TABLE_BYTES,
    TrainedSymbols,
    is_noise,
    ratio_of,
    sample_of,
    train,
)
from pennon.encoding.v2_1.values import Chunked, Single, StringValues
from pennon.encoding.v2_1.variable import encode_variable, encode_variable_values

FEWEST_BYTES: Final = 2 * TABLE_BYTES
"""Below this, even the best symbols save less than their table costs."""

MOST_STRING_BYTES: Final = 16 * 1024
"""A longer string, twice as long if no symbol fits, leaves no room in a chunk."""

LARGE_VALUE_BYTES: Final = 32 * 1024
"""Values beyond this are compressed one by one."""

_SAMPLE_STRINGS: Final = 8 * 1024
_SAMPLE_VALUES: Final = 16
_SAMPLE_VALUE_BYTES: Final = 16 * 1024
_ZSTD: Final = BufferCompression("zstd", 0)


def choose_strings(
    values: StringValues, table: TrainedSymbols | None, hints: EncodingHints
) -> Chunked:
    """Return the chunks of a page's byte strings; ``table`` is that of `plan_strings`."""
    if table is None:
        plain = encode_variable(values)
        return plain if hints.compression is None else encode_general(plain, hints.compression)
    coded = encode_fsst(values, table)
    if hints.compression is None:
        return coded
    return _compressed_chunks(values, table, coded, hints.compression)


def _compressed_chunks(
    values: StringValues, table: TrainedSymbols, coded: Chunked, compression: BufferCompression
) -> Chunked:
    """Return the strings compressed as they are, or as codes, which look like noise; as is smaller.

    The first strings decide.
    """
    offsets = values.offsets[:_SAMPLE_STRINGS]
    sample = StringValues(offsets, values.data[: offsets[-1]], values.width)
    plain = encode_general(encode_variable(sample), compression).size_bytes
    if plain <= encode_general(encode_fsst(sample, table), compression).size_bytes:
        return encode_general(encode_variable(values), compression)
    return encode_general(coded, compression)


def single_strings_of(
    values: StringValues, table: TrainedSymbols | None, hints: EncodingHints
) -> Single:
    """Return the byte strings one by one, for a full-zip page."""
    if hints.compression is not None:
        return _compressed(values, hints.compression)
    longest = int((values.offsets[1:] - values.offsets[:-1]).max())
    if longest > LARGE_VALUE_BYTES and hints.scheme is None and _is_compressible(values):
        return _compressed(values, _ZSTD)
    return encode_variable_values(values) if table is None else encode_fsst_values(values, table)


def _is_compressible(values: StringValues) -> bool:
    """Tell by pieces of some values whether compression saves anything: it is dear, and of images vain."""
    chosen = np.arange(0, values.count, -(-values.count // _SAMPLE_VALUES))
    starts = values.offsets[chosen]
    sizes = np.minimum(values.offsets[chosen + 1] - starts, _SAMPLE_VALUE_BYTES)
    pieces = (values.data[at : at + size] for at, size in zip(starts, sizes, strict=True))
    return any(len(compress_whole(piece, _ZSTD)) < len(piece) for piece in pieces)


def _compressed(values: StringValues, compression: BufferCompression) -> Single:
    plain = encode_variable_values(values)
    packed = encode_general_values(plain, compression)
    assert packed.offsets is not None  # values one by one
    is_readable = are_believed(np.diff(values.offsets), np.diff(packed.offsets))
    return packed if is_readable and len(packed.data) < values.size_bytes else plain


@dataclass(frozen=True, slots=True)
class StringPlan:
    """The symbols to encode with, None if they would save nothing, and what to expect of that."""

    table: TrainedSymbols | None
    estimated_bytes: int
    """About how many bytes of a page the strings take, without a compression around."""


def plan_strings(values: StringValues, hints: EncodingHints) -> StringPlan:
    """Find out, with a sample of the strings, whether and with which symbols to encode them."""
    size = values.size_bytes + values.count * values.width
    plain = StringPlan(None, size)
    if hints.scheme == "none" or values.size_bytes == 0:
        return plain
    if values.size_bytes < FEWEST_BYTES and hints.scheme != "fsst":
        return plain
    sample = sample_of(values)
    if is_noise(sample) and hints.scheme != "fsst":
        return plain
    table = train(sample)
    saved = int((1.0 - ratio_of(sample, table)) * values.size_bytes) - TABLE_BYTES
    return StringPlan(table, size - saved) if saved > 0 or hints.scheme == "fsst" else plain
