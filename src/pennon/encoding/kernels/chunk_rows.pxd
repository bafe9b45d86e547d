# cython: language_level=3
"""The buffers of mini-block chunks, and rows that are one value each, without unpacking the rest."""

from libc.stdint cimport int64_t, uint8_t

from pennon.core.kernels.long_work cimport LONG_WORK, is_long
from pennon.encoding.kernels.picked cimport (
    BAD_HEADER, BAD_LEVELS, BAD_VALUES, FINE, OTHER_ENDS, Picked, append_numbers, pick_values
)
from pennon.encoding.kernels.streams cimport STRINGS, Stream, load

cdef enum:
    # How long it takes, in nanoseconds, about.
    RANGE_STEPS = 16
    ROW_STEPS = 8
    STRING_STEPS = 64
    CHUNK_STEPS = 64
    LISTS_STEPS = 4096  # all levels of a chunk are looked at

cdef struct Recipe:
    int[3] kind      # of repetition levels, definition levels, values
    int[3] bits
    int[3] width
    bint is_large
    int top
    int visible_to


cdef inline int find_streams(
    const Recipe* recipe, const uint8_t* chunk, int64_t size, int64_t values,
    int64_t* levels, Stream* found,
) noexcept nogil:
    """Find the buffers of a chunk."""
    cdef int i, width
    cdef int64_t at = 2, offset = 2, length
    for i in range(3):
        if recipe.kind[i]:
            offset += 4 if i == 2 and recipe.is_large else 2
    if offset > size:
        return BAD_HEADER
    levels[0] = <int64_t>load(chunk, 16)
    for i in range(3):
        if not recipe.kind[i]:
            continue
        width = 32 if i == 2 and recipe.is_large else 16
        length = <int64_t>load(chunk + at, width)
        at += width // 8
        offset = (offset + 7) & ~<int64_t>7
        if offset > size or length > size - offset:
            return BAD_HEADER
        found[i].data = chunk + offset
        found[i].size = length
        found[i].count = values if i == 2 else levels[0]
        found[i].kind = recipe.kind[i]
        found[i].bits = recipe.bits[i]
        found[i].width = recipe.width[i]
        found[i].block = -1
        found[i].behind = 0
        offset += length
    return FINE


cdef struct Page:
    const uint8_t* data
    const int64_t* chunks
    const int64_t* positions
    int64_t origin  # positions count from here
    Py_ssize_t touched
    const int64_t* offsets
    const int64_t* first_values
    const int64_t* first_rows
    const int64_t* starts
    const int64_t* ends
    Py_ssize_t ranges


cdef inline int64_t steps_of(const Recipe* recipe, const Page* page) noexcept nogil:
    """Return how long it takes to pick the rows of a page, in nanoseconds, if its bytes are in memory; what is long is not looked at further."""
    cdef Py_ssize_t i
    cdef int64_t row_steps = STRING_STEPS if recipe.kind[2] == STRINGS else ROW_STEPS + recipe.bits[2] // 64
    cdef int64_t steps = page.touched * (LISTS_STEPS if recipe.top else CHUNK_STEPS)
    for i in range(page.ranges):
        if is_long(steps):
            break
        steps += RANGE_STEPS + row_steps * min(page.ends[i] - page.starts[i], <int64_t> LONG_WORK)
    return steps


cdef inline int flat_rows(const Recipe* recipe, const Page* page, Picked* out) noexcept nogil:
    """Rows that are one value each."""
    cdef Py_ssize_t i, wanted = 0
    cdef int64_t chunk, first, last, levels = 0, before, stop
    cdef Stream[3] streams
    cdef int fault
    for i in range(page.touched):
        chunk = page.chunks[i]
        before, stop = page.first_values[chunk], page.first_values[chunk + 1]
        fault = find_streams(
            recipe, page.data + (page.positions[i] - page.origin), page.offsets[chunk + 1] - page.offsets[chunk],
            stop - before, &levels, streams,
        )
        if fault:
            return fault
        if recipe.kind[1] and levels != stop - before:
            return BAD_LEVELS
        while wanted < page.ranges:
            first, last = max(page.starts[wanted], before), min(page.ends[wanted], stop)
            if first >= stop and page.ends[wanted] > page.starts[wanted]:
                break
            if recipe.kind[1] and last > first:
                fault = append_numbers(&streams[1], first - before, last - before, &out.definition)
                if fault:
                    return BAD_LEVELS if fault == BAD_VALUES else fault
            fault = pick_values(&streams[2], first - before, last - before, out)
            if fault:
                return fault
            if page.ends[wanted] > stop:
                break
            wanted += 1
    return FINE if wanted == page.ranges else OTHER_ENDS
