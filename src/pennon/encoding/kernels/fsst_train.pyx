# cython: language_level=3
"""FSST: count symbols in a sample, encode strings with a table.  See fsst_train.pyi."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

ctypedef fused Offset:
    int32_t
    int64_t

cdef enum:
    ESCAPE = 255
    FIRST_BYTE = 256
    HASHES = 4096


cdef struct Matcher:
    # Symbols of three bytes or more, ordered by their hash, then the shortest first.
    uint64_t[256] symbols
    uint64_t[256] masks
    uint8_t[256] lengths
    uint8_t[256] codes
    uint16_t[256] hashes
    int16_t[HASHES] last
    # The code of the first two bytes, or of the first byte, or -1.
    int16_t* pairs
    int16_t[256] single


cdef inline int _hash(uint64_t word) noexcept nogil:
    """Return the hash of the first three bytes (symbols of 3 to 5 bytes): an even number."""
    return <int>(((word & 0xFFFFFF) * <uint64_t>2971215073) >> 15) & (HASHES - 2)


cdef inline int _long_hash(uint64_t word) noexcept nogil:
    """Return the hash of the first six bytes (symbols of 6 to 8 bytes): an odd number."""
    cdef uint64_t six = word & ((<uint64_t>1 << 48) - 1)
    return <int>(((six ^ (six >> 24)) * <uint64_t>2971215073) >> 17) & (HASHES - 2) | 1


cdef inline int _find(const Matcher* matcher, uint64_t word, int64_t room) noexcept nogil:
    """Return the code of the longest symbol at the begin of ``word``, or -1."""
    cdef int at, hashed
    if room < 2:
        return matcher.single[word & 0xFF]
    if room > 5:
        hashed = _long_hash(word)
        at = matcher.last[hashed]
        while at >= 0 and matcher.hashes[at] == hashed:
            if (word & matcher.masks[at]) == matcher.symbols[at] and matcher.lengths[at] <= room:
                return matcher.codes[at]
            at -= 1
    if room > 2:
        hashed = _hash(word)
        at = matcher.last[hashed]
        while at >= 0 and matcher.hashes[at] == hashed:
            if (word & matcher.masks[at]) == matcher.symbols[at] and matcher.lengths[at] <= room:
                return matcher.codes[at]
            at -= 1
    return matcher.pairs[word & 0xFFFF]


cdef inline uint64_t _load(const uint8_t* at, int64_t room, int64_t left) noexcept nogil:
    """Return up to eight bytes of a string that goes on for ``room``, and the data for ``left``."""
    cdef uint64_t word = 0
    if left >= 8:
        memcpy(&word, at, 8)
        return word if room >= 8 else word & (~(<uint64_t>0) >> (64 - 8 * room))
    memcpy(&word, at, room)
    return word


cdef void _prepare(
    Matcher* matcher, const uint64_t[::1] symbols, const uint8_t[::1] lengths,
    const int64_t[::1] order,
):
    """Fill a matcher; ``order`` sorts by the hash, then by length, the shortest first."""
    cdef int code, at = 0, i, hashed
    memset(&matcher.last[0], 0xFF, sizeof(matcher.last))
    memset(&matcher.single[0], 0xFF, sizeof(matcher.single))
    for code in range(symbols.shape[0]):
        if lengths[code] == 1:
            matcher.single[symbols[code] & 0xFF] = code
    for i in range(65536):
        matcher.pairs[i] = matcher.single[i & 0xFF]
    for i in range(order.shape[0]):
        code = order[i]
        if lengths[code] == 2:
            matcher.pairs[symbols[code] & 0xFFFF] = code
        if lengths[code] < 3:
            continue
        matcher.symbols[at] = symbols[code]
        matcher.lengths[at] = lengths[code]
        matcher.codes[at] = code
        matcher.masks[at] = ~(<uint64_t>0) >> (64 - 8 * lengths[code])
        hashed = _long_hash(symbols[code]) if lengths[code] > 5 else _hash(symbols[code])
        matcher.hashes[at] = hashed
        matcher.last[hashed] = at
        at += 1


def _check(symbols, lengths):
    if len(symbols) != len(lengths) or len(symbols) > 255:
        raise ValueError("at most 255 symbols, each with its length")
    if len(lengths) and not (1 <= lengths.min() and lengths.max() <= 8):
        raise ValueError("symbols have 1 to 8 bytes")
    hashes = [
        _long_hash(symbol) if length > 5 else _hash(symbol)
        for symbol, length in zip(symbols.tolist(), lengths.tolist(), strict=True)
    ]
    return np.lexsort((lengths, np.array(hashes, np.int64))).astype(np.int64)


def count_symbols(
    const uint8_t[::1] data, const int64_t[::1] offsets, symbols, lengths, int64_t least
):
    """See fsst_train.pyi."""
    order = _check(symbols, lengths)
    table = np.empty(65536, np.int16)
    cdef int16_t[::1] pair_codes = table
    cdef Matcher matcher
    matcher.pairs = &pair_codes[0]
    cdef const uint64_t[::1] symbol_of = symbols
    cdef const uint8_t[::1] length_of = lengths
    _prepare(&matcher, symbol_of, length_of, order)
    ones = np.zeros(512, np.uint32)
    pairs = np.zeros((512, 512), np.uint32)
    cdef uint32_t[::1] one = ones
    cdef uint32_t[:, ::1] pair = pairs
    cdef int64_t i, at, stop, size = data.shape[0]
    cdef int code, before, single
    cdef uint64_t word
    for i in range(offsets.shape[0] - 1):
        if offsets[i] < 0 or offsets[i + 1] < offsets[i] or offsets[i + 1] > size:
            raise ValueError("offsets fall or leave the data")
    with nogil:
        for i in range(offsets.shape[0] - 1):
            at = offsets[i]
            stop = offsets[i + 1]
            before = -1
            while at < stop:
                word = _load(&data[at], stop - at, size - at)
                single = FIRST_BYTE + <int>(word & 0xFF)
                code = _find(&matcher, word, stop - at)
                if code < 0:
                    code = single
                one[code] += 1
                if before >= 0:
                    pair[before, code] += 1
                if code < FIRST_BYTE and length_of[code] > 1:
                    one[single] += 1
                    if before >= 0:
                        pair[before, single] += 1
                at += length_of[code] if code < FIRST_BYTE else 1
                before = code
    return _candidates(symbols, lengths, ones, pairs, least)


def _candidates(symbols, lengths, ones, pairs, least):
    """Return what could be a symbol next, with what it would save; doubles are not yet merged."""
    texts = np.zeros(512, np.uint64)
    sizes = np.ones(512, np.int64)
    texts[: len(symbols)] = symbols
    sizes[: len(symbols)] = lengths
    texts[256:] = np.arange(256, dtype=np.uint64)
    single = np.flatnonzero(ones >= least)
    left, right = np.nonzero(pairs >= least)
    size = sizes[left] + sizes[right]
    fits = size <= 8
    left, right, size = left[fits], right[fits], size[fits]
    joined = texts[left] | texts[right] << (sizes[left] * 8).astype(np.uint64)
    return (
        np.concatenate([texts[single], joined]),
        np.concatenate([sizes[single], size]),
        np.concatenate([
            ones[single] * np.where(sizes[single] == 1, 8, sizes[single]),
            pairs[left, right] * size,
        ]).astype(np.int64),
    )


def encode_symbols(const uint8_t[::1] data, const Offset[::1] offsets, symbols, lengths):
    """See fsst_train.pyi."""
    order = _check(symbols, lengths)
    table = np.empty(65536, np.int16)
    cdef int16_t[::1] pair_codes = table
    cdef Matcher matcher
    matcher.pairs = &pair_codes[0]
    cdef const uint64_t[::1] symbol_of = symbols
    cdef const uint8_t[::1] length_of = lengths
    _prepare(&matcher, symbol_of, length_of, order)
    cdef int64_t i, at, stop, filled = 0, rows = offsets.shape[0] - 1, size = data.shape[0]
    cdef int code
    cdef uint64_t word
    if rows < 0 or offsets[0] < 0 or offsets[rows] > size:
        raise ValueError("offsets leave the data")
    for i in range(rows):
        if offsets[i + 1] < offsets[i]:
            raise ValueError("offsets fall")
    codes = np.empty(2 * (offsets[rows] - offsets[0]), np.uint8)
    ends = np.zeros(rows + 1, np.int64)
    cdef uint8_t[::1] out = codes
    cdef int64_t[::1] end = ends
    with nogil:
        for i in range(rows):
            at = offsets[i]
            stop = offsets[i + 1]
            while at < stop:
                word = _load(&data[at], stop - at, size - at)
                code = _find(&matcher, word, stop - at)
                if code < 0:
                    out[filled] = ESCAPE
                    out[filled + 1] = <uint8_t>word
                    filled += 2
                    at += 1
                else:
                    out[filled] = <uint8_t>code
                    filled += 1
                    at += length_of[code]
            end[i + 1] = filled
    return codes[:filled], ends
