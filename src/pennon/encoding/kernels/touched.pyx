# cython: language_level=3
"""Which chunks of mini-block pages hold some rows.  See touched.pyi."""

from libc.stdint cimport int64_t, uint8_t

import numpy as np


cdef class ChunkTable:
    """See touched.pyi."""

    def __init__(
        self, int64_t position, const int64_t[::1] offsets, const int64_t[::1] first_values,
        const int64_t[::1] first_rows, const uint8_t[::1] goes_on,
    ):
        self.count = goes_on.shape[0]
        if self.count < 1 or position < 0 or not (
            offsets.shape[0] == first_values.shape[0] == first_rows.shape[0] == self.count + 1
        ):
            raise ValueError("tables of chunks differ in length")
        self.arrays = (offsets, first_values, first_rows, goes_on)
        self.position = position
        self.offsets, self.first_values = &offsets[0], &first_values[0]
        self.first_rows, self.goes_on = &first_rows[0], &goes_on[0]


cdef Py_ssize_t _last_up_to(
    const int64_t* first, Py_ssize_t low, Py_ssize_t high, int64_t row
) noexcept nogil:
    """Return the last place of [low, high) with a number up to ``row``; that at ``low`` is one."""
    cdef Py_ssize_t middle
    while high - low > 1:
        middle = (low + high) // 2
        if first[middle] <= row:
            low = middle
        else:
            high = middle
    return low


def cut_rows(
    const int64_t[::1] borders, const int64_t[::1] starts, const int64_t[::1] ends
):
    """See touched.pyi."""
    cdef Py_ssize_t pages = borders.shape[0] - 1, ranges = starts.shape[0], i, page = 0
    cdef Py_ssize_t found = 0, cut = 0
    cdef int64_t before = 0, start, end, stop
    if pages < 1 or borders[0] != 0 or ends.shape[0] != ranges:
        raise ValueError("no borders, or starts and ends differ in length")
    for i in range(ranges):
        if starts[i] < before or ends[i] < starts[i]:
            raise ValueError("the rows are not sorted and disjoint")
        before = ends[i]
    if before > borders[pages]:
        raise ValueError("rows behind the last border")
    numbers = np.empty((2, min(ranges, pages) + pages + 1), np.int64)
    pieces = np.empty((2, ranges + pages), np.int64)
    cdef int64_t[:, ::1] number = numbers
    cdef int64_t[:, ::1] piece = pieces
    for i in range(ranges):
        start, end = starts[i], ends[i]
        while start < end:
            if start >= borders[page + 1]:
                page = _last_up_to(&borders[0], page + 1, pages, start)
            stop = min(end, borders[page + 1])
            if found == 0 or number[0, found - 1] != page:
                number[0, found], number[1, found] = page, cut
                found += 1
            piece[0, cut], piece[1, cut] = start - borders[page], stop - borders[page]
            cut += 1
            start = stop
    number[1, found] = cut
    return numbers[0, :found], numbers[1, : found + 1], pieces[0, :cut], pieces[1, :cut]


cdef class _Pieces:
    """Tables that grow."""

    cdef object places  # (4, room): page, chunk, position in the packed bytes, position in the file
    cdef object runs    # (2, room): start, end
    cdef int64_t[:, ::1] place
    cdef int64_t[:, ::1] run
    cdef Py_ssize_t found
    cdef Py_ssize_t run_count
    cdef int64_t filled

    def __cinit__(self, Py_ssize_t most):
        self.places, self.runs = np.empty((4, most), np.int64), np.empty((2, most), np.int64)
        self.place, self.run = self.places, self.runs
        self.found = self.run_count = self.filled = 0

    cdef int grow(self) except -1:
        cdef Py_ssize_t most = 2 * self.found + 64
        places, runs = np.empty((4, most), np.int64), np.empty((2, most), np.int64)
        places[:, : self.found] = self.places[:, : self.found]
        runs[:, : self.run_count] = self.runs[:, : self.run_count]
        self.places, self.runs = places, runs
        self.place, self.run = places, runs
        return 0

    cdef int add(self, Py_ssize_t page, Py_ssize_t chunk, ChunkTable table) except -1:
        cdef int64_t start = table.position + table.offsets[chunk]
        cdef int64_t end = table.position + table.offsets[chunk + 1]
        if self.found == self.place.shape[1]:
            self.grow()
        if self.run_count == 0 or start != self.run[1, self.run_count - 1]:
            self.run[0, self.run_count] = start
            self.run_count += 1
        self.run[1, self.run_count - 1] = end
        self.place[0, self.found] = page
        self.place[1, self.found] = chunk
        self.place[2, self.found] = self.filled
        self.place[3, self.found] = start
        self.filled += end - start
        self.found += 1
        return 0


def find_pieces(
    list tables, const int64_t[::1] cuts, const int64_t[::1] starts, const int64_t[::1] ends
):
    """See touched.pyi."""
    cdef Py_ssize_t page, i, pages = len(tables), ranges = starts.shape[0], at, low, high
    cdef Py_ssize_t last
    cdef ChunkTable table
    if ends.shape[0] != ranges or cuts.shape[0] != pages + 1 or cuts[0] != 0 or cuts[pages] != ranges:
        raise ValueError("starts, ends and pages differ in length")
    cdef _Pieces out = _Pieces(ranges + pages + 8)
    for page in range(pages):
        table = tables[page]
        at, last = 0, -1
        if cuts[page + 1] < cuts[page]:
            raise ValueError("the pages' ranges fall")
        for i in range(cuts[page], cuts[page + 1]):
            if starts[i] < 0 or ends[i] < starts[i] or ends[i] > table.first_rows[table.count]:
                raise ValueError("rows outside the page")
            if ends[i] == starts[i]:
                continue
            low = _last_up_to(table.first_rows, at, table.count, starts[i])
            if ends[i] >= table.first_rows[table.count]:
                high = table.count - 1
            else:
                high = _last_up_to(table.first_rows, low, table.count, ends[i])
                if table.first_rows[high] == ends[i] and not table.goes_on[high]:
                    high -= 1
            at = low
            if low <= last:
                low = last + 1
            while low <= high:
                out.add(page, low, table)
                last = low
                low += 1
    cdef bint rise = True
    for i in range(1, out.run_count):
        if out.run[0, i] < out.run[1, i - 1]:
            rise = False
    places = out.places[:, : out.found]
    runs = out.runs[:, : out.run_count]
    return tuple(places), runs[0], runs[1], rise, int(out.filled)
