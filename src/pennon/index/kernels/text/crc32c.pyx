# cython: language_level=3
"""Checksums.  See crc32c.pyi."""

from libc.stdint cimport uint8_t, uint32_t


cdef uint32_t CRC[256]


cdef void make_crc() noexcept:
    cdef uint32_t number, value
    cdef int bit
    for number in range(256):
        value = number
        for bit in range(8):
            value = (value >> 1) ^ (<uint32_t>0x82F63B78 * (value & 1))
        CRC[number] = value


make_crc()


def crc32c(const uint8_t[::1] data):
    """See crc32c.pyi."""
    cdef uint32_t value = <uint32_t>-1
    cdef Py_ssize_t at
    with nogil:
        for at in range(data.shape[0]):
            value = CRC[(value ^ data[at]) & 0xFF] ^ (value >> 8)
    return ~value
