# cython: language_level=3
"""Which chunks of mini-block pages hold some rows.  See chunk_lookup.pyi."""

from libc.stdint cimport int64_t, uint8_t

import numpy as np


cdef class ChunkTable:
    """See chunk_lookup.pyi."""

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

    @property
    def place(self):
        """See chunk_lookup.pyi."""
        return self.position

    @property
    def size_bytes(self):
        """See chunk_lookup.pyi."""
        return 32 * (self.count + 1)

    @property
    def row_bytes(self):
        """See chunk_lookup.pyi."""
        return self.offsets[self.count] // max(self.first_rows[self.count], 1)


def flat_table(int64_t position, numbers):
    """See chunk_lookup.pyi."""
    cdef const int64_t[:, ::1] held = numbers
    cdef ChunkTable table = ChunkTable.__new__(ChunkTable)
    table.count = held.shape[1] - 1
    if table.count < 1 or position < 0 or held.shape[0] != 4:
        raise ValueError("no table of chunks")
    table.arrays = numbers
    table.position = position
    table.offsets = &held[0, 0]
    table.first_values = table.first_rows = &held[1, 0]
    table.goes_on = <const uint8_t*> &held[3, 0]
    return table


cdef Py_ssize_t _last_up_to(
    const int64_t* first, Py_ssize_t low, Py_ssize_t high, int64_t row
) noexcept nogil:
    """Return the last place of [low, high) with a number up to ``row``; that at ``low`` is one."""
    cdef Py_ssize_t middle, step = 1
    while high - low > step and first[low + step] <= row:  # it is mostly near
        low += step
        step *= 2
    high = min(high, low + step)
    while high - low > 1:
        middle = (low + high) // 2
        if first[middle] <= row:
            low = middle
        else:
            high = middle
    return low


def cut_rows(
    list borders, const int64_t[::1] file_cuts, const int64_t[::1] starts,
    const int64_t[::1] ends,
):
    """See chunk_lookup.pyi."""
    cdef Py_ssize_t files = len(borders), ranges = starts.shape[0], file, i, page, pages
    cdef Py_ssize_t found = 0, cut = 0, all_pages = 0
    cdef int64_t before, start, end, stop
    cdef const int64_t[::1] border
    if file_cuts.shape[0] != files + 1 or ends.shape[0] != ranges:
        raise ValueError("files, or starts and ends, differ in length")
    if file_cuts[0] != 0 or file_cuts[files] != ranges:
        raise ValueError("the files' ranges are not all ranges")
    for file in range(files):
        all_pages += len(borders[file])
    numbers = np.empty((3, min(ranges, all_pages) + all_pages + 1), np.int64)
    pieces = np.empty((2, ranges + all_pages), np.int64)
    cdef int64_t[:, ::1] number = numbers
    cdef int64_t[:, ::1] piece = pieces
    for file in range(files):
        border = borders[file]
        pages, page, before = border.shape[0] - 1, 0, 0
        if pages < 1 or border[0] != 0 or file_cuts[file + 1] < file_cuts[file]:
            raise ValueError("no borders, or ranges that fall")
        for i in range(file_cuts[file], file_cuts[file + 1]):
            if starts[i] < before or ends[i] < starts[i]:
                raise ValueError("the rows are not sorted and disjoint")
            before = ends[i]
        if before > border[pages]:
            raise ValueError("rows behind the last border")
        stop = -1  # no page of this file is begun
        for i in range(file_cuts[file], file_cuts[file + 1]):
            start, end = starts[i], ends[i]
            while start < end:
                if stop < 0 or start >= border[page + 1]:
                    page = _last_up_to(&border[0], page, pages, start)
                    number[0, found], number[1, found], number[2, found] = file, page, cut
                    found += 1
                stop = min(end, border[page + 1])
                piece[0, cut], piece[1, cut] = start - border[page], stop - border[page]
                cut += 1
                start = stop
    number[2, found] = cut
    return (
        numbers[0, :found], numbers[1, :found], numbers[2, : found + 1], pieces[0, :cut],
        pieces[1, :cut],
    )


cdef class _Pieces:
    """Tables that grow."""

    cdef object table   # (6, room): page, chunk, position in the packed bytes, position in the file;
    cdef int64_t[:, ::1] rows   # and start, end of each range to read
    cdef Py_ssize_t most
    cdef Py_ssize_t found
    cdef Py_ssize_t run_count
    cdef int64_t filled

    def __cinit__(self, Py_ssize_t most):
        self.table = np.empty((6, most), np.int64)
        self.rows = self.table
        self.most = most
        self.found = self.run_count = self.filled = 0

    cdef int grow(self) except -1:
        cdef Py_ssize_t most = 2 * self.found + 64
        table = np.empty((6, most), np.int64)
        table[:, : self.found] = self.table[:, : self.found]
        self.table = table
        self.rows = table
        self.most = most
        return 0

    cdef int add(
        self, Py_ssize_t page, Py_ssize_t chunk, ChunkTable table, bint is_new_file
    ) except -1:
        cdef int64_t start = table.position + table.offsets[chunk]
        cdef int64_t end = table.position + table.offsets[chunk + 1]
        if self.found == self.most:
            self.grow()
        if self.run_count == 0 or is_new_file or start != self.rows[5, self.run_count - 1]:
            self.rows[4, self.run_count] = start
            self.run_count += 1
        self.rows[5, self.run_count - 1] = end
        self.rows[0, self.found] = page
        self.rows[1, self.found] = chunk
        self.rows[2, self.found] = self.filled
        self.rows[3, self.found] = start
        self.filled += end - start
        self.found += 1
        return 0


def find_pieces(
    list tables, const int64_t[::1] files, const int64_t[::1] cuts, const int64_t[::1] starts,
    const int64_t[::1] ends,
):
    """See chunk_lookup.pyi."""
    cdef Py_ssize_t page, i, pages = len(tables), ranges = starts.shape[0], at, low, high
    cdef Py_ssize_t last
    cdef int64_t file = -1
    cdef bint is_new = True, rise = True
    cdef ChunkTable table
    if ends.shape[0] != ranges or files.shape[0] != pages or cuts.shape[0] != pages + 1:
        raise ValueError("starts, ends and pages differ in length")
    if cuts[0] != 0 or cuts[pages] != ranges:
        raise ValueError("the pages' ranges are not all ranges")
    cdef _Pieces out = _Pieces(ranges + pages + 8)
    run_cuts = []
    for page in range(pages):
        table = tables[page]
        at, last = 0, -1
        if cuts[page + 1] < cuts[page] or files[page] < file:
            raise ValueError("the pages' ranges or files fall")
        while file < files[page]:
            run_cuts.append(out.run_count)
            file += 1
            is_new = True
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
                out.add(page, low, table, is_new)
                is_new = False
                last = low
                low += 1
    run_cuts.append(out.run_count)
    for page in range(len(run_cuts) - 1):
        for i in range(run_cuts[page] + 1, run_cuts[page + 1]):
            if out.rows[4, i] < out.rows[5, i - 1]:
                rise = False
    page_of, chunk_of, packed, placed, lows, highs = out.table
    places = page_of[: out.found], chunk_of[: out.found], packed[: out.found], placed[: out.found]
    runs = out.run_count
    return places, lows[:runs], highs[:runs], run_cuts, rise, int(out.filled)
