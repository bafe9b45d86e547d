"""Which work is long enough that a kernel lets go of the interpreter's lock for it.

To let go while other threads wait for the lock costs the time of about ten thousand steps: the system wakes one of them, on
another processor.  Work of less than some times that is done sooner with the lock held, by all threads together.
"""

from libc.stdint cimport int64_t

cdef enum:
    LONG_WORK = 50000  # steps


cdef inline bint is_long(int64_t steps) noexcept nogil:
    """Return whether a kernel releases the interpreter's lock for so many steps; a step takes about a nanosecond."""
    return steps >= LONG_WORK
