# cython: language_level=3
"""Runs: values, and how often each of them comes."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pennon.encoding.kernels.numbers cimport number_at

cdef enum:
    HEADER = 8  # bytes of the size of the values, in front of runs in one buffer
    SHORT = 16  # most runs have no more values than this

ctypedef fused RunWord:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef struct Runs:
    const uint8_t* values
    const uint8_t* lengths
    int64_t count


cdef inline bint find_runs(
    const uint8_t* data, int64_t size, int value_width, int length_width, Runs* found
) noexcept nogil:
    """Find the runs of one buffer: size of the values, values, lengths; tell whether they are there."""
    cdef uint64_t values
    if size < HEADER:
        return False
    values = number_at(data, HEADER)
    if values > <uint64_t>(size - HEADER):
        return False
    found.count = <int64_t>values // value_width
    found.values = data + HEADER
    found.lengths = found.values + values
    return (
        found.count * value_width == <int64_t>values
        and found.count * length_width == size - HEADER - <int64_t>values
    )


cdef inline bint hold(const Runs* runs, int length_width, int64_t count) noexcept nogil:
    """Return whether the lengths of all runs add up to ``count`` values or more."""
    cdef int64_t run, held = 0
    if length_width == 1:  # many at once
        for run in range(runs.count):
            held += runs.lengths[run]
    else:
        for run in range(runs.count):
            held += <int64_t>number_at(runs.lengths + run * length_width, length_width)
    return held >= count


cdef struct Place:
    # A place in runs of levels.
    const Runs* runs
    int length_width
    int64_t run    # the one at hand; -1: none yet
    int64_t left   # how many of its levels are still to come
    uint16_t level


cdef inline void go_to_level(Place* at) noexcept nogil:
    """Go to a run that has levels left; one of those behind does, or this one."""
    while at.left == 0:
        at.run += 1
        at.left = <int64_t>number_at(at.runs.lengths + at.run * at.length_width, at.length_width)
        memcpy(&at.level, at.runs.values + 2 * at.run, 2)


cdef inline void copy_levels(Place at, int64_t count, uint16_t* target) noexcept nogil:
    """Write the next ``count`` levels, which the runs have."""
    cdef int64_t size, i
    while count:
        go_to_level(&at)
        size = min(at.left, count)
        for i in range(size):
            target[i] = at.level
        target += size
        count -= size
        at.left -= size


cdef inline bint expand(
    const Runs* runs, int length_width, RunWord* target, int64_t count
) noexcept nogil:
    """Write ``count`` values; tell whether the runs hold as many.  What they hold beyond is ignored."""
    cdef int64_t run, size, i
    cdef RunWord value
    for run in range(runs.count):
        size = <int64_t>number_at(runs.lengths + run * length_width, length_width)
        memcpy(&value, runs.values + run * sizeof(RunWord), sizeof(RunWord))
        if count >= SHORT:  # no loop whose end is as random as the data; what is too much is overwritten
            for i in range(SHORT):
                target[i] = value
        if size > count:
            size = count
        if size > SHORT or count < SHORT:
            for i in range(size):
                target[i] = value
        target += size
        count -= size
        if count == 0:
            return True
    return count == 0
