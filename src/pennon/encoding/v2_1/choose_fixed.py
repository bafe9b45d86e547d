"""How values of a fixed width are encoded in chunks: the smallest of what there is."""

from __future__ import annotations

from typing import Final

from pennon.encoding.kernels.pack import block_widths
from pennon.encoding.kernels.squeeze import count_runs
from pennon.encoding.v2_1.bitpacked import chunk_packed, packed_bytes
from pennon.encoding.v2_1.byte_stream_split import chunk_streams
from pennon.encoding.v2_1.encoding_hints import Wishes
from pennon.encoding.v2_1.flat import chunk_flat
from pennon.encoding.v2_1.general import compress_chunks
from pennon.encoding.v2_1.rle import chunk_runs
from pennon.encoding.v2_1.values import WORD_TYPES, Chunked, FixedValues

_SAMPLE_VALUES: Final = 16 * 1024


def choose_fixed(values: FixedValues, wishes: Wishes) -> Chunked:
    """Return the chunks of a page's values."""
    if wishes.scheme == "none" or values.bits not in WORD_TYPES:
        flat = chunk_flat(values)
        return flat if wishes.compression is None else compress_chunks(flat, wishes.compression)
    if wishes.compression is not None:
        return _compressed(values, wishes)
    return _smallest(values, wishes)


def _smallest(values: FixedValues, wishes: Wishes) -> Chunked:
    """Return flat, packed or run lengths; only what promises to be smallest is made."""
    words = values.words
    widths = block_widths(words)
    flat = chunk_flat(values)
    least = min(flat.size_bytes, packed_bytes(values, widths))
    runs = count_runs(words)
    if _allows_runs(values, runs, wishes) and runs * (values.bits // 8 + 1) < least:
        coded = chunk_runs(values)
        if coded.size_bytes < least:
            return coded
    return flat if least == flat.size_bytes else chunk_packed(values, widths)


def _allows_runs(values: FixedValues, runs: int, wishes: Wishes) -> bool:
    threshold = wishes.rle_threshold
    return threshold is None or runs < threshold * values.count


def _compressed(values: FixedValues, wishes: Wishes) -> Chunked:
    """Return the encoding that is smallest once it is compressed, judged by the first values."""
    compression = wishes.compression
    assert compression is not None  # or there is nothing to compare
    size = min(values.count, _SAMPLE_VALUES)
    sample = FixedValues(size, values.bits, values.data[: size * values.bits // 8])
    encoders = [chunk_flat, chunk_packed]
    if _allows_runs(values, count_runs(values.words), wishes):
        encoders.append(chunk_runs)
    if values.bits >= 32 and wishes.streams != "off":
        encoders.append(chunk_streams)
    if values.bits >= 32 and wishes.streams == "on":
        encoders = [chunk_streams]
    sizes = [compress_chunks(encode(sample), compression).size_bytes for encode in encoders]
    return compress_chunks(encoders[sizes.index(min(sizes))](values), compression)
