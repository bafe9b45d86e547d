"""A read-only memory map that does not keep its file descriptor."""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AsStringAndSize
from cpython.exc cimport PyErr_SetFromErrno
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memmove
from posix.fcntl cimport O_NONBLOCK, O_RDONLY, open as open_file
from posix.stat cimport S_ISREG, fstat, struct_stat
from posix.unistd cimport close

cdef extern from "<sys/mman.h>" nogil:
    void *mmap(void *start, size_t size, int protection, int flags, int fd, long offset)
    int munmap(void *start, size_t size)
    int madvise(void *start, size_t size, int advice)
    int MADV_DONTNEED
    int PROT_READ
    int MAP_SHARED
    void *MAP_FAILED

cdef extern from *:
    """
    #include <fcntl.h>
    #ifdef __APPLE__
    #define PENNON_CHANGED(status) ((status).st_ctimespec)
    #define PENNON_MODIFIED(status) ((status).st_mtimespec)
    #else
    #define PENNON_CHANGED(status) ((status).st_ctim)
    #define PENNON_MODIFIED(status) ((status).st_mtim)
    #endif
    static int64_t pennon_nanoseconds(struct timespec time) {
        return (int64_t) time.tv_sec * 1000000000 + time.tv_nsec;
    }
    static int64_t pennon_changed(const struct stat *status) {
        return pennon_nanoseconds(PENNON_CHANGED(*status));
    }
    static int64_t pennon_modified(const struct stat *status) {
        return pennon_nanoseconds(PENNON_MODIFIED(*status));
    }
    """
    int O_CLOEXEC
    int64_t pennon_changed(const struct_stat *status) nogil
    int64_t pennon_modified(const struct_stat *status) nogil

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

    def __cinit__(self, *_, **__):
        self.start = MAP_FAILED

    def __init__(self, int fd, Py_ssize_t size_bytes):
        cdef void *start
        if size_bytes <= 0:
            raise ValueError("only a file that has bytes can be mapped")
        if self.start != MAP_FAILED:
            raise ValueError("this maps a file already")
        with nogil:
            start = mmap(NULL, <size_t> size_bytes, PROT_READ, MAP_SHARED, fd, 0)
        if start == MAP_FAILED:
            PyErr_SetFromErrno(OSError)
        self.take(start, size_bytes)

    cdef int take(self, void *start, Py_ssize_t size_bytes) except -1:
        """Take over a map that was made."""
        global total_mapped
        try:
            add_span(<uintptr_t> start, size_bytes)
        except MemoryError:
            munmap(start, <size_t> size_bytes)
            raise
        self.start, self.size = start, size_bytes
        total_mapped += size_bytes
        return 0

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


cdef struct Opened:
    void *start
    int64_t size
    int64_t device
    int64_t inode
    int64_t modified
    int64_t changed


cdef void map_file(const char *path, Opened *out) noexcept nogil:
    """Map a file; ``out.start`` is MAP_FAILED if it cannot be, or has no bytes."""
    cdef struct_stat status
    cdef int fd = open_file(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    out.start = MAP_FAILED
    if fd < 0:
        return
    if fstat(fd, &status) == 0 and S_ISREG(status.st_mode) and status.st_size > 0:
        out.size, out.device, out.inode = status.st_size, <int64_t> status.st_dev, <int64_t> status.st_ino
        out.modified, out.changed = pennon_modified(&status), pennon_changed(&status)
        out.start = mmap(NULL, <size_t> status.st_size, PROT_READ, MAP_SHARED, fd, 0)
    close(fd)


def map_files(list paths):
    """See mapping.pyi."""
    cdef Py_ssize_t i, taken = 0, count = len(paths)
    cdef list held = list(paths), found = []
    cdef const char **names = NULL
    cdef Opened *files = NULL
    cdef Mapping mapping
    try:
        names = <const char **> calloc(count + 1, sizeof(char *))
        files = <Opened *> calloc(count + 1, sizeof(Opened))
        if names == NULL or files == NULL:
            raise MemoryError
        for i in range(count):
            files[i].start = MAP_FAILED
            PyBytes_AsStringAndSize(held[i], <char **> &names[i], NULL)  # raises if it holds a zero byte
        with nogil:
            for i in range(count):
                map_file(names[i], &files[i])
        for i in range(count):
            if files[i].start == MAP_FAILED:
                found.append(None)
                taken = i + 1
                continue
            mapping = Mapping.__new__(Mapping)
            taken = i + 1  # what cannot be taken over is given back by this, too
            mapping.take(files[i].start, files[i].size)
            told = files[i].size, files[i].modified, files[i].changed
            found.append((mapping, files[i].device, files[i].inode, told))
    finally:
        if files != NULL:
            for i in range(taken, count):
                if files[i].start != NULL and files[i].start != MAP_FAILED:
                    munmap(files[i].start, <size_t> files[i].size)
        free(names)
        free(files)
    return found
