# cython: language_level=3
"""The tables of a mini-block page, as other kernels read them."""

from libc.stdint cimport int64_t, uint8_t


cdef class ChunkTable:
    cdef object arrays  # keeps alive what the pointers show
    cdef int64_t position
    cdef Py_ssize_t count
    cdef const int64_t* offsets
    cdef const int64_t* first_values
    cdef const int64_t* first_rows
    cdef const uint8_t* goes_on
