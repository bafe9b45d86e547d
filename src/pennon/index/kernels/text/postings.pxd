# cython: language_level=3
"""Blocks of posting lists, for other kernels."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef bint full_block(
    const uint8_t* at, const uint8_t* end, int size, uint32_t* docs, uint32_t* frequencies,
) noexcept nogil
cdef bint tail(
    const uint8_t* at, const uint8_t* end, int64_t count, bint is_varint,
    uint32_t* docs, uint32_t* frequencies,
) noexcept nogil
cdef check_ends(const uint8_t[::1] data, const int64_t[::1] ends, Py_ssize_t blocks)
