# cython: language_level=3
"""Posting lists of full-text indices, written: all of a partition at once.  See postings_write.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef enum:
    BLOCK = 128
    GROUP = 32


cdef inline uint8_t* put_varint(uint8_t* at, uint64_t value) noexcept nogil:
    while value > 0x7F:
        at[0] = <uint8_t>(value & 0x7F | 0x80)
        at += 1
        value >>= 7
    at[0] = <uint8_t>value
    return at + 1


cdef inline uint8_t* put_word(uint8_t* at, uint32_t value) noexcept nogil:
    memcpy(at, &value, 4)
    return at + 4


cdef uint8_t* put_packed(uint8_t* at, const uint32_t* values) noexcept nogil:
    """Write the width of 128 values, and these: value k in lane k mod 4, row k div 4."""
    cdef uint32_t every = 0
    cdef int bits = 0, k, bit, word, lane
    cdef uint32_t words[128]
    for k in range(BLOCK):
        every |= values[k]
    while bits < 32 and every >> bits:
        bits += 1
    memset(words, 0, sizeof(words))
    if bits:
        for k in range(BLOCK):
            bit, lane = (k >> 2) * bits, k & 3
            word = bit >> 5
            words[4 * word + lane] |= values[k] << (bit & 31)
            if (bit & 31) + bits > 32:
                words[4 * (word + 1) + lane] |= values[k] >> (32 - (bit & 31))
    at[0] = <uint8_t>bits
    memcpy(at + 1, words, 16 * bits)
    return at + 1 + 16 * bits


cdef inline uint32_t length_code(uint32_t length) noexcept nogil:
    cdef int bits = 0
    if length < 8:
        return length
    while bits < 32 and length >> bits:
        bits += 1
    return ((bits - 3) << 3) | ((length >> (bits - 4)) & 7)


cdef uint8_t* put_impact(
    uint8_t* at, uint32_t last, uint32_t frequency, uint32_t length
) noexcept nogil:
    """Write one pair that no document beats: the most of the token, in the least text."""
    cdef uint32_t code = length_code(length)
    at = put_varint(at, last)
    at = put_varint(at, 1)
    at = put_varint(at, (<uint64_t>(frequency - 1) << 1) | (code != 1))
    return at if code == 1 else put_varint(at, code)


def encode_postings(
    const int64_t[::1] ends, const uint32_t[::1] docs, const uint32_t[::1] frequencies,
    const float[::1] scores, bint is_varint, uint8_t[::1] target, int64_t[::1] blob_ends,
):
    """See postings_write.pyi."""
    cdef Py_ssize_t token, tokens = ends.shape[0] - 1
    cdef int64_t start, count, k, blob = 0, need = 0
    cdef uint8_t* at
    cdef float most
    cdef uint32_t steps[128]
    for token in range(tokens):
        count = ends[token + 1] - ends[token]
        if count < 0 or ends[token + 1] > docs.shape[0]:
            raise ValueError("the ends of posting lists do not ascend")
        blob += (count + BLOCK - 1) // BLOCK
        need += (count // BLOCK) * 1034 + 4 + 10 * (count % BLOCK)
    if (
        frequencies.shape[0] != docs.shape[0] or scores.shape[0] != docs.shape[0]
        or target.shape[0] < need or blob_ends.shape[0] != blob + 1 or ends[0] != 0
    ):
        raise ValueError("posting lists of other lengths, or no room for them")
    if not blob:
        return 0
    blob = 0
    with nogil:
        at = &target[0]
        for token in range(tokens):
            start = ends[token]
            while start < ends[token + 1]:
                count = min(<int64_t>BLOCK, ends[token + 1] - start)
                most = scores[start]
                for k in range(1, count):
                    most = max(most, scores[start + k])
                memcpy(at, &most, 4)
                at += 4
                for k in range(1, count):
                    steps[k] = docs[start + k] - docs[start + k - 1]
                if count == BLOCK:
                    at = put_word(at, docs[start])
                    steps[0] = 0
                    at = put_packed(at, steps)
                    at = put_packed(at, &frequencies[start])
                elif not is_varint:
                    memcpy(at, &docs[start], 4 * count)
                    memcpy(at + 4 * count, &frequencies[start], 4 * count)
                    at += 8 * count
                else:
                    at = put_varint(at, docs[start])
                    for k in range(1, count):
                        at = put_varint(at, steps[k])
                    for k in range(count):
                        at = put_varint(at, frequencies[start + k])
                start += count
                blob += 1
                blob_ends[blob] = at - &target[0]
    return blob_ends[blob]


def encode_impacts(
    const int64_t[::1] ends, const uint32_t[::1] docs, const uint32_t[::1] frequencies,
    const uint32_t[::1] lengths, uint8_t[::1] target, int64_t[::1] blob_ends,
):
    """See postings_write.pyi."""
    cdef Py_ssize_t token, tokens = ends.shape[0] - 1, span
    cdef int64_t start, count, k, blob = 0, blocks
    cdef uint8_t* at
    cdef uint32_t frequency, length
    for token in range(tokens):
        if ends[token + 1] < ends[token] or ends[token + 1] > docs.shape[0]:
            raise ValueError("the ends of posting lists do not ascend")
        for span in (BLOCK, BLOCK * GROUP):
            blob += (ends[token + 1] - ends[token] + span - 1) // span
    if (
        frequencies.shape[0] != docs.shape[0] or lengths.shape[0] != docs.shape[0]
        or target.shape[0] < 16 * blob or blob_ends.shape[0] != blob + 1 or ends[0] != 0
    ):
        raise ValueError("posting lists of other lengths, or no room for their bounds")
    if not blob:
        return 0
    blob = 0
    with nogil:
        at = &target[0]
        for token in range(tokens):
            for blocks in range(2):
                span = BLOCK * GROUP if blocks else BLOCK
                start = ends[token]
                while start < ends[token + 1]:
                    count = min(<int64_t>span, ends[token + 1] - start)
                    frequency, length = frequencies[start], lengths[start]
                    for k in range(start + 1, start + count):
                        frequency = max(frequency, frequencies[k])
                        length = min(length, lengths[k])
                    start += count
                    at = put_impact(at, docs[start - 1], frequency, length)
                    blob += 1
                    blob_ends[blob] = at - &target[0]
    return blob_ends[blob]


def encode_positions(
    const int64_t[::1] ends, const uint32_t[::1] frequencies, const uint32_t[::1] positions,
    uint8_t[::1] target, int64_t[::1] stream_ends, uint32_t[::1] block_starts,
):
    """See postings_write.pyi."""
    cdef Py_ssize_t token, tokens = ends.shape[0] - 1
    cdef int64_t start, count, k, each, block = 0, place = 0, held, total = 0
    cdef uint8_t* at
    cdef uint8_t* begin
    cdef uint32_t steps[128]
    cdef uint32_t before
    for k in range(frequencies.shape[0]):
        total += frequencies[k]
    for token in range(tokens):
        if ends[token + 1] < ends[token] or ends[token + 1] > frequencies.shape[0]:
            raise ValueError("the ends of posting lists do not ascend")
        block += (ends[token + 1] - ends[token] + BLOCK - 1) // BLOCK
    if (
        positions.shape[0] != total or target.shape[0] < 5 * total + 128
        or stream_ends.shape[0] != tokens + 1 or block_starts.shape[0] != block
        or ends[0] != 0 or ends[tokens] != frequencies.shape[0]
    ):
        raise ValueError("posting lists of other lengths, or no room for their positions")
    block = 0
    with nogil:
        at = &target[0]
        for token in range(tokens):
            begin = at
            start = ends[token]
            while start < ends[token + 1]:
                count = min(<int64_t>BLOCK, ends[token + 1] - start)
                block_starts[block] = <uint32_t>(at - begin)
                block += 1
                held = 0
                for k in range(start, start + count):
                    before = 0
                    for each in range(frequencies[k]):
                        steps[held] = positions[place] - before
                        before = positions[place]
                        place += 1
                        held += 1
                        if held == BLOCK:
                            at = put_packed(at, steps)
                            held = 0
                for k in range(held):
                    at = put_varint(at, steps[k])
                start += count
            stream_ends[token + 1] = at - &target[0]
    return stream_ends[tokens]


def encode_position_lists(
    const uint32_t[::1] frequencies, const uint32_t[::1] positions, uint8_t[::1] target,
    int64_t[::1] blob_ends,
):
    """See postings_write.pyi."""
    cdef int64_t document, documents = frequencies.shape[0], k, left, place = 0, blob = 0, total = 0
    cdef uint8_t* at
    cdef uint32_t steps[128]
    for document in range(documents):
        total += frequencies[document]
        blob += 1 + (frequencies[document] + BLOCK - 1) // BLOCK
    if (
        positions.shape[0] != total or blob_ends.shape[0] != blob + 1
        or target.shape[0] < 8 * documents + 5 * total + 128
    ):
        raise ValueError("positions of other lengths, or no room for them")
    blob = 0
    with nogil:
        at = &target[0]
        for document in range(documents):
            left = frequencies[document]
            at = put_word(at, <uint32_t>left)
            blob += 1
            blob_ends[blob] = at - &target[0]
            while left >= BLOCK:
                steps[0] = 0
                for k in range(1, BLOCK):
                    steps[k] = positions[place + k] - positions[place + k - 1]
                at = put_word(at, positions[place])
                at = put_packed(at, steps)
                place += BLOCK
                left -= BLOCK
                blob += 1
                blob_ends[blob] = at - &target[0]
            if left:
                memcpy(at, &positions[place], 4 * left)
                at += 4 * left
                place += left
                blob += 1
                blob_ends[blob] = at - &target[0]
    return blob_ends[blob]
