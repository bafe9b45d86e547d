# cython: language_level=3
"""Rows of fields of any width, taken apart.  See packed_rows.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from pennon.encoding.kernels.numbers cimport number_at
from pennon.errors import FormatError

cdef enum:
    MOST_ZEROS = 1 << 28


cdef Py_ssize_t _measure(
    const uint8_t* data, const int64_t[::1] offsets, const int64_t[::1] widths,
    int64_t[:, ::1] starts, int64_t[:, ::1] ends,
) noexcept nogil:
    """Find where each field of each row lies; return the number of the first bad row, or -1."""
    cdef Py_ssize_t row, field, fields = widths.shape[0]
    cdef int64_t at, end, width
    cdef uint64_t size
    for row in range(offsets.shape[0] - 1):
        at, end = offsets[row], offsets[row + 1]
        if at == end:
            for field in range(fields):
                starts[field, row] = at
                ends[field, row] = at
            continue
        for field in range(fields):
            width = widths[field]
            if width < 0:
                if -width > end - at:
                    return row
                size = number_at(data + at, -width)
                at -= width
            else:
                size = width
            if size > <uint64_t>(end - at):
                return row
            starts[field, row] = at
            at += <int64_t>size
            ends[field, row] = at
        if at != end:
            return row
    return -1


def split_rows(
    const uint8_t[::1] data, const int64_t[::1] offsets, const int64_t[::1] widths
):
    """See packed_rows.pyi."""
    cdef Py_ssize_t rows = offsets.shape[0] - 1, fields = widths.shape[0], row, field, bad
    cdef int64_t total, size, width
    cdef uint8_t none = 0
    cdef const uint8_t* source = &data[0] if data.shape[0] else &none
    cdef int64_t[::1] ends
    cdef uint8_t[::1] out
    if rows < 0 or fields == 0:
        raise FormatError("packed rows without fields")
    for field in range(fields):
        if widths[field] not in (-1, -2, -4, -8) and not 0 < widths[field] < 1 << 32:
            raise ValueError("no such widths of fields")
    if offsets[0] < 0 or offsets[rows] > data.shape[0]:
        raise FormatError("packed rows leave their buffer")
    for field in range(fields):
        # Rows without bytes get zeros, which must not be a way to ask for any amount of memory.
        if rows and widths[field] > (64 * data.shape[0] + MOST_ZEROS) // rows:
            raise FormatError(f"{rows} packed rows with a field of {widths[field]} bytes")
    for row in range(rows):
        if offsets[row + 1] < offsets[row]:
            raise FormatError("the offsets of packed rows fall")
    found_starts = np.zeros((fields, max(rows, 1)), np.int64)
    found_ends = np.zeros((fields, max(rows, 1)), np.int64)
    cdef int64_t[:, ::1] first = found_starts
    cdef int64_t[:, ::1] last = found_ends
    with nogil:
        bad = _measure(source, offsets, widths, first, last)
    if bad >= 0:
        raise FormatError(f"packed row {bad} is not just its fields")
    columns = []
    for field in range(fields):
        width = widths[field]
        field_ends = np.zeros(rows + 1, np.int64)
        ends = field_ends
        total = 0
        for row in range(rows):
            total += width if width > 0 else last[field, row] - first[field, row]
            ends[row + 1] = total
        values = np.zeros(total, np.uint8)
        if total:
            out = values
            with nogil:
                for row in range(rows):
                    size = last[field, row] - first[field, row]
                    if size:
                        memcpy(&out[ends[row]], source + first[field, row], size)
        columns.append((field_ends, values))
    return columns
