# cython: language_level=3
"""Bitmaps: pick ranges of bits and pack them from bit 0 on.  Values of few bits: unpack them.

Bit i of a buffer is bit i % 8 of byte i / 8, counted from the least significant.  See bits.pyi.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset


cdef inline uint64_t _eight_bits(const uint8_t* source, int64_t position, int64_t end) noexcept nogil:
    """Return up to 8 bits from bit ``position`` on; bits from ``end`` on are 0."""
    cdef int64_t byte = position >> 3
    cdef int shift = position & 7
    cdef uint64_t bits = source[byte] >> shift
    cdef int64_t left = end - position
    if shift and left > 8 - shift:
        bits |= (<uint64_t>source[byte + 1]) << (8 - shift)
    if left < 8:
        bits &= (1 << left) - 1
    return bits & 0xFF


cdef void _append(
    const uint8_t* source, int64_t start, int64_t end, uint8_t* target, int64_t at
) noexcept nogil:
    """Copy the bits [start, end) of ``source`` to bit ``at`` of ``target``, which is 0 there."""
    cdef int shift
    cdef uint64_t bits
    cdef int64_t taken
    while start < end:
        shift = at & 7
        taken = min(8 - shift, end - start)
        bits = _eight_bits(source, start, start + taken)
        target[at >> 3] |= <uint8_t>(bits << shift)
        start += taken
        at += taken


def pick_bits(
    const uint8_t[::1] source,
    const int64_t[::1] starts,
    const int64_t[::1] ends,
    uint8_t[::1] target,
):
    cdef int64_t limit = <int64_t>source.shape[0] * 8
    cdef int64_t room = <int64_t>target.shape[0] * 8
    cdef int64_t total = 0
    cdef Py_ssize_t i, n = starts.shape[0]
    cdef bint fine = ends.shape[0] == n
    if fine:
        with nogil:
            for i in range(n):
                if starts[i] < 0 or starts[i] > ends[i] or ends[i] > limit:
                    fine = False
                    break
                total += ends[i] - starts[i]
                if total > room:
                    fine = False
                    break
    if not fine:
        raise ValueError("bit ranges leave the source or do not fit the target")
    cdef int64_t at = 0
    cdef int64_t bit
    if target.shape[0] == 0:
        return
    with nogil:
        memset(&target[0], 0, target.shape[0])
        for i in range(n):
            if ends[i] - starts[i] == 1:
                bit = (source[starts[i] >> 3] >> (starts[i] & 7)) & 1
                target[at >> 3] |= <uint8_t>(bit << (at & 7))
                at += 1
            elif ends[i] > starts[i]:
                _append(&source[0], starts[i], ends[i], &target[0], at)
                at += ends[i] - starts[i]


def unpack_bits(
    const uint8_t[::1] source,
    const int64_t[::1] starts,
    const int64_t[::1] counts,
    int bit_width,
    bint signed,
    uint64_t[::1] target,
):
    cdef int64_t limit = <int64_t>source.shape[0] * 8
    cdef int64_t total = 0
    cdef Py_ssize_t i, n = starts.shape[0]
    cdef bint fine = counts.shape[0] == n and 1 <= bit_width <= 64
    if fine:
        for i in range(n):
            if starts[i] < 0 or counts[i] < 0 or counts[i] > limit // bit_width:
                fine = False
                break
            if starts[i] > limit - counts[i] * bit_width:
                fine = False
                break
            total += counts[i]
    if not fine or total != target.shape[0]:
        raise ValueError("packed values leave the source or do not fill the target")
    cdef int64_t at = 0, position, j, taken, left
    cdef uint64_t value, sign
    with nogil:
        sign = (<uint64_t>1) << (bit_width - 1)
        for i in range(n):
            position = starts[i]
            for j in range(counts[i]):
                value = 0
                taken = 0
                while taken < bit_width:
                    left = min(8 - (position & 7), bit_width - taken)
                    value |= (
                        ((<uint64_t>source[position >> 3] >> (position & 7)) & ((1 << left) - 1))
                        << taken
                    )
                    taken += left
                    position += left
                if signed:
                    value = (value ^ sign) - sign
                target[at] = value
                at += 1


cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static inline int pennon_first_bit(unsigned long long word) {
        unsigned long bit;
        _BitScanForward64(&bit, word);
        return (int)bit;
    }
    #else
    static inline int pennon_first_bit(unsigned long long word) { return __builtin_ctzll(word); }
    #endif
    """
    int pennon_first_bit(uint64_t word) noexcept nogil


def set_bits(
    const uint8_t[::1] source,
    int64_t start,
    int64_t count,
    int64_t[::1] target,
):
    if start < 0 or count < 0 or start + count > <int64_t>source.shape[0] * 8:
        raise ValueError("bits leave the source")
    cdef int64_t room = target.shape[0]
    cdef int64_t found = 0
    cdef int64_t position = start
    cdef int64_t end = start + count
    cdef int64_t bit
    cdef uint64_t word
    cdef bint fine = True
    with nogil:
        while position < end:
            if (position & 7) == 0 and end - position >= 64:
                memcpy(&word, &source[position >> 3], 8)
                bit = 64
            else:
                bit = min(8 - (position & 7), end - position)
                word = _eight_bits(&source[0], position, position + bit)
            while word:
                if found == room:
                    fine = False
                    break
                target[found] = position - start + pennon_first_bit(word)
                found += 1
                word &= word - 1
            if not fine:
                break
            position += bit
    if not fine or found != room:
        raise ValueError("the bits that are set do not fill the target exactly")
