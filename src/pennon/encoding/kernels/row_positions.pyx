# cython: language_level=3
"""Rows of lists in the chunks of a page: which levels and values are theirs.  See row_positions.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint16_t

import numpy as np

from pennon.errors import FormatError

cdef enum:
    FINE = 0
    OTHER_ROWS = 1
    OTHER_VALUES = 2
    OTHER_ENDS = 3
    COUNTED = 32768  # so many at once, so that the sums are as narrow as the levels


cdef int64_t _count_level(const uint16_t* levels, int64_t count, int wanted) noexcept nogil:
    """Return how many of the levels are ``wanted``."""
    cdef int64_t total = 0, at = 0, stop, i
    cdef uint16_t found
    while at < count:
        found = 0
        stop = min(at + COUNTED, count)
        for i in range(at, stop):
            found += levels[i] == wanted
        total += found
        at = stop
    return total


cdef int64_t _count_up_to(const uint16_t* levels, int64_t count, int highest) noexcept nogil:
    """Return how many of the levels are at most ``highest``."""
    cdef int64_t total = 0, at = 0, stop, i
    cdef uint16_t found
    while at < count:
        found = 0
        stop = min(at + COUNTED, count)
        for i in range(at, stop):
            found += levels[i] <= highest
        total += found
        at = stop
    return total


cdef int _place(
    const uint16_t* rep, const uint16_t* definition, int top, int visible_to,
    const int64_t[::1] level_counts, const int64_t[::1] value_counts,
    const int64_t[::1] first_rows, const int64_t[::1] last_rows, const uint8_t[::1] follows,
    const int64_t[::1] starts, const int64_t[::1] ends,
    int64_t[:, ::1] places,
) noexcept nogil:
    cdef Py_ssize_t chunk, wanted = 0, count = starts.shape[0]
    cdef int64_t level = 0, stop, value = 0, before, row = 0, begin, next_row
    cdef bint inside = False
    for chunk in range(level_counts.shape[0]):
        if not follows[chunk]:
            if inside:
                if row != ends[wanted]:
                    return OTHER_ENDS
                places[1, wanted] = level
                places[3, wanted] = value
                wanted += 1
                inside = False
            row = first_rows[chunk]
        elif row != first_rows[chunk]:
            return OTHER_ROWS
        before = value
        stop = level + level_counts[chunk]
        begin = _count_level(rep + level, level_counts[chunk], top)
        next_row = -1 if wanted == count else ends[wanted] if inside else starts[wanted]
        if next_row < row or next_row >= row + begin:
            # No range begins or ends here, so nothing is wanted but the numbers.
            value += (
                level_counts[chunk] if definition == NULL
                else _count_up_to(definition + level, level_counts[chunk], visible_to)
            )
            row += begin
            level = stop
        while level < stop:
            if rep[level] == top:
                if inside and row == ends[wanted]:
                    places[1, wanted] = level
                    places[3, wanted] = value
                    wanted += 1
                    inside = False
                if not inside and wanted < count and row == starts[wanted]:
                    places[0, wanted] = level
                    places[2, wanted] = value
                    inside = True
                row += 1
            if definition == NULL or definition[level] <= visible_to:
                value += 1
            level += 1
        if row != last_rows[chunk]:
            return OTHER_ROWS
        if value - before != value_counts[chunk]:
            return OTHER_VALUES
    if inside:
        if row != ends[wanted]:
            return OTHER_ENDS
        places[1, wanted] = level
        places[3, wanted] = value
        wanted += 1
    return FINE if wanted == count else OTHER_ENDS


def place_rows(
    const uint16_t[::1] rep, definition, int top, int visible_to,
    const int64_t[::1] level_counts, const int64_t[::1] value_counts,
    const int64_t[::1] first_rows, const int64_t[::1] last_rows, const uint8_t[::1] follows,
    const int64_t[::1] starts, const int64_t[::1] ends,
):
    """See row_positions.pyi."""
    cdef Py_ssize_t chunks = level_counts.shape[0], i
    cdef int64_t total = 0
    cdef int fault
    cdef const uint16_t[::1] levels
    cdef const uint16_t* level_data = NULL
    cdef uint16_t none = 0
    cdef const uint16_t* rep_data = &rep[0] if rep.shape[0] else &none
    if not (
        value_counts.shape[0] == first_rows.shape[0] == last_rows.shape[0] == follows.shape[0]
        == chunks
    ) or starts.shape[0] != ends.shape[0]:
        raise ValueError("tables of chunks or rows differ in length")
    for i in range(chunks):
        if level_counts[i] < 0:
            raise ValueError("negative counts")
        total += level_counts[i]
    if total != rep.shape[0]:
        raise FormatError(f"{rep.shape[0]} levels in chunks of {total}")
    if definition is not None:
        levels = definition
        if levels.shape[0] != rep.shape[0]:
            raise FormatError(
                f"{rep.shape[0]} repetition levels, but {levels.shape[0]} definition levels"
            )
        level_data = &levels[0] if levels.shape[0] else &none
    places = np.zeros((4, max(starts.shape[0], 1)), np.int64)
    cdef int64_t[:, ::1] view = places
    with nogil:
        fault = _place(
            rep_data, level_data, top, visible_to, level_counts, value_counts, first_rows,
            last_rows, follows, starts, ends, view,
        )
    if fault == OTHER_ROWS:
        raise FormatError("chunks in which other rows begin than the row index says")
    if fault == OTHER_VALUES:
        raise FormatError("chunks whose levels stand for more or fewer values than they have")
    if fault == OTHER_ENDS:
        raise FormatError("rows that do not end where the row index says")
    found = places[:, : starts.shape[0]]
    return found[0], found[1], found[2], found[3]
