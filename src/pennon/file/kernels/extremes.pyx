"""The least and the greatest string of each group."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp

import numpy as np

ctypedef fused Offset:
    int32_t
    int64_t


cdef int64_t _cut(const uint8_t *value, int64_t size, int64_t most, bint is_text) noexcept nogil:
    """Return how many bytes of a string count; text is not cut within a character."""
    cdef int64_t end = most
    if size <= most:
        return size
    if is_text:
        while end > 0 and (value[end] & 0xC0) == 0x80:
            end -= 1
    return end


cdef int _compare(const uint8_t *a, int64_t m, const uint8_t *b, int64_t n) noexcept nogil:
    cdef int found = memcmp(a, b, m if m < n else n)
    if found == 0:
        return (m > n) - (m < n)
    return found


cdef void _extremes(
    const uint8_t *data, const Offset *offsets, const uint8_t *validity, int64_t bit_offset,
    int64_t start, int64_t end, int64_t most, bint is_text,
    int64_t *least, int64_t *greatest, uint8_t *is_long,
) noexcept nogil:
    cdef int64_t row, bit, size, cut, low = -1, high = -1, low_size = 0, high_size = 0
    cdef bint long_one = 0
    cdef const uint8_t *value
    for row in range(start, end):
        if validity != NULL:
            bit = bit_offset + row
            if not (validity[bit >> 3] >> (bit & 7)) & 1:
                continue
        value = data + offsets[row]
        size = offsets[row + 1] - offsets[row]
        cut = size
        if size > most:
            long_one = 1
            cut = _cut(value, size, most, is_text)
        if low < 0:
            low = high = row
            low_size, high_size = cut, size
            continue
        if _compare(value, cut, data + offsets[low], low_size) < 0:
            low, low_size = row, cut
        if _compare(value, size, data + offsets[high], high_size) > 0:
            high, high_size = row, size
    least[0] = low
    greatest[0] = high
    is_long[0] = long_one


def string_extremes(
    const uint8_t[::1] data, const Offset[::1] offsets, validity, int64_t bit_offset,
    const int64_t[::1] borders, int64_t most, bint is_text,
):
    """See extremes.pyi."""
    cdef Py_ssize_t groups = borders.shape[0] - 1, group, rows = offsets.shape[0] - 1, row
    cdef const uint8_t[::1] bits
    cdef const uint8_t *marks = NULL
    cdef uint8_t nothing = 0
    cdef const uint8_t *source = &data[0] if data.shape[0] else &nothing
    if groups < 0 or rows < 0 or most < 0:
        raise ValueError("there are no borders, or no offsets")
    if borders[0] < 0 or borders[groups] > rows:
        raise ValueError("the groups leave the strings")
    for group in range(groups):
        if borders[group + 1] < borders[group]:
            raise ValueError("borders fall")
    if offsets[0] < 0 or offsets[rows] > data.shape[0]:
        raise ValueError("the offsets leave the data")
    for row in range(rows):
        if offsets[row + 1] < offsets[row]:
            raise ValueError("offsets fall")
    if validity is not None:
        bits = validity
        if bit_offset < 0 or bit_offset + rows > bits.shape[0] * 8:
            raise ValueError("the validity bitmap is too short")
        if rows:
            marks = &bits[0]
    found = np.full((2, groups), -1, np.int64)
    long_ones = np.zeros(groups, np.uint8)
    if groups == 0:
        return found[0], found[1], long_ones
    cdef int64_t[:, ::1] extremes = found
    cdef uint8_t[::1] is_long = long_ones
    with nogil:
        for group in range(groups):
            _extremes(
                source, &offsets[0], marks, bit_offset, borders[group], borders[group + 1],
                most, is_text, &extremes[0, group], &extremes[1, group], &is_long[group],
            )
    return found[0], found[1], long_ones
