# cython: language_level=3
"""Run lengths and byte streams, all chunks of a page at once.  See runs.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

import numpy as np

from pennon.encoding.kernels.numbers cimport number_at
from pennon.encoding.kernels.run_lengths cimport HEADER, Runs, expand
from pennon.errors import FormatError

ctypedef fused Word:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


def expand_runs(
    const uint8_t[::1] value_data,
    const int64_t[::1] value_starts, const int64_t[::1] value_sizes,
    const uint8_t[::1] length_data,
    const int64_t[::1] length_starts, const int64_t[::1] length_sizes,
    int length_width, const int64_t[::1] counts, Word[::1] target,
):
    """See runs.pyi."""
    cdef Py_ssize_t chunk, chunks = counts.shape[0], bad = -1
    cdef int64_t room = target.shape[0], at = 0
    cdef Runs runs
    cdef int64_t end = value_data.shape[0], length_end = length_data.shape[0]
    cdef Py_ssize_t width = sizeof(Word)
    if not (
        value_starts.shape[0] == value_sizes.shape[0] == length_starts.shape[0]
        == length_sizes.shape[0] == chunks
    ) or length_width not in (1, 2, 4):
        raise ValueError("tables of chunks differ in length, or no such run lengths")
    with nogil:
        for chunk in range(chunks):
            if counts[chunk] == 0:
                continue
            runs.count = length_sizes[chunk] // length_width
            if (
                counts[chunk] < 0 or counts[chunk] > room - at
                or value_starts[chunk] < 0 or length_starts[chunk] < 0
                or value_sizes[chunk] > end - value_starts[chunk]
                or length_sizes[chunk] > length_end - length_starts[chunk]
                or value_sizes[chunk] < 0 or runs.count < 1
                or runs.count * length_width != length_sizes[chunk]
                or runs.count * width != value_sizes[chunk]
            ):
                bad = chunk
                break
            runs.values = &value_data[0] + value_starts[chunk]
            runs.lengths = &length_data[0] + length_starts[chunk]
            if not expand(&runs, length_width, &target[0] + at, counts[chunk]):
                bad = chunk
                break
            at += counts[chunk]
    if bad >= 0:
        raise FormatError(f"the runs of chunk {bad} do not make its {counts[bad]} values")
    if at != room:
        raise ValueError("the chunks do not fill the target")


def split_runs(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] sizes
):
    """See runs.pyi."""
    cdef Py_ssize_t chunk, chunks = starts.shape[0], bad = -1
    cdef uint64_t size
    found = np.empty(chunks, np.int64)
    cdef int64_t[::1] value_sizes = found
    if sizes.shape[0] != chunks:
        raise ValueError("tables of chunks differ in length")
    with nogil:
        for chunk in range(chunks):
            if (
                sizes[chunk] < HEADER or starts[chunk] < 0
                or sizes[chunk] > data.shape[0] - starts[chunk]
            ):
                bad = chunk
                break
            size = number_at(&data[0] + starts[chunk], HEADER)
            if size > <uint64_t>(sizes[chunk] - HEADER):
                bad = chunk
                break
            value_sizes[chunk] = <int64_t>size
    if bad >= 0:
        raise FormatError("run lengths take values beyond the end of their buffer")
    return found


cdef void _join_eight(const uint8_t* source, int64_t count, uint8_t* out) noexcept nogil:
    """Join streams of a width that the compiler knows, so that it can do many values at once."""
    cdef int64_t i
    cdef int stream
    for i in range(count):
        for stream in range(8):
            out[8 * i + stream] = source[stream * count + i]


cdef void _join_four(const uint8_t* source, int64_t count, uint8_t* out) noexcept nogil:
    cdef int64_t i
    cdef int stream
    for i in range(count):
        for stream in range(4):
            out[4 * i + stream] = source[stream * count + i]


def join_streams(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] sizes,
    const int64_t[::1] counts, int width, uint8_t[::1] target,
):
    """See runs.pyi."""
    cdef Py_ssize_t chunk, chunks = counts.shape[0], bad = -1
    cdef int64_t at = 0, i, count, room = target.shape[0]
    cdef int stream
    cdef const uint8_t* source
    cdef uint8_t* out
    if starts.shape[0] != chunks or sizes.shape[0] != chunks or width < 1:
        raise ValueError("tables of chunks differ in length")
    with nogil:
        for chunk in range(chunks):
            count = counts[chunk]
            if count == 0:
                continue
            if (
                count < 0 or count > (room - at) // width or sizes[chunk] != count * width
                or starts[chunk] < 0 or sizes[chunk] > data.shape[0] - starts[chunk]
            ):
                bad = chunk
                break
            source = &data[0] + starts[chunk]
            out = &target[0] + at
            if width == 8:
                _join_eight(source, count, out)
            elif width == 4:
                _join_four(source, count, out)
            else:
                for stream in range(width):
                    for i in range(count):
                        out[i * width + stream] = source[stream * count + i]
            at += count * width
    if bad >= 0:
        raise FormatError(f"chunk {bad} of split byte streams has {sizes[bad]} bytes")
    if at != room:
        raise ValueError("the chunks do not fill the target")
