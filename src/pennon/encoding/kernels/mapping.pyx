"""A read-only memory map that does not keep its file descriptor."""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.exc cimport PyErr_SetFromErrno

cdef extern from "<sys/mman.h>" nogil:
    void *mmap(void *start, size_t size, int protection, int flags, int fd, long offset)
    int munmap(void *start, size_t size)
    int madvise(void *start, size_t size, int advice)
    int MADV_DONTNEED
    int PROT_READ
    int MAP_SHARED
    void *MAP_FAILED

cdef extern from "<unistd.h>" nogil:
    long sysconf(int name)
    int _SC_PAGESIZE

# Changed under the GIL only.
cdef Py_ssize_t total_mapped = 0


def mapped_bytes():
    """See mapping.pyi."""
    return total_mapped


cdef class Mapping:
    """See mapping.pyi."""

    cdef void *start
    cdef Py_ssize_t size
    cdef object __weakref__

    def __cinit__(self, int fd, Py_ssize_t size_bytes):
        self.start = MAP_FAILED
        if size_bytes <= 0:
            raise ValueError("only a file that has bytes can be mapped")
        self.size = size_bytes
        with nogil:
            self.start = mmap(NULL, <size_t> size_bytes, PROT_READ, MAP_SHARED, fd, 0)
        if self.start == MAP_FAILED:
            PyErr_SetFromErrno(OSError)
        global total_mapped
        total_mapped += size_bytes

    def __dealloc__(self):
        global total_mapped
        if self.start != MAP_FAILED:
            total_mapped -= self.size
            munmap(self.start, <size_t> self.size)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.start, self.size, 1, flags)

    def forget(self, Py_ssize_t position, Py_ssize_t size_bytes):
        cdef Py_ssize_t page = sysconf(_SC_PAGESIZE)
        cdef Py_ssize_t first, end
        if position < 0 or size_bytes < 0 or size_bytes > self.size - position:
            raise ValueError("the range leaves the map")
        first = position // page * page
        end = position + size_bytes
        if end > first:
            with nogil:
                madvise(<char *> self.start + first, <size_t> (end - first), MADV_DONTNEED)

    def __len__(self):
        return self.size

    def __reduce__(self):
        raise TypeError("a memory map does not pickle")
