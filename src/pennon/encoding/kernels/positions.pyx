"""Positions that rise within a page, to Arrow offsets and validity."""

from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint8_t

import numpy as np

from pennon.errors import FormatError

ctypedef fused Stored:
    int32_t
    int64_t

ctypedef fused Offset:
    int32_t
    int64_t

# What a walk found wrong; 0 is nothing.
cdef enum Fault:
    FALLS = 1
    BEYOND = 2
    OVERFLOWS = 3


cdef bint _run(
    const Stored *stored, int64_t rows, Offset *offsets, int64_t shift
) noexcept nogil:
    """Write the ends of a run of rows; tell whether no position falls."""
    cdef int64_t i
    cdef bint falls = 0
    for i in range(rows):
        falls |= stored[i + 1] < stored[i]
        offsets[i] = <Offset>(stored[i + 1] + shift)
    return not falls


cdef int64_t _mark(
    const Stored *stored, int64_t rows, uint8_t *validity, int64_t first_row
) noexcept nogil:
    """Clear the bits of empty rows; return how many there are."""
    cdef int64_t i, row, found = 0
    for i in range(rows):
        if stored[i + 1] == stored[i]:
            row = first_row + i
            validity[row >> 3] &= ~(1 << (row & 7))
            found += 1
    return found


cdef int _walk(
    const Stored *stored, const int64_t[::1] counts, const int64_t[::1] pages,
    const int64_t[::1] limits, Offset *offsets, int64_t most, uint8_t *validity, bint mark_empty,
    int64_t *starts, int64_t *ends, int64_t *empty,
) noexcept nogil:
    """Decode all runs; that there are enough stored values was checked before."""
    cdef Py_ssize_t i
    cdef int64_t rows, row = 0, at = 0, total = 0, first, last, low
    offsets[0] = 0
    for i in range(counts.shape[0]):
        rows = counts[i]
        first = stored[at]
        last = stored[at + rows]
        low = ends[i - 1] if i and pages[i] == pages[i - 1] else 0
        if first < low or last < first:
            return FALLS
        if last > limits[i]:
            return BEYOND
        if last - first > most - total:
            return OVERFLOWS
        if not _run(stored + at, rows, offsets + row + 1, total - first):
            return FALLS
        if mark_empty:
            empty[0] += _mark(stored + at, rows, validity, row)
        starts[i] = first
        ends[i] = last
        total += last - first
        row += rows
        at += rows + 1
    return 0


cdef _decode(
    const Stored[::1] stored, const int64_t[::1] counts, const int64_t[::1] pages,
    const int64_t[::1] limits, bint mark_empty, bint wide,
):
    cdef int64_t rows = 0, empty = 0, left = stored.shape[0]
    cdef Py_ssize_t i, runs = counts.shape[0]
    cdef int fault
    if pages.shape[0] != runs or limits.shape[0] != runs:
        raise ValueError("counts, pages and limits differ in length")
    for i in range(runs):
        if counts[i] < 0 or counts[i] >= left:
            raise FormatError(f"too few positions: {stored.shape[0]} for {runs} runs of rows")
        left -= counts[i] + 1
        rows += counts[i]
    offsets = np.zeros(rows + 1, np.int64 if wide else np.int32)
    validity = np.full((rows + 7) // 8 if mark_empty else 0, 0xFF, np.uint8)
    spans = np.empty((2, runs), np.int64)
    if not runs:
        return offsets, None, spans[0], spans[1]
    cdef uint8_t[::1] bits = validity if validity.size else np.zeros(1, np.uint8)
    cdef int64_t[:, ::1] span = spans
    cdef int32_t[::1] narrow_offsets
    cdef int64_t[::1] wide_offsets
    if wide:
        wide_offsets = offsets
        with nogil:
            fault = _walk[Stored, int64_t](
                &stored[0], counts, pages, limits, &wide_offsets[0], INT64_MAX, &bits[0],
                mark_empty, &span[0, 0], &span[1, 0], &empty,
            )
    else:
        narrow_offsets = offsets
        with nogil:
            fault = _walk[Stored, int32_t](
                &stored[0], counts, pages, limits, &narrow_offsets[0], INT32_MAX, &bits[0],
                mark_empty, &span[0, 0], &span[1, 0], &empty,
            )
    if fault == FALLS:
        raise FormatError("positions fall: an entry ends before the one in front of it")
    if fault == BEYOND:
        raise FormatError("a position lies behind the end of what it points into")
    if fault == OVERFLOWS:
        raise OverflowError("the offsets do not fit 32 bits")
    return offsets, (validity if empty else None), spans[0], spans[1]


def decode_positions(stored, counts, pages, limits, bint mark_empty, bint wide):
    """See positions.pyi."""
    if stored.dtype == np.int32:
        return _decode[int32_t](stored, counts, pages, limits, mark_empty, wide)
    return _decode[int64_t](stored, counts, pages, limits, mark_empty, wide)
