# cython: language_level=3
"""Run lengths, byte streams, and values under NULLs, whole pages at once.  See squeeze.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

ctypedef fused Word:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


def count_runs(const Word[::1] values):
    """See squeeze.pyi."""
    cdef Py_ssize_t i, count = values.shape[0]
    cdef int64_t changes = 0
    if count == 0:
        return 0
    with nogil:
        for i in range(1, count):
            changes += values[i] != values[i - 1]
    return changes + 1


cdef int64_t _chunk(
    const Word* values, int64_t count, int64_t most, int64_t room, int64_t* entries
) noexcept nogil:
    """Return how many values the next chunk takes: a power of two, unless it takes all."""
    cdef int64_t i, used = 0, run = 0, best = 0
    for i in range(min(count, most)):
        if i and values[i] == values[i - 1] and run < 255:
            run += 1
        else:
            used += 1
            run = 1
            if used > room:
                break
        if (i + 1) & i == 0 or i + 1 == count:
            best = i + 1
            entries[0] = used
    return best


def encode_runs(const Word[::1] values, int64_t most_values, int64_t most_bytes):
    """See squeeze.pyi."""
    cdef int64_t count = values.shape[0], at = 0, taken = 0, entries = 0, room, i, run
    cdef int64_t out = 0
    room = most_bytes // (<int64_t>sizeof(Word) + 1)
    if room < 1 or most_values < 1:
        raise ValueError("chunks without room")
    counts, sizes = [], []
    while at < count:
        with nogil:
            taken = _chunk[Word](&values[at], count - at, most_values, room, &entries)
        counts.append(taken)
        sizes.append(entries)
        at += taken
    chunk_counts = np.array(counts, np.int64)
    chunk_runs = np.array(sizes, np.int64)
    total = int(chunk_runs.sum())
    found = np.empty(total, np.asarray(values).dtype)
    lengths = np.empty(total, np.uint8)
    if total == 0:
        return found, lengths, chunk_counts, chunk_runs
    cdef Word[::1] found_values = found
    cdef uint8_t[::1] found_lengths = lengths
    cdef int64_t[::1] wanted = chunk_counts
    cdef Py_ssize_t chunk
    at = 0
    with nogil:
        for chunk in range(wanted.shape[0]):
            run = 0
            for i in range(at, at + wanted[chunk]):
                if run and run < 255 and values[i] == values[i - 1]:
                    run += 1
                else:
                    if run:
                        found_lengths[out - 1] = <uint8_t>run
                    found_values[out] = values[i]
                    out += 1
                    run = 1
            found_lengths[out - 1] = <uint8_t>run
            at += wanted[chunk]
    return found, lengths, chunk_counts, chunk_runs


def split_streams(const uint8_t[::1] data, int width, const int64_t[::1] counts):
    """See squeeze.pyi."""
    cdef int64_t chunk, i, count, at = 0, total = 0
    cdef int stream
    for chunk in range(counts.shape[0]):
        if counts[chunk] < 0:
            raise ValueError("chunks do not divide the values")
        total += counts[chunk]
    if width < 1 or total * width != data.shape[0]:
        raise ValueError("chunks do not divide the values")
    split = np.empty(data.shape[0], np.uint8)
    cdef uint8_t[::1] out = split
    with nogil:
        for chunk in range(counts.shape[0]):
            count = counts[chunk]
            for stream in range(width):
                for i in range(count):
                    out[at + stream * count + i] = data[at + i * width + stream]
            at += count * width
    return split


def fill_nulls(const Word[::1] values, const uint8_t[::1] validity, int64_t bit_offset):
    """See squeeze.pyi."""
    cdef Py_ssize_t count = values.shape[0], i
    cdef int64_t bit
    cdef Word last = 0
    if bit_offset < 0 or (bit_offset + count + 7) // 8 > validity.shape[0]:
        raise ValueError("the bitmap is shorter than the values")
    filled = np.empty(count, np.asarray(values).dtype)
    cdef Word[::1] out = filled
    with nogil:
        for i in range(count):
            bit = bit_offset + i
            if validity[bit >> 3] >> (bit & 7) & 1:
                last = values[i]
                break
        for i in range(count):
            bit = bit_offset + i
            if validity[bit >> 3] >> (bit & 7) & 1:
                last = values[i]
            out[i] = last
    return filled
