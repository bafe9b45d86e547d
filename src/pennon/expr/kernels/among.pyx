"""Which whole numbers are among some others.

These stand in a table, each at the place that its hash says, or behind it.  Places without one hold the first of
them, which ends every search.  A number most often is not among them: then a bit says so, without the table.
Numbers that lie close together are bits alone, one for each number from the least to the greatest.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

import numpy as np

DEF MIX = 0x9E3779B97F4A7C15
DEF SPACE = 4
DEF BITS = 16
DEF DENSE = 128


cdef void _fill(
    const int64_t *wanted, int64_t count, int64_t *places, uint8_t *bits, int shift, int bit_shift, uint64_t last,
) noexcept nogil:
    cdef int64_t number, filler = wanted[0]
    cdef uint64_t mixed, at
    for number in range(count):
        mixed = <uint64_t>wanted[number] * <uint64_t>MIX
        at = mixed >> bit_shift
        bits[at >> 3] |= 1 << (at & 7)
        at = mixed >> shift
        while places[at] != filler and places[at] != wanted[number]:
            at = (at + 1) & last
        places[at] = wanted[number]


cdef void _find(
    const int64_t *values, int64_t count, int64_t filler, const int64_t *places, const uint8_t *bits,
    int shift, int bit_shift, uint64_t last, uint8_t *found,
) noexcept nogil:
    cdef int64_t row, value
    cdef uint64_t mixed, at
    for row in range(count):
        value = values[row]
        mixed = <uint64_t>value * <uint64_t>MIX
        at = mixed >> bit_shift
        if not (bits[at >> 3] >> (at & 7)) & 1:
            continue
        at = mixed >> shift
        while places[at] != value and places[at] != filler:
            at = (at + 1) & last
        if places[at] == value:
            found[row >> 3] |= 1 << (row & 7)


cdef void _bounds(const int64_t *wanted, int64_t count, int64_t *low, int64_t *high) noexcept nogil:
    cdef int64_t number, least = wanted[0], greatest = wanted[0]
    for number in range(1, count):
        if wanted[number] < least:
            least = wanted[number]
        if wanted[number] > greatest:
            greatest = wanted[number]
    low[0] = least
    high[0] = greatest


cdef void _find_dense(
    const int64_t *values, int64_t rows, const int64_t *wanted, int64_t count, int64_t low, uint64_t span,
    uint8_t *bits, uint8_t *found,
) noexcept nogil:
    cdef int64_t number
    cdef uint64_t at
    for number in range(count):
        at = <uint64_t>wanted[number] - <uint64_t>low
        bits[at >> 3] |= 1 << (at & 7)
    for number in range(rows):
        at = <uint64_t>values[number] - <uint64_t>low
        if at <= span:
            found[number >> 3] |= ((bits[at >> 3] >> (at & 7)) & 1) << (number & 7)


def find_among(const int64_t[::1] values, const int64_t[::1] wanted):
    """See among.pyi."""
    cdef int64_t rows = values.shape[0], count = wanted.shape[0]
    cdef int power = 4
    found = np.zeros((rows + 7) // 8, np.uint8)
    cdef uint8_t[::1] marks = found
    if not rows or not count:
        return found
    cdef int64_t low = 0, high = 0
    with nogil:
        _bounds(&wanted[0], count, &low, &high)
    cdef uint64_t span = <uint64_t>high - <uint64_t>low
    cdef uint8_t[::1] dense
    if span // DENSE <= <uint64_t>count:
        dense = np.zeros(span // 8 + 1, np.uint8)
        with nogil:
            _find_dense(&values[0], rows, &wanted[0], count, low, span, &dense[0], &marks[0])
        return found
    while (1 << power) < SPACE * count:
        power += 1
    table = np.full(1 << power, wanted[0], np.int64)
    filter_bits = np.zeros((BITS // SPACE << power) // 8, np.uint8)
    cdef int64_t[::1] places = table
    cdef uint8_t[::1] bits = filter_bits
    cdef int shift = 64 - power, bit_shift = 64 - power - 2
    cdef uint64_t last = (1 << power) - 1
    with nogil:
        _fill(&wanted[0], count, &places[0], &bits[0], shift, bit_shift, last)
        _find(&values[0], rows, wanted[0], &places[0], &bits[0], shift, bit_shift, last, &marks[0])
    return found
