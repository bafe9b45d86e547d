# cython: language_level=3
"""Byte strings of mini-block chunks: pick items.  See strings.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from pennon.errors import FormatError
from pennon.room import room

cdef inline int64_t _offset(const uint8_t* table, int64_t index, int width) noexcept nogil:
    """Return an offset, or -1 if it does not fit 63 bits."""
    cdef uint32_t narrow
    cdef uint64_t wide
    if width == 4:
        memcpy(&narrow, table + 4 * index, 4)
        return narrow
    memcpy(&wide, table + 8 * index, 8)
    return <int64_t>wide if wide < (<uint64_t>1 << 62) else -1


cdef bint _measure(
    const uint8_t* chunk, int64_t size, int64_t first, int64_t last, int width,
    int64_t* ends, int64_t total,
) noexcept nogil:
    """Write where each of the strings [first, last) ends in the result; tell if all is sound."""
    cdef int64_t i, offset, previous = _offset(chunk, first, width)
    cdef int64_t base = previous
    if previous < 0:
        return False
    for i in range(first + 1, last + 1):
        offset = _offset(chunk, i, width)
        if offset < previous or offset > size:
            return False
        ends[i - first - 1] = total + offset - base
        previous = offset
    return True


def pick_strings(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] sizes,
    const int64_t[::1] counts, int offset_width,
    const int64_t[::1] item_starts, const int64_t[::1] item_ends,
):
    """See strings.pyi."""
    cdef Py_ssize_t chunks = starts.shape[0], ranges = item_starts.shape[0]
    cdef Py_ssize_t i, pieces = 0, piece, chunk = 0
    cdef int64_t total_items = 0, wanted = 0, before = 0, first, last, done = 0, total = 0
    cdef int64_t at, bad = -1
    if sizes.shape[0] != chunks or counts.shape[0] != chunks or offset_width not in (4, 8):
        raise ValueError("tables of chunks differ in length, or no such offsets")
    if item_ends.shape[0] != ranges:
        raise ValueError("starts and ends differ in length")
    for i in range(chunks):
        if starts[i] < 0 or sizes[i] < 0 or counts[i] < 0 or sizes[i] > data.shape[0] - starts[i]:
            raise FormatError(f"chunk {i} of byte strings leaves its buffer")
        if counts[i] >= sizes[i] // offset_width and counts[i]:
            raise FormatError(f"chunk {i}: {sizes[i]} bytes cannot hold {counts[i] + 1} offsets")
        total_items += counts[i]
    for i in range(ranges):
        if item_starts[i] < before or item_ends[i] < item_starts[i] or item_ends[i] > total_items:
            raise ValueError("items are not sorted, disjoint ranges of the chunks")
        before = item_ends[i]
        wanted += item_ends[i] - item_starts[i]
    # A range may begin and end within a chunk; each cut of a range by a chunk is a piece.
    piece_chunks = np.empty(ranges + chunks, np.int64)
    piece_firsts = np.empty(ranges + chunks, np.int64)
    piece_lasts = np.empty(ranges + chunks, np.int64)
    offsets = room(wanted + 1, np.int64)
    offsets[0] = 0
    cdef int64_t[::1] chunk_of = piece_chunks
    cdef int64_t[::1] firsts = piece_firsts
    cdef int64_t[::1] lasts = piece_lasts
    cdef int64_t[::1] ends = offsets
    before = 0
    with nogil:
        for i in range(ranges):
            at = item_starts[i]
            while at < item_ends[i]:
                while at >= before + counts[chunk]:
                    before += counts[chunk]
                    chunk += 1
                first = at - before
                last = min(item_ends[i] - before, counts[chunk])
                if not _measure(
                    &data[0] + starts[chunk], sizes[chunk], first, last, offset_width,
                    &ends[done + 1], total,
                ):
                    bad = chunk
                    break
                done += last - first
                total = ends[done]
                chunk_of[pieces] = chunk
                firsts[pieces] = first
                lasts[pieces] = last
                pieces += 1
                at = before + last
            if bad >= 0:
                break
    if bad >= 0:
        raise FormatError(f"the offsets of chunk {bad} fall or leave its {sizes[bad]} bytes")
    values = room(total, np.uint8)
    cdef uint8_t[::1] out = values
    done = 0
    with nogil:
        for piece in range(pieces):
            chunk = chunk_of[piece]
            at = _offset(&data[0] + starts[chunk], firsts[piece], offset_width)
            last = _offset(&data[0] + starts[chunk], lasts[piece], offset_width)
            if last > at:
                memcpy(&out[done], &data[0] + starts[chunk] + at, last - at)
                done += last - at
    return offsets, values
