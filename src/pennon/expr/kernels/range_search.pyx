"""Which strings have a text in them: all of them are searched at once, as one stretch of bytes."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp

import numpy as np

ctypedef fused Offset:
    int32_t
    int64_t

DEF BLOCK = 64


cdef bint _may_start(
    const uint8_t *first, const uint8_t *middle, const uint8_t *last, uint8_t a, uint8_t b, uint8_t c,
) noexcept nogil:
    """Tell whether a text may start at any place of a block; the compiler makes vectors of this.

    Three of its bytes are looked at: words of a language often have two in common.
    """
    cdef int i
    cdef uint8_t found = 0
    for i in range(BLOCK):
        found |= (first[i] == a) & (middle[i] == b) & (last[i] == c)
    return found


cdef void _search(
    const uint8_t *data, const Offset *offsets, int64_t rows,
    const uint8_t *wanted, int64_t size, uint8_t *bits,
) noexcept nogil:
    cdef int64_t place = offsets[0], row = 0, stop
    cdef int64_t end = offsets[rows] - size + 1
    cdef int64_t inner = max(size - 2, 0)
    cdef uint8_t a = wanted[0], b = wanted[inner], c = wanted[size - 1]
    while place < end:
        stop = place + BLOCK
        if stop > end:
            stop = end
        elif not _may_start(data + place, data + place + inner, data + place + size - 1, a, b, c):
            place = stop
        while place < stop:
            if data[place + inner] == b and data[place + size - 1] == c \
                    and memcmp(data + place, wanted, size) == 0:
                while offsets[row + 1] <= place:
                    row += 1
                if place + size <= offsets[row + 1]:
                    bits[row >> 3] |= 1 << (row & 7)
                    place = offsets[row + 1]
                    continue
            place += 1


cdef int64_t _equal(
    const uint8_t *data, const Offset *offsets, int64_t rows,
    const uint8_t *wanted, int64_t size, int64_t *found,
) noexcept nogil:
    """Find the strings that are a text; most others differ in their length or their last byte."""
    cdef int64_t row, start, kept = 0
    cdef uint8_t last = wanted[size - 1]
    for row in range(rows):
        start = offsets[row]
        if offsets[row + 1] - start == size and data[start + size - 1] == last \
                and memcmp(data + start, wanted, size) == 0:
            found[kept] = row
            kept += 1
    return kept


cdef int _check(
    const uint8_t[::1] data, const Offset[::1] offsets, const uint8_t[::1] wanted,
) except -1:
    """Raise ValueError if the text is empty, or offsets fall or leave the data."""
    cdef Py_ssize_t rows = offsets.shape[0] - 1, row
    cdef bint falls = False
    if rows < 0:
        raise ValueError("there are no offsets")
    if wanted.shape[0] == 0:
        raise ValueError("the text is empty")
    if offsets[0] < 0 or offsets[rows] > data.shape[0]:
        raise ValueError("the offsets leave the data")
    for row in range(rows):
        falls |= offsets[row] > offsets[row + 1]
    if falls:
        raise ValueError("offsets fall")
    return 0


def find_equal_strings(
    const uint8_t[::1] data, const Offset[::1] offsets, const uint8_t[::1] wanted,
):
    """See range_search.pyi."""
    _check(data, offsets, wanted)
    cdef Py_ssize_t rows = offsets.shape[0] - 1
    found = np.empty(rows, np.int64)
    cdef int64_t[::1] places = found
    cdef int64_t kept = 0
    if rows and data.shape[0]:
        with nogil:
            kept = _equal(&data[0], &offsets[0], rows, &wanted[0], wanted.shape[0], &places[0])
    return found[:kept]


def find_in_strings(
    const uint8_t[::1] data, const Offset[::1] offsets, const uint8_t[::1] wanted,
):
    """See range_search.pyi."""
    cdef Py_ssize_t rows = offsets.shape[0] - 1
    cdef uint8_t nothing = 0
    cdef const uint8_t *source = &data[0] if data.shape[0] else &nothing
    _check(data, offsets, wanted)
    found = np.zeros((rows + 7) // 8, np.uint8)
    cdef uint8_t[::1] bits = found
    if rows:
        with nogil:
            _search(source, &offsets[0], rows, &wanted[0], wanted.shape[0], &bits[0])
    return found
