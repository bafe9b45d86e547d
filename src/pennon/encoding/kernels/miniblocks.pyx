# cython: language_level=3
"""The chunks of mini-block pages: where their buffers lie.  See miniblocks.pyi."""

from libc.stdint cimport int64_t, uint8_t

import numpy as np

from pennon.encoding.kernels.numbers cimport number_at
from pennon.errors import FormatError


cdef inline int64_t _aligned(int64_t offset) noexcept nogil:
    return (offset + 7) & ~<int64_t>7


cdef Py_ssize_t _split(
    const uint8_t* data, const int64_t[::1] positions, const int64_t[::1] chunk_sizes,
    int level_buffers, int value_buffers, int size_width,
    int64_t[::1] levels, int64_t[:, ::1] starts, int64_t[:, ::1] sizes,
) noexcept nogil:
    """Fill in the tables; return the number of the first bad chunk, or -1."""
    cdef Py_ssize_t chunk, buffer
    cdef int64_t at, header, offset, size
    header = 2 + 2 * level_buffers + <int64_t>size_width * value_buffers
    for chunk in range(positions.shape[0]):
        if header > chunk_sizes[chunk]:
            return chunk
        at = positions[chunk]
        levels[chunk] = <int64_t>number_at(data + at, 2)
        at += 2
        offset = _aligned(header)
        for buffer in range(level_buffers + value_buffers):
            if buffer < level_buffers:
                size = <int64_t>number_at(data + at, 2)
                at += 2
            else:
                size = <int64_t>number_at(data + at, size_width)
                at += size_width
            if offset > chunk_sizes[chunk] or size > chunk_sizes[chunk] - offset:
                return chunk
            starts[buffer, chunk] = positions[chunk] + offset
            sizes[buffer, chunk] = size
            offset = _aligned(offset + size)
    return -1


def split_chunks(
    const uint8_t[::1] data,
    const int64_t[::1] positions,
    const int64_t[::1] chunk_sizes,
    int level_buffers,
    int value_buffers,
    bint is_large,
):
    """See miniblocks.pyi."""
    cdef Py_ssize_t count = positions.shape[0], chunk, bad = -1
    cdef uint8_t none = 0
    cdef const uint8_t* source = &data[0] if data.shape[0] else &none
    if chunk_sizes.shape[0] != count or not 0 <= level_buffers <= 2 or value_buffers < 0:
        raise ValueError("positions and sizes of chunks differ in length, or no such buffers")
    for chunk in range(count):
        if positions[chunk] < 0 or chunk_sizes[chunk] < 0:
            raise ValueError("negative positions")
        if chunk_sizes[chunk] > data.shape[0] - positions[chunk]:
            raise FormatError(f"chunk {chunk} of a mini-block page leaves its buffer")
    levels = np.zeros(count, np.int64)
    cdef int buffers = level_buffers + value_buffers
    starts = np.zeros((max(buffers, 1), count), np.int64)
    sizes = np.zeros((max(buffers, 1), count), np.int64)
    if count == 0:
        return levels, starts[:buffers], sizes[:buffers]
    cdef int64_t[::1] level_view = levels
    cdef int64_t[:, ::1] start_view = starts
    cdef int64_t[:, ::1] size_view = sizes
    with nogil:
        bad = _split(
            source, positions, chunk_sizes, level_buffers, value_buffers, 4 if is_large else 2,
            level_view, start_view, size_view,
        )
    if bad >= 0:
        raise FormatError(f"the buffers of chunk {bad} leave the {chunk_sizes[bad]} bytes it has")
    return levels, starts[:buffers], sizes[:buffers]
