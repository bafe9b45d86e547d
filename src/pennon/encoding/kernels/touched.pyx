# cython: language_level=3
"""Which chunks of a mini-block page hold some rows.  See touched.pyi."""

from libc.stdint cimport int64_t, uint8_t

import numpy as np


cdef Py_ssize_t _last_up_to(const int64_t* first, Py_ssize_t low, Py_ssize_t high, int64_t row) noexcept nogil:
    """Return the last place of [low, high) with a number up to ``row``; that at ``low`` is one."""
    cdef Py_ssize_t middle
    while high - low > 1:
        middle = (low + high) // 2
        if first[middle] <= row:
            low = middle
        else:
            high = middle
    return low


def find_chunks(
    const int64_t[::1] first_rows, const uint8_t[::1] goes_on, const int64_t[::1] offsets,
    const int64_t[::1] starts, const int64_t[::1] ends,
):
    """See touched.pyi."""
    cdef Py_ssize_t count = goes_on.shape[0], ranges = starts.shape[0], i, at = 0, low, high
    cdef Py_ssize_t found = 0, runs = 0, last = -1, most
    cdef int64_t filled = 0
    if count < 1 or first_rows.shape[0] != count + 1 or offsets.shape[0] != count + 1:
        raise ValueError("tables of chunks differ in length")
    if ends.shape[0] != ranges:
        raise ValueError("starts and ends differ in length")
    most = 0
    for i in range(ranges):
        if starts[i] < 0 or ends[i] < starts[i] or ends[i] > first_rows[count]:
            raise ValueError("rows outside the page")
        most += min(ends[i] - starts[i], count) + 1
    # A row may go on through many chunks, so the rows do not bound the chunks.
    most = count if ranges > 1 or most > 2 else min(count, 64)
    table = np.empty((4, most), np.int64)
    cdef int64_t[:, ::1] out = table
    for i in range(ranges):
        if ends[i] == starts[i]:
            continue
        low = _last_up_to(&first_rows[0], at, count, starts[i])
        if ends[i] >= first_rows[count]:
            high = count - 1
        else:
            high = _last_up_to(&first_rows[0], low, count, ends[i])
            if first_rows[high] == ends[i] and not goes_on[high]:
                high -= 1
        at = low
        if low <= last:
            low = last + 1
        while low <= high:
            if found == most:
                most = count
                larger = np.empty((4, most), np.int64)
                larger[:, :found] = table[:, :found]
                table = larger
                out = table
            if runs == 0 or low != last + 1:
                out[2, runs] = offsets[low]
                runs += 1
            out[3, runs - 1] = offsets[low + 1]
            out[0, found] = low
            out[1, found] = filled
            filled += offsets[low + 1] - offsets[low]
            found += 1
            last = low
            low += 1
    return table[0, :found], table[1, :found], table[2, :runs], table[3, :runs]
