# cython: language_level=3
"""Little-endian numbers at any place of a buffer; the machine is little-endian, too."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy


cdef inline uint64_t number_at(const uint8_t* at, int64_t width) noexcept nogil:
    """Return a number of 0, 1, 2, 4 or 8 bytes; none is 0."""
    cdef uint16_t two
    cdef uint32_t four
    cdef uint64_t eight
    if width == 0:
        return 0
    if width == 1:
        return at[0]
    if width == 2:
        memcpy(&two, at, 2)
        return two
    if width == 4:
        memcpy(&four, at, 4)
        return four
    memcpy(&eight, at, 8)
    return eight
