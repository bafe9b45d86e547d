"""Copy many byte ranges of one buffer, or of a file, back to back, into another."""

from cpython.exc cimport PyErr_SetFromErrno
from libc.errno cimport EINTR, errno
from libc.stdint cimport INT64_MAX, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cdef extern from "<unistd.h>" nogil:
    ssize_t pread(int fd, void *target, size_t size, int64_t position)

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define pennon_prefetch(address) __builtin_prefetch(address)
    #else
    #define pennon_prefetch(address) ((void)(address))
    #endif
    """
    void pennon_prefetch(const void *address) noexcept nogil

# Random ranges miss the cache; asking this many ranges ahead hides most of the wait.
cdef enum:
    AHEAD = 16

# A call costs as much as to copy some thousand bytes, so ranges that lie closer are read together.
cdef enum:
    GAP_BYTES = 4096
    WINDOW_BYTES = 65536


def total_size(const int64_t[::1] starts, const int64_t[::1] ends, int64_t limit):
    """See gather.pyi."""
    cdef Py_ssize_t count = starts.shape[0], i, bad = -1
    cdef int64_t total = 0
    if ends.shape[0] != count:
        raise ValueError("starts and ends differ in length")
    with nogil:
        for i in range(count):
            if starts[i] < 0 or ends[i] < starts[i] or ends[i] > limit:
                bad = i
                break
            if ends[i] - starts[i] > INT64_MAX - total:
                bad = i
                break
            total += ends[i] - starts[i]
    if bad >= 0:
        raise ValueError(
            f"range {starts[bad]}..{ends[bad]} does not lie within {limit} bytes"
        )
    return total


def gather(
    const uint8_t[::1] source,
    const int64_t[::1] starts,
    const int64_t[::1] ends,
    uint8_t[::1] target,
):
    """See gather.pyi."""
    cdef Py_ssize_t count = starts.shape[0], i
    cdef int64_t size
    cdef const uint8_t *base
    cdef uint8_t *out
    if total_size(starts, ends, source.shape[0]) != target.shape[0]:
        raise ValueError("the target does not have the size of the ranges")
    if target.shape[0] == 0:
        return
    base = &source[0]
    out = &target[0]
    with nogil:
        for i in range(count):
            if i + AHEAD < count:
                pennon_prefetch(base + starts[i + AHEAD])
            size = ends[i] - starts[i]
            # Constant sizes let the compiler emit one move instead of a call.
            if size == 8:
                memcpy(out, base + starts[i], 8)
            elif size == 4:
                memcpy(out, base + starts[i], 4)
            else:
                memcpy(out, base + starts[i], size)
            out += size


def gather_from_file(
    int fd,
    const int64_t[::1] starts,
    const int64_t[::1] ends,
    uint8_t[::1] target,
):
    """See gather.pyi."""
    cdef Py_ssize_t count = starts.shape[0], i, j
    cdef int64_t size, first = 0, last = 0
    cdef uint8_t *out
    cdef uint8_t *window
    cdef int failed = 0
    if total_size(starts, ends, INT64_MAX) != target.shape[0]:
        raise ValueError("the target does not have the size of the ranges")
    if target.shape[0] == 0:
        return
    out = &target[0]
    window = <uint8_t *> malloc(WINDOW_BYTES)
    if window == NULL:
        raise MemoryError
    with nogil:
        for i in range(count):
            size = ends[i] - starts[i]
            if size > WINDOW_BYTES // 4:
                failed = read_all(fd, out, size, starts[i])
            elif starts[i] < first or ends[i] > last:
                first = starts[i]
                last = ends[i]
                for j in range(i + 1, count):
                    if starts[j] < last or starts[j] - last > GAP_BYTES:
                        break
                    if ends[j] - first > WINDOW_BYTES:
                        break
                    last = ends[j]
                failed = read_all(fd, window, last - first, first)
            if failed:
                break
            if size <= WINDOW_BYTES // 4:
                memcpy(out, window + (starts[i] - first), size)
            out += size
        free(window)
    if failed > 0:
        errno = failed
        PyErr_SetFromErrno(OSError)
    if failed < 0:
        raise EOFError("the file ends before the last range")


cdef int read_all(int fd, uint8_t *target, int64_t size, int64_t position) noexcept nogil:
    """Read all bytes of a range; return 0, the system's number of an error, or -1 at the end."""
    cdef ssize_t got
    while size > 0:
        got = pread(fd, target, <size_t> size, position)
        if got == 0:
            return -1
        if got < 0:
            if errno == EINTR:
                continue
            return errno
        target += got
        position += got
        size -= got
    return 0


def scatter(
    const uint8_t[::1] source,
    const int64_t[::1] sources,
    const int64_t[::1] targets,
    const int64_t[::1] sizes,
    uint8_t[::1] target,
):
    """See gather.pyi."""
    cdef Py_ssize_t count = sources.shape[0], i, bad = -1
    cdef int64_t have = source.shape[0], room = target.shape[0]
    if targets.shape[0] != count or sizes.shape[0] != count:
        raise ValueError("sources, targets and sizes differ in length")
    with nogil:
        for i in range(count):
            if sizes[i] < 0 or sources[i] < 0 or targets[i] < 0:
                bad = i
            elif sizes[i] > have or sources[i] > have - sizes[i]:
                bad = i
            elif sizes[i] > room or targets[i] > room - sizes[i]:
                bad = i
            if bad >= 0:
                break
    if bad >= 0:
        raise ValueError(f"piece {bad} leaves the source or the target")
    if have == 0 or room == 0:
        return
    with nogil:
        for i in range(count):
            memcpy(&target[0] + targets[i], &source[0] + sources[i], sizes[i])
