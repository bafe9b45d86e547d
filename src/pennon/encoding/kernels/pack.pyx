# cython: language_level=3
"""Pack values into FastLanes order, whole pages at once.  See pack.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

ctypedef fused Word:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

cdef int[8] ORDER = [0, 4, 2, 6, 1, 5, 3, 7]
cdef enum:
    BLOCK = 1024


cdef int _width(uint64_t bits) noexcept nogil:
    cdef int width = 0
    while bits:
        width += 1
        bits >>= 1
    return width


cdef int _block_width(const Word* values, Py_ssize_t count) noexcept nogil:
    cdef Word seen = 0
    cdef Py_ssize_t i
    for i in range(count):
        seen |= values[i]
    return _width(seen)


cdef void _pack_block(const Word* values, int width, Word* packed) noexcept nogil:
    """Pack 1024 values; ``packed`` has room for ``width`` rows of lanes."""
    cdef int bits = sizeof(Word) * 8
    cdef int lanes = BLOCK // bits
    cdef int row, lane, shift, high
    cdef const Word* source
    cdef Word* low_words
    cdef Word* high_words
    memset(packed, 0, width * 128)
    if width == 0:
        return
    for row in range(bits):
        source = values + 16 * ORDER[row // 8] + 128 * (row % 8)
        shift = (row * width) % bits
        low_words = packed + (row * width) // bits * lanes
        if shift + width <= bits:
            for lane in range(lanes):
                low_words[lane] |= <Word>(source[lane] << shift)
        else:
            high = bits - shift
            high_words = low_words + lanes
            for lane in range(lanes):
                low_words[lane] |= <Word>(source[lane] << shift)
                high_words[lane] |= <Word>(source[lane] >> high)


def block_widths(const Word[::1] values):
    """See pack.pyi."""
    cdef Py_ssize_t count = values.shape[0], blocks = (count + BLOCK - 1) // BLOCK, block
    widths = np.zeros(blocks, np.uint8)
    cdef uint8_t[::1] out = widths
    with nogil:
        for block in range(blocks):
            out[block] = <uint8_t>_block_width[Word](
                &values[block * BLOCK], min(BLOCK, count - block * BLOCK)
            )
    return widths


def pack_inline(const Word[::1] values, const uint8_t[::1] widths):
    """See pack.pyi."""
    cdef Py_ssize_t count = values.shape[0], blocks = (count + BLOCK - 1) // BLOCK, block
    cdef int64_t at = 0, total = 0
    cdef Word[BLOCK] last
    cdef Word width
    if widths.shape[0] != blocks:
        raise ValueError("one bit width for each block of 1024 values")
    for block in range(blocks):
        if widths[block] > sizeof(Word) * 8:
            raise ValueError("bit width outside the word")
        total += sizeof(Word) + <int64_t>widths[block] * 128
    packed = np.empty(total // <int64_t>sizeof(Word), np.asarray(values).dtype)
    sizes = np.asarray(widths).astype(np.int64) * 128 + sizeof(Word)
    if blocks == 0:
        return packed.view(np.uint8), sizes
    cdef Word[::1] out = packed
    with nogil:
        for block in range(blocks):
            width = widths[block]
            out[at] = width
            at += 1
            if count - block * BLOCK >= BLOCK:
                if width:
                    _pack_block[Word](&values[block * BLOCK], <int>width, &out[at])
            elif width:
                memset(&last[0], 0, sizeof(last))
                memcpy(&last[0], &values[block * BLOCK], (count - block * BLOCK) * sizeof(Word))
                _pack_block[Word](&last[0], <int>width, &out[at])
            at += <int64_t>width * 128 // <int64_t>sizeof(Word)
    return packed.view(np.uint8), sizes


def pack_blocks(const Word[::1] values, const int64_t[::1] counts, int bit_width):
    """See pack.pyi."""
    cdef Py_ssize_t chunks = counts.shape[0], chunk
    cdef int64_t words = <int64_t>bit_width * 128 // <int64_t>sizeof(Word)
    cdef int64_t room = 0, read = 0, at = 0, whole, tail, block, began
    cdef Word[BLOCK] last
    if not 1 <= bit_width <= <int>sizeof(Word) * 8:
        raise ValueError("bit width outside the word")
    for chunk in range(chunks):
        if counts[chunk] < 0 or counts[chunk] > values.shape[0] - read:
            raise ValueError("chunks do not divide the values")
        read += counts[chunk]
        room += counts[chunk] // BLOCK * words
        room += min(words, counts[chunk] % BLOCK)
    if read != values.shape[0]:
        raise ValueError("chunks do not divide the values")
    packed = np.empty(room, np.asarray(values).dtype)
    sizes = np.zeros(chunks, np.int64)
    if room == 0:
        return packed.view(np.uint8), sizes
    cdef Word[::1] out = packed
    cdef int64_t[::1] size = sizes
    read = 0
    with nogil:
        for chunk in range(chunks):
            began = at
            whole = counts[chunk] // BLOCK
            tail = counts[chunk] % BLOCK
            for block in range(whole):
                _pack_block[Word](&values[read], bit_width, &out[at])
                read += BLOCK
                at += words
            if tail and words < tail:
                memset(&last[0], 0, sizeof(last))
                memcpy(&last[0], &values[read], tail * sizeof(Word))
                _pack_block[Word](&last[0], bit_width, &out[at])
                at += words
            elif tail:
                memcpy(&out[at], &values[read], tail * sizeof(Word))
                at += tail
            read += tail
            size[chunk] = (at - began) * <int64_t>sizeof(Word)
    return packed.view(np.uint8), sizes
