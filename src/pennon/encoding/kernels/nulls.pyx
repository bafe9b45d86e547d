"""Bitmaps brought to bit 0, and values under NULLs brought to zero."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np


def copy_bits(const uint8_t[::1] bitmap, int64_t bit_offset, int64_t count):
    """See nulls.pyi."""
    cdef int64_t size = (count + 7) // 8, first = bit_offset >> 3, i
    cdef int shift = bit_offset & 7
    cdef uint8_t high
    if bit_offset < 0 or count < 0 or bit_offset + count > bitmap.shape[0] * 8:
        raise ValueError("the bitmap is too short")
    result = np.empty(size, np.uint8)
    if size == 0:
        return result
    cdef uint8_t[::1] out = result
    with nogil:
        if shift == 0:
            memcpy(&out[0], &bitmap[first], size)
        else:
            for i in range(size):
                high = bitmap[first + i + 1] if first + i + 1 < bitmap.shape[0] else 0
                out[i] = <uint8_t>((bitmap[first + i] >> shift) | (high << (8 - shift)))
        if count & 7:
            out[size - 1] &= <uint8_t>((1 << (count & 7)) - 1)
    return result


ctypedef fused Word:
    uint32_t
    uint64_t


cdef void _mask_words(
    const Word *values, const uint8_t *validity, int64_t rows, Word *out
) noexcept nogil:
    """Write ``values`` where the bit is set, else 0, without a branch a row."""
    cdef int64_t row
    for row in range(rows):
        out[row] = values[row] & (<Word>0 - <Word>((validity[row >> 3] >> (row & 7)) & 1))


def zero_nulls(const uint8_t[::1] values, const uint8_t[::1] validity, int64_t rows, int64_t width):
    """See nulls.pyi."""
    cdef int64_t row
    if width <= 0 or rows < 0 or values.shape[0] != rows * width:
        raise ValueError("values do not have rows times width bytes")
    if validity.shape[0] * 8 < rows:
        raise ValueError("the bitmap is too short")
    result = np.empty(rows * width, np.uint8)
    if rows == 0:
        return result
    cdef uint8_t[::1] out = result
    cdef bint aligned = (<uint64_t>&values[0]) % 8 == 0
    if aligned and width == 8:
        with nogil:
            _mask_words(<const uint64_t *>&values[0], &validity[0], rows, <uint64_t *>&out[0])
        return result
    if aligned and width == 4:
        with nogil:
            _mask_words(<const uint32_t *>&values[0], &validity[0], rows, <uint32_t *>&out[0])
        return result
    with nogil:
        memcpy(&out[0], &values[0], rows * width)
        for row in range(rows):
            if not (validity[row >> 3] >> (row & 7)) & 1:
                memset(&out[row * width], 0, width)
    return result
