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


cdef inline int width(const uint32_t* values, int count) noexcept nogil:
    """Return how many bits the greatest of some values takes."""
    cdef uint32_t every = 0
    cdef int bits = 0, k
    for k in range(count):
        every |= values[k]
    while bits < 32 and every >> bits:
        bits += 1
    return bits


cdef uint8_t* put_rows(uint8_t* at, const uint32_t* values, int lanes, int bits) noexcept nogil:
    """Write 32 rows of values of so many bits: value k in lane k mod lanes, row k div lanes."""
    cdef int row, lane, word, shift
    cdef uint32_t words[256]
    memset(words, 0, sizeof(words))
    if bits:
        for row in range(32):
            word, shift = row * bits >> 5, row * bits & 31
            for lane in range(lanes):
                words[lanes * word + lane] |= values[row * lanes + lane] << shift
            if shift + bits > 32:
                for lane in range(lanes):
                    words[lanes * (word + 1) + lane] |= values[row * lanes + lane] >> (32 - shift)
    memcpy(at, words, 4 * lanes * bits)
    return at + 4 * lanes * bits


cdef inline uint8_t* put_packed(uint8_t* at, const uint32_t* values) noexcept nogil:
    """Write the width of 128 values, and these."""
    cdef int bits = width(values, BLOCK)
    at[0] = <uint8_t>bits
    return put_rows(at + 1, values, 4, bits)


cdef uint8_t* put_block(
    uint8_t* at, const uint32_t* steps, const uint32_t* frequencies, int size
) noexcept nogil:
    """Write a full block behind its first document; of one of 256, no frequency is an exception."""
    cdef int bits = width(steps, size)
    at[0] = <uint8_t>bits
    at = put_rows(at + 1, steps, size // 32, bits)
    bits = width(frequencies, size)
    at[0] = <uint8_t>bits
    if size == 256:
        at[1] = 0
        at += 1
    return put_rows(at + 1, frequencies, size // 32, bits)


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
    const float[::1] scores, int size, bint is_varint, uint8_t[::1] target,
    int64_t[::1] blob_ends,
):
    """See postings_write.pyi."""
    cdef Py_ssize_t token, tokens = ends.shape[0] - 1
    cdef int64_t start, count, k, blob = 0, need = 0
    cdef uint8_t* at
    cdef float most
    cdef uint32_t steps[256]
    if size not in (128, 256):
        raise ValueError(f"posting lists are not written in blocks of {size}")
    for token in range(tokens):
        count = ends[token + 1] - ends[token]
        if count < 0 or ends[token + 1] > docs.shape[0]:
            raise ValueError("the ends of posting lists do not ascend")
        blob += (count + size - 1) // size
        need += (count // size) * (8 * size + 10) + 4 + 10 * (count % size)
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
                count = min(<int64_t>size, ends[token + 1] - start)
                if size == BLOCK:
                    most = scores[start]
                    for k in range(1, count):
                        most = max(most, scores[start + k])
                    memcpy(at, &most, 4)
                    at += 4
                for k in range(1, count):
                    steps[k] = docs[start + k] - docs[start + k - 1]
                if count == size:
                    at = put_word(at, docs[start])
                    steps[0] = 0
                    at = put_block(at, steps, &frequencies[start], size)
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
    const uint32_t[::1] lengths, int size, uint8_t[::1] target, int64_t[::1] blob_ends,
):
    """See postings_write.pyi."""
    cdef Py_ssize_t token, tokens = ends.shape[0] - 1, span
    cdef int64_t start, count, k, blob = 0, blocks
    cdef uint8_t* at
    cdef uint32_t frequency, length
    if size < 1:
        raise ValueError(f"posting lists are not written in blocks of {size}")
    for token in range(tokens):
        if ends[token + 1] < ends[token] or ends[token + 1] > docs.shape[0]:
            raise ValueError("the ends of posting lists do not ascend")
        for span in (size, size * GROUP):
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
                span = size * GROUP if blocks else size
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
    int size, uint8_t[::1] target, int64_t[::1] stream_ends, uint32_t[::1] block_starts,
):
    """See postings_write.pyi."""
    cdef Py_ssize_t token, tokens = ends.shape[0] - 1
    cdef int64_t start, count, k, each, block = 0, place = 0, held, total = 0
    cdef uint8_t* at
    cdef uint8_t* begin
    cdef uint32_t steps[128]
    cdef uint32_t before
    if size < 1:
        raise ValueError(f"posting lists are not written in blocks of {size}")
    for k in range(frequencies.shape[0]):
        total += frequencies[k]
    for token in range(tokens):
        if ends[token + 1] < ends[token] or ends[token + 1] > frequencies.shape[0]:
            raise ValueError("the ends of posting lists do not ascend")
        block += (ends[token + 1] - ends[token] + size - 1) // size
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
                count = min(<int64_t>size, ends[token + 1] - start)
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
