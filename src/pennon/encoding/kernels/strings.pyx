# cython: language_level=3
"""Byte strings of mini-block chunks: pick items.  See strings.pyi."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from pennon.errors import FormatError
from pennon.core.memory import allocate

ctypedef fused Offset:
    int32_t
    int64_t


cdef int64_t check_chunks(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] sizes,
    const int64_t[::1] counts, int offset_width,
    const int64_t[::1] item_starts, const int64_t[::1] item_ends,
) except -1:
    """Return the number of items wanted; raise unless chunks lie in the data, and items in them."""
    cdef Py_ssize_t chunks = starts.shape[0], ranges = item_starts.shape[0], i
    cdef int64_t total = 0, wanted = 0, before = 0
    if sizes.shape[0] != chunks or counts.shape[0] != chunks or offset_width not in (4, 8):
        raise ValueError("tables of chunks differ in length, or no such offsets")
    if item_ends.shape[0] != ranges:
        raise ValueError("starts and ends differ in length")
    for i in range(chunks):
        if starts[i] < 0 or sizes[i] < 0 or counts[i] < 0 or sizes[i] > data.shape[0] - starts[i]:
            raise FormatError(f"chunk {i} of byte strings leaves its buffer")
        if counts[i] >= sizes[i] // offset_width and counts[i]:
            raise FormatError(f"chunk {i}: {sizes[i]} bytes cannot hold {counts[i] + 1} offsets")
        total += counts[i]
    for i in range(ranges):
        if item_starts[i] < before or item_ends[i] < item_starts[i] or item_ends[i] > total:
            raise ValueError("items are not sorted, disjoint ranges of the chunks")
        before = item_ends[i]
        wanted += item_ends[i] - item_starts[i]
    return wanted


cdef Py_ssize_t cut_items(
    const int64_t[::1] counts, const int64_t[::1] item_starts, const int64_t[::1] item_ends,
    int64_t[:, ::1] pieces,
) noexcept nogil:
    """Cut ranges of items at the borders of chunks; return the number of pieces.

    A piece is a column of ``pieces`` (room for chunks + ranges of them): chunk, first item in it, and
    the one after the last.
    """
    cdef Py_ssize_t i, chunk = 0, found = 0
    cdef int64_t before = 0, at
    for i in range(item_starts.shape[0]):
        at = item_starts[i]
        while at < item_ends[i]:
            while at >= before + counts[chunk]:
                before += counts[chunk]
                chunk += 1
            pieces[0, found] = chunk
            pieces[1, found] = at - before
            pieces[2, found] = min(item_ends[i] - before, counts[chunk])
            at = before + pieces[2, found]
            found += 1
    return found


cdef int64_t read_offset(const uint8_t* table, int64_t index, int width) noexcept nogil:
    """Return an offset, or -1 if it does not fit 62 bits."""
    cdef uint32_t narrow
    cdef uint64_t wide
    if width == 4:
        memcpy(&narrow, table + 4 * index, 4)
        return narrow
    memcpy(&wide, table + 8 * index, 8)
    return <int64_t>wide if wide < (<uint64_t>1 << 62) else -1


cdef bint offsets_rise(
    const uint8_t* table, int64_t first, int64_t last, int width, int64_t size
) noexcept nogil:
    """Tell whether the offsets [first, last] never fall, and none is beyond ``size``."""
    cdef int64_t i, end = read_offset(table, last, width)
    cdef uint32_t low, high
    cdef uint64_t wide_low, wide_high
    cdef bint falls = False
    if end < 0 or end > size:
        return False
    if width == 4:
        for i in range(first, last):
            memcpy(&low, table + 4 * i, 4)
            memcpy(&high, table + 4 * i + 4, 4)
            falls |= high < low
    else:
        for i in range(first, last):
            memcpy(&wide_low, table + 8 * i, 8)
            memcpy(&wide_high, table + 8 * i + 8, 8)
            falls |= wide_high < wide_low
    return not falls


cdef void _shift(
    const uint8_t* table, int64_t first, int64_t last, int width, int64_t shift, Offset* ends
) noexcept nogil:
    """Write the offsets behind the first, with ``shift`` added."""
    cdef int64_t i
    cdef uint32_t narrow
    cdef uint64_t wide
    if width == 4:
        for i in range(last - first):
            memcpy(&narrow, table + 4 * (first + i) + 4, 4)
            ends[i] = <Offset>(<int64_t>narrow + shift)
    else:
        for i in range(last - first):
            memcpy(&wide, table + 8 * (first + i) + 8, 8)
            ends[i] = <Offset>(<int64_t>wide + shift)


cdef void _copy(
    const uint8_t* data, const int64_t[::1] starts, int width,
    const int64_t[:, ::1] pieces, Py_ssize_t count, Offset* offsets, uint8_t* out,
) noexcept nogil:
    """Write offsets and bytes of all pieces, whose offsets were checked."""
    cdef Py_ssize_t piece
    cdef int64_t at, size, filled = 0
    cdef const uint8_t* chunk
    offsets[0] = 0
    offsets += 1
    for piece in range(count):
        chunk = data + starts[pieces[0, piece]]
        at = read_offset(chunk, pieces[1, piece], width)
        size = read_offset(chunk, pieces[2, piece], width) - at
        _shift[Offset](chunk, pieces[1, piece], pieces[2, piece], width, filled - at, offsets)
        if size:
            memcpy(out + filled, chunk + at, size)
        offsets += pieces[2, piece] - pieces[1, piece]
        filled += size


def pick_strings(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] sizes,
    const int64_t[::1] counts, int offset_width,
    const int64_t[::1] item_starts, const int64_t[::1] item_ends,
):
    """See strings.pyi."""
    cdef int64_t wanted = check_chunks(
        data, starts, sizes, counts, offset_width, item_starts, item_ends
    )
    cdef Py_ssize_t pieces, piece, bad = -1
    cdef int64_t total = 0, chunk
    cdef uint8_t none = 0
    cdef const uint8_t* source = &data[0] if data.shape[0] else &none
    cuts = np.empty((3, starts.shape[0] + item_starts.shape[0] + 1), np.int64)
    cdef int64_t[:, ::1] cut = cuts
    with nogil:
        pieces = cut_items(counts, item_starts, item_ends, cut)
        for piece in range(pieces):
            chunk = cut[0, piece]
            if not offsets_rise(
                source + starts[chunk], cut[1, piece], cut[2, piece], offset_width, sizes[chunk]
            ):
                bad = chunk
                break
            total += (
                read_offset(source + starts[chunk], cut[2, piece], offset_width)
                - read_offset(source + starts[chunk], cut[1, piece], offset_width)
            )
    if bad >= 0:
        raise FormatError(f"the offsets of chunk {bad} fall or leave its {sizes[bad]} bytes")
    cdef bint is_narrow = total <= INT32_MAX
    offsets = allocate(wanted + 1, np.int32 if is_narrow else np.int64)
    values = allocate(total, np.uint8)
    cdef uint8_t[::1] out_view = values
    cdef uint8_t* out = &out_view[0] if total else &none
    cdef int32_t[::1] narrow
    cdef int64_t[::1] wide
    if is_narrow:
        narrow = offsets
        with nogil:
            _copy[int32_t](source, starts, offset_width, cut, pieces, &narrow[0], out)
    else:
        wide = offsets
        with nogil:
            _copy[int64_t](source, starts, offset_width, cut, pieces, &wide[0], out)
    return offsets, values
