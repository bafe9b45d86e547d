"""Chunks of work, of which each thread takes the next one; see the stub."""

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static int64_t take_number(int64_t *next) { return _InterlockedExchangeAdd64(next, 1); }
    #else
    static int64_t take_number(int64_t *next) { return __atomic_fetch_add(next, 1, __ATOMIC_RELAXED); }
    #endif
    """
    int64_t take_number(int64_t *next) noexcept nogil


cdef class WorkChunks:
    """Ranges of numbers; see the stub."""

    def __cinit__(self, const int64_t[::1] borders not None):
        """Take where ranges begin and end.  Raises ValueError for some that do not rise."""
        cdef int64_t at, before = 0
        for at in range(borders.shape[0]):
            if borders[at] < before:
                raise ValueError("chunks of work begin where others end")
            before = borders[at]
        self.borders, self.taken = borders, 0

    cdef bint take(self, int64_t *start, int64_t *end) noexcept nogil:
        """Take the next range; return whether there is one."""
        cdef int64_t number
        if self.taken >= self.borders.shape[0]:  # and never goes far beyond
            return False
        number = take_number(&self.taken)
        if number >= self.borders.shape[0] - 1:
            return False
        start[0], end[0] = self.borders[number], self.borders[number + 1]
        return True

    cdef int64_t last(self) noexcept nogil:
        """Return where the last range ends."""
        return self.borders[self.borders.shape[0] - 1] if self.borders.shape[0] else 0

    def __iter__(self):
        return self

    def __next__(self):
        cdef int64_t start, end
        if not self.take(&start, &end):
            raise StopIteration
        return start, end
