"""A read-only memory map that does not keep its file descriptor."""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.exc cimport PyErr_SetFromErrno

cdef extern from "<sys/mman.h>" nogil:
    void *mmap(void *start, size_t size, int protection, int flags, int fd, long offset)
    int munmap(void *start, size_t size)
    int PROT_READ
    int MAP_SHARED
    void *MAP_FAILED


cdef class Mapping:
    """See mapping.pyi."""

    cdef void *start
    cdef Py_ssize_t size

    def __cinit__(self, int fd, Py_ssize_t size_bytes):
        self.start = MAP_FAILED
        if size_bytes <= 0:
            raise ValueError("only a file that has bytes can be mapped")
        self.size = size_bytes
        with nogil:
            self.start = mmap(NULL, <size_t> size_bytes, PROT_READ, MAP_SHARED, fd, 0)
        if self.start == MAP_FAILED:
            PyErr_SetFromErrno(OSError)

    def __dealloc__(self):
        if self.start != MAP_FAILED:
            munmap(self.start, <size_t> self.size)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.start, self.size, 1, flags)

    def __len__(self):
        return self.size

    def __reduce__(self):
        raise TypeError("a memory map does not pickle")
