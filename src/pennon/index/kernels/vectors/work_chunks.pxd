# cython: language_level=3
"""Chunks of work, of which each thread takes the next one."""

from libc.stdint cimport int64_t


cdef class WorkChunks:
    cdef const int64_t[::1] borders
    cdef int64_t taken
    cdef bint take(self, int64_t *start, int64_t *end) noexcept nogil
    cdef int64_t last(self) noexcept nogil
