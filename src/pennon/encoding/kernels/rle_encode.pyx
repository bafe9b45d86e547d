# cython: language_level=3
"""Run lengths, byte streams, values under NULLs, and hashes, whole pages at once.  See rle_encode.pyi."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

import numpy as np

ctypedef fused Word:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef enum:
    END_BYTES = 64


def count_runs(const Word[::1] values):
    """See rle_encode.pyi."""
    cdef Py_ssize_t i, count = values.shape[0]
    cdef int64_t changes = 0
    if count == 0:
        return 0
    with nogil:
        for i in range(1, count):
            changes += values[i] != values[i - 1]
    return changes + 1


cdef inline int64_t _entries(int64_t length) noexcept nogil:
    """Return how many entries a run takes: none has more than 255 values."""
    return <int64_t>(length > 0) if length <= 255 else (length + 254) // 255


cdef int64_t _chunk(
    const int64_t* begins, int64_t* run, int64_t at, int64_t count, int64_t most, int64_t room,
    int64_t* entries,
) noexcept nogil:
    """Return how many values the chunk from ``at`` on takes: a power of two, unless it takes all.

    ``run`` is the one that ``at`` lies in, and becomes that of the next chunk.
    """
    cdef int64_t best = 0, end = 1, used = 0, start = at, r = run[0], needed
    while best < count - at:
        end = min(end, count - at)
        if end > most:
            break
        while start < count and used <= room and begins[r + 1] <= at + end:
            used += _entries(begins[r + 1] - start)
            r += 1
            start = begins[r]
        needed = used + _entries(at + end - start)
        if needed > room:
            break
        best = end
        entries[0] = needed
        run[0] = r
        end *= 2
    return best


def encode_runs(const Word[::1] values, int64_t most_values, int64_t most_bytes):
    """See rle_encode.pyi."""
    cdef int64_t count = values.shape[0], at = 0, taken = 0, entries = 0, room, i, run = 0, left
    cdef int64_t out = 0, end
    room = most_bytes // (<int64_t>sizeof(Word) + 1)
    if room < 1 or most_values < 1:
        raise ValueError("chunks without room")
    cdef int64_t[::1] begins = np.empty(count_runs(values) + 1, np.int64)
    with nogil:
        begins[0] = 0
        for i in range(1, count):
            begins[run] = at  # again and again, until the next run has begun: no branch is guessed
            taken = values[i] != values[i - 1]
            run += taken
            at += (i - at) & -taken
        if count:
            begins[run] = at
            begins[run + 1] = count
    counts, sizes = [], []
    at = run = 0
    while at < count:
        with nogil:
            taken = _chunk(&begins[0], &run, at, count, most_values, room, &entries)
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
    at = run = 0
    with nogil:
        for chunk in range(wanted.shape[0]):
            end = at + wanted[chunk]
            while at < end:
                left = min(begins[run + 1], end) - at
                found_values[out] = values[at]
                if left > 255:
                    left = 255
                found_lengths[out] = <uint8_t>left
                out += 1
                at += left
                run += at == begins[run + 1]
    return found, lengths, chunk_counts, chunk_runs


def split_streams(const uint8_t[::1] data, int width, const int64_t[::1] counts):
    """See rle_encode.pyi."""
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
    """See rle_encode.pyi."""
    cdef Py_ssize_t count = values.shape[0], i
    cdef int64_t bit
    cdef Word last = 0, shown
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
            shown = <Word>0 - <Word>(validity[bit >> 3] >> (bit & 7) & 1)
            last = (values[i] & shown) | (last & ~shown)
            out[i] = last
    return filled


cdef uint64_t _mixed(uint64_t seen, uint64_t word) noexcept nogil:
    seen = (seen ^ word) * <uint64_t>0x9E3779B97F4A7C15
    return seen ^ (seen >> 32)


cdef uint64_t _hash_bytes(const uint8_t* data, int64_t size) noexcept nogil:
    """Return a hash of up to eight bytes at a time."""
    cdef uint64_t seen = <uint64_t>size, word
    cdef int64_t i
    for i in range(size // 8):
        memcpy(&word, data + 8 * i, 8)
        seen = _mixed(seen, word)
    if size % 8:
        word = 0
        memcpy(&word, data + size // 8 * 8, size % 8)
        seen = _mixed(seen, word)
    return seen


def hash_pieces(const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] sizes):
    """See rle_encode.pyi."""
    cdef Py_ssize_t count = starts.shape[0], i
    if sizes.shape[0] != count:
        raise ValueError("not a size for each piece")
    for i in range(count):
        if starts[i] < 0 or sizes[i] < 0 or sizes[i] > data.shape[0] - starts[i]:
            raise ValueError("a piece leaves the data")
    hashes = np.empty(count, np.uint64)
    cdef uint64_t[::1] out = hashes
    cdef uint64_t seen
    cdef const uint8_t* piece
    with nogil:
        for i in range(count):
            if sizes[i] == 0:
                out[i] = 0
                continue
            piece = &data[starts[i]]
            if sizes[i] <= 2 * END_BYTES:
                out[i] = _hash_bytes(piece, sizes[i])
            else:
                seen = _mixed(_hash_bytes(piece, END_BYTES), <uint64_t>sizes[i])
                out[i] = _mixed(seen, _hash_bytes(piece + sizes[i] - END_BYTES, END_BYTES))
    return hashes


def tally(const Word[::1] keys, const int64_t[::1] sizes):
    """See rle_encode.pyi."""
    cdef Py_ssize_t count = keys.shape[0], i, slot
    cdef int64_t distinct = 0, once = 0, twice = 0, size = 0
    cdef int bits = 4
    if sizes.shape[0] != count or count >= 1 << 30:
        raise ValueError("not a size for each key, or too many keys")
    while count * 2 > <Py_ssize_t>1 << bits:
        bits += 1
    cdef int32_t[::1] firsts = np.zeros(1 << bits, np.int32)
    cdef int32_t[::1] times = np.zeros(count + 1, np.int32)
    with nogil:
        for i in range(count):
            slot = <Py_ssize_t>(_mixed(0, <uint64_t>keys[i] ^ <uint64_t>keys[i] >> 32) >> (64 - bits))
            while firsts[slot] != 0 and keys[firsts[slot] - 1] != keys[i]:
                slot = (slot + 1) & ((<Py_ssize_t>1 << bits) - 1)
            if firsts[slot] == 0:
                firsts[slot] = <int32_t>(i + 1)
                distinct += 1
                size += sizes[i]
            times[firsts[slot]] += 1
        for i in range(1, count + 1):
            once += times[i] == 1
            twice += times[i] == 2
    return distinct, once, twice, size


cdef inline uint64_t _hash_short(const uint8_t* data, int64_t size, bint may_read_on) noexcept nogil:
    """Return a hash of bytes, fewer than eight by one load if eight may be read."""
    cdef uint64_t word
    if size >= 8 or size == 0 or not may_read_on:
        return _hash_bytes(data, size)
    memcpy(&word, data, 8)
    return _mixed(<uint64_t>size, word & ((<uint64_t>1 << (8 * size)) - 1))


def number_pieces(const uint8_t[::1] data, const int64_t[::1] offsets, Py_ssize_t counted):
    """See rle_encode.pyi."""
    cdef Py_ssize_t count = offsets.shape[0] - 1, i, slot, last
    cdef int64_t distinct = 0, found = 0, once = 0, twice = 0, total = 0, size, item
    cdef uint64_t seen
    cdef int bits = 4
    cdef bint is_long = False
    cdef int64_t readable = data.shape[0]
    if not 0 <= counted <= count or count >= 1 << 30:
        raise ValueError("no pieces, or too many")
    if offsets[0] < 0 or offsets[count] > data.shape[0]:
        raise ValueError("a piece leaves the data")
    for i in range(count):
        if offsets[i + 1] < offsets[i]:
            raise ValueError("a piece leaves the data")
        is_long |= offsets[i + 1] - offsets[i] > 2 * END_BYTES
    if is_long or data.shape[0] == 0:
        return None
    while count * 2 > <Py_ssize_t>1 << bits:
        bits += 1
    last = (<Py_ssize_t>1 << bits) - 1
    codes = np.empty(count, np.int32)
    places = np.empty(count, np.int32)
    cdef int32_t[::1] numbers = np.zeros(1 << bits, np.int32)
    cdef int32_t[::1] times = np.zeros(count + 1, np.int32)
    cdef uint64_t[::1] hashes = np.empty(count + 1, np.uint64)
    cdef int32_t[::1] code = codes
    cdef int32_t[::1] first = places
    cdef const uint8_t* bytes_ = &data[0]
    with nogil:
        for i in range(count):
            size = offsets[i + 1] - offsets[i]
            seen = _hash_short(bytes_ + offsets[i], size, offsets[i] + 8 <= readable)
            slot = <Py_ssize_t>(_mixed(0, seen ^ seen >> 32) >> (64 - bits))
            while True:
                item = numbers[slot] - 1
                if item < 0:
                    item = distinct
                    distinct += 1
                    numbers[slot] = <int32_t>distinct
                    hashes[item] = seen
                    first[item] = <int32_t>i
                    if i < counted:
                        total += size
                    break
                if (
                    hashes[item] == seen
                    and offsets[first[item] + 1] - offsets[first[item]] == size
                    and memcmp(bytes_ + offsets[first[item]], bytes_ + offsets[i], size) == 0
                ):
                    break
                slot = (slot + 1) & last
            code[i] = <int32_t>item
            if i < counted:
                times[item] += 1
        for i in range(distinct):
            found += times[i] > 0
            once += times[i] == 1
            twice += times[i] == 2
    return codes, places[:distinct].copy(), (found, once, twice, total)


def join_pieces(
    const uint8_t[::1] data, const int64_t[::1] offsets, const int32_t[::1] places
):
    """See rle_encode.pyi."""
    cdef Py_ssize_t count = places.shape[0], i
    cdef int64_t total = 0, size
    ends = np.zeros(count + 1, np.int64)
    cdef int64_t[::1] end = ends
    for i in range(count):
        if not 0 <= places[i] < offsets.shape[0] - 1:
            raise ValueError("there is no such piece")
        size = offsets[places[i] + 1] - offsets[places[i]]
        if size < 0 or offsets[places[i]] < 0 or offsets[places[i] + 1] > data.shape[0]:
            raise ValueError("a piece leaves the data")
        total += size
        end[i + 1] = total
    joined = np.empty(total, np.uint8)
    cdef uint8_t[::1] out = joined
    with nogil:
        for i in range(count):
            size = end[i + 1] - end[i]
            if size:
                memcpy(&out[end[i]], &data[offsets[places[i]]], size)
    return ends, joined
