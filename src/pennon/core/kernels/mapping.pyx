"""A read-only memory map that does not keep its file descriptor."""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.exc cimport PyErr_SetFromErrno
from libc.stdint cimport uintptr_t
from libc.stdlib cimport realloc
from libc.string cimport memmove

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


cdef struct Span:
    uintptr_t start
    uintptr_t end


# The maps that are there, sorted by address.  No two overlap.
cdef Span *spans = NULL
cdef Py_ssize_t span_count = 0
cdef Py_ssize_t span_room = 0


cdef Py_ssize_t spans_up_to(uintptr_t address) noexcept:
    """Return how many maps start at or before an address."""
    cdef Py_ssize_t low = 0, high = span_count, middle
    while low < high:
        middle = (low + high) // 2
        if spans[middle].start <= address:
            low = middle + 1
        else:
            high = middle
    return low


cdef bint is_mapped(const void *address) noexcept:
    """Return whether an address lies in a map of this process; needs the GIL."""
    cdef uintptr_t at = <uintptr_t> address
    cdef Py_ssize_t place = spans_up_to(at)
    return place > 0 and at < spans[place - 1].end


cdef int add_span(uintptr_t start, Py_ssize_t size) except -1:
    global spans, span_count, span_room
    cdef Py_ssize_t place = spans_up_to(start), room
    cdef Span *grown
    if span_count == span_room:
        room = max(2 * span_room, 64)
        grown = <Span *> realloc(spans, room * sizeof(Span))
        if grown == NULL:
            raise MemoryError
        spans, span_room = grown, room
    memmove(spans + place + 1, spans + place, (span_count - place) * sizeof(Span))
    spans[place].start = start
    spans[place].end = start + <uintptr_t> size
    span_count += 1
    return 0


cdef void drop_span(uintptr_t start) noexcept:
    global span_count
    cdef Py_ssize_t place = spans_up_to(start) - 1
    if place >= 0 and spans[place].start == start:
        memmove(spans + place, spans + place + 1, (span_count - place - 1) * sizeof(Span))
        span_count -= 1


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
        try:
            add_span(<uintptr_t> self.start, size_bytes)
        except MemoryError:
            munmap(self.start, <size_t> size_bytes)
            self.start = MAP_FAILED
            raise
        global total_mapped
        total_mapped += size_bytes

    def __dealloc__(self):
        global total_mapped
        if self.start != MAP_FAILED:
            total_mapped -= self.size
            drop_span(<uintptr_t> self.start)
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
