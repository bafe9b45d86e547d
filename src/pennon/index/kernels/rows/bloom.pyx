"""Values put into a split-block Bloom filter: xxHash64 with seed 0, one bit in each word of one block."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    WORDS = 8

cdef uint64_t P1 = 0x9E3779B185EBCA87ULL
cdef uint64_t P2 = 0xC2B2AE3D27D4EB4FULL
cdef uint64_t P3 = 0x165667B19E3779F9ULL
cdef uint64_t P4 = 0x85EBCA77C2B2AE63ULL
cdef uint64_t P5 = 0x27D4EB2F165667C5ULL
cdef uint32_t[WORDS] SALT
SALT[:] = [
    0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31,
]

ctypedef fused Offset:
    int32_t
    int64_t


cdef inline uint64_t _turned(uint64_t word, int by) noexcept nogil:
    return (word << by) | (word >> (64 - by))


cdef inline uint64_t _round(uint64_t lane, uint64_t word) noexcept nogil:
    return _turned(lane + word * P2, 31) * P1


cdef inline uint64_t _word(const uint8_t *at) noexcept nogil:
    cdef uint64_t found
    memcpy(&found, at, 8)
    return found


cdef uint64_t _hash(const uint8_t *data, int64_t size) noexcept nogil:
    cdef const uint8_t *at = data
    cdef const uint8_t *end = data + size
    cdef uint64_t a, b, c, d, found
    cdef uint32_t half
    if size >= 32:
        a, b, c, d = P1 + P2, P2, 0, 0 - P1
        while end - at >= 32:
            a = _round(a, _word(at))
            b = _round(b, _word(at + 8))
            c = _round(c, _word(at + 16))
            d = _round(d, _word(at + 24))
            at += 32
        found = _turned(a, 1) + _turned(b, 7) + _turned(c, 12) + _turned(d, 18)
        found = (found ^ _round(0, a)) * P1 + P4
        found = (found ^ _round(0, b)) * P1 + P4
        found = (found ^ _round(0, c)) * P1 + P4
        found = (found ^ _round(0, d)) * P1 + P4
    else:
        found = P5
    found += <uint64_t> size
    while end - at >= 8:
        found = _turned(found ^ _round(0, _word(at)), 27) * P1 + P4
        at += 8
    if end - at >= 4:
        memcpy(&half, at, 4)
        found = _turned(found ^ (<uint64_t> half * P1), 23) * P2 + P3
        at += 4
    while at < end:
        found = _turned(found ^ (<uint64_t> at[0] * P5), 11) * P1
        at += 1
    found = (found ^ (found >> 33)) * P2
    found = (found ^ (found >> 29)) * P3
    return found ^ (found >> 32)


def xxhash64(const uint8_t[::1] data):
    """Hash the bytes of one value; see the stub."""
    return _hash(&data[0] if data.shape[0] else NULL, data.shape[0])


cdef inline void _insert(uint32_t *words, uint64_t blocks, uint64_t hashed) noexcept nogil:
    cdef uint32_t *block = words + WORDS * (((hashed >> 32) * blocks) >> 32)
    cdef uint32_t low = <uint32_t> hashed
    cdef int number
    for number in range(WORDS):
        block[number] |= (<uint32_t> 1) << ((low * SALT[number]) >> 27)


def insert_fixed(uint32_t[::1] words, const uint8_t[::1] data, int64_t width):
    """Put values of equal width into a filter; see the stub."""
    cdef int64_t size = data.shape[0], at = 0
    cdef uint64_t blocks = <uint64_t> words.shape[0] // WORDS
    if width < 1 or size % width or blocks < 1 or words.shape[0] % WORDS or blocks >> 32:
        raise ValueError("a filter has blocks of eight words, and its values one width")
    if size == 0:
        return
    with nogil:
        while at < size:
            _insert(&words[0], blocks, _hash(&data[at], width))
            at += width


def insert_varied(uint32_t[::1] words, const uint8_t[::1] data, const Offset[::1] offsets):
    """Put values that lie between offsets into a filter; see the stub."""
    cdef int64_t number, count = offsets.shape[0] - 1, previous
    cdef uint64_t blocks = <uint64_t> words.shape[0] // WORDS
    cdef const uint8_t *start = NULL
    cdef bint falls = 0
    if blocks < 1 or words.shape[0] % WORDS or blocks >> 32:
        raise ValueError("a filter has blocks of eight words")
    if count < 1:
        return
    if data.shape[0]:
        start = &data[0]
    with nogil:
        previous = offsets[0]
        falls = previous < 0
        for number in range(1, count + 1):
            falls = falls or offsets[number] < previous
            previous = offsets[number]
        falls = falls or previous > data.shape[0]
        if not falls:
            for number in range(count):
                _insert(
                    &words[0], blocks, _hash(start + offsets[number], offsets[number + 1] - offsets[number])
                )
    if falls:
        raise ValueError("the offsets of values fall, or leave the data")
