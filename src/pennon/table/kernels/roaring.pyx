"""Sets of numbers as Roaring bitmaps, many at a time."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

cdef extern from *:
    """
    #define PENNON_LOWEST_BIT(word) __builtin_ctzll(word)
    """
    int PENNON_LOWEST_BIT(uint64_t word) nogil

cdef enum:
    PLAIN = 0
    ADDRESSES = 1
    TREEMAP = 2
    COOKIE = 12346
    COOKIE_WITH_RUNS = 12347
    OFFSETS_FROM = 4
    ARRAY_MOST = 4096
    BITMAP_BYTES = 8192


cdef inline int64_t _container_end(const uint64_t *rows, int64_t start, int64_t end) noexcept nogil:
    """Return where the container that begins at ``start`` ends."""
    cdef uint64_t key = rows[start] >> 16
    cdef int64_t at = start + 1
    while at < end and rows[at] >> 16 == key:
        at += 1
    return at


cdef inline int64_t _runs(const uint64_t *rows, int64_t start, int64_t end) noexcept nogil:
    cdef int64_t at, found = 1
    for at in range(start + 1, end):
        found += rows[at] != rows[at - 1] + 1
    return found


cdef inline int64_t _body_size(int64_t count, int64_t runs, bint with_runs, bint *is_run) noexcept nogil:
    """Return how many bytes a container takes in its smallest form."""
    cdef int64_t size = 2 * count if count <= ARRAY_MOST else BITMAP_BYTES
    is_run[0] = with_runs and 2 + 4 * runs < size
    return 2 + 4 * runs if is_run[0] else size


cdef int64_t _bitmap_size(
    const uint64_t *rows, int64_t start, int64_t end, bint with_runs, int64_t *containers, bint *any_run
) noexcept nogil:
    """Return how many bytes a bitmap takes; rows share their high halves."""
    cdef int64_t size = 0, at = start, after
    cdef bint is_run
    containers[0] = 0
    any_run[0] = 0
    while at < end:
        after = _container_end(rows, at, end)
        size += _body_size(after - at, _runs(rows, at, after) if with_runs else 0, with_runs, &is_run)
        any_run[0] = any_run[0] or is_run
        containers[0] += 1
        at = after
    if any_run[0]:
        size += 4 + (containers[0] + 7) // 8
    else:
        size += 8
    size += 4 * containers[0]
    if not any_run[0] or containers[0] >= OFFSETS_FROM:
        size += 4 * containers[0]
    return size


cdef inline uint8_t *_put16(uint8_t *to, uint64_t value) noexcept nogil:
    to[0], to[1] = value & 0xFF, (value >> 8) & 0xFF
    return to + 2


cdef inline uint8_t *_put32(uint8_t *to, uint64_t value) noexcept nogil:
    return _put16(_put16(to, value & 0xFFFF), value >> 16)


cdef uint8_t *_put_container(
    uint8_t *to, const uint64_t *rows, int64_t start, int64_t end, int64_t runs, bint is_run
) noexcept nogil:
    cdef int64_t at, first
    if is_run:
        to = _put16(to, runs)
        first = start
        for at in range(start + 1, end + 1):
            if at == end or rows[at] != rows[at - 1] + 1:
                to = _put16(to, rows[first] & 0xFFFF)
                to = _put16(to, at - 1 - first)
                first = at
        return to
    if end - start <= ARRAY_MOST:
        for at in range(start, end):
            to = _put16(to, rows[at] & 0xFFFF)
        return to
    memset(to, 0, BITMAP_BYTES)
    for at in range(start, end):
        to[(rows[at] & 0xFFFF) >> 3] |= 1 << (rows[at] & 7)
    return to + BITMAP_BYTES


cdef uint8_t *_put_bitmap(
    uint8_t *to, const uint64_t *rows, int64_t start, int64_t end, bint with_runs
) noexcept nogil:
    cdef int64_t containers, at = start, after, number = 0, runs
    cdef bint any_run, is_run
    cdef uint8_t *begin = to
    cdef uint8_t *flags = NULL
    cdef uint8_t *keys
    cdef uint8_t *offsets = NULL
    _bitmap_size(rows, start, end, with_runs, &containers, &any_run)
    if any_run:
        to = _put16(_put16(to, COOKIE_WITH_RUNS), containers - 1)
        flags = to
        memset(flags, 0, (containers + 7) // 8)
        to += (containers + 7) // 8
    else:
        to = _put32(_put32(to, COOKIE), containers)
    keys = to
    to += 4 * containers
    if not any_run or containers >= OFFSETS_FROM:
        offsets = to
        to += 4 * containers
    while at < end:
        after = _container_end(rows, at, end)
        runs = _runs(rows, at, after) if with_runs else 0
        _body_size(after - at, runs, with_runs, &is_run)
        keys = _put16(_put16(keys, (rows[at] >> 16) & 0xFFFF), after - at - 1)
        if offsets != NULL:
            offsets = _put32(offsets, to - begin)
        if is_run:
            flags[number >> 3] |= 1 << (number & 7)
        to = _put_container(to, rows, at, after, runs, is_run)
        number += 1
        at = after
    return to


cdef inline int64_t _high_end(const uint64_t *rows, int64_t start, int64_t end) noexcept nogil:
    cdef uint64_t high = rows[start] >> 32
    cdef int64_t at = start + 1
    while at < end and rows[at] >> 32 == high:
        at += 1
    return at


cdef int64_t _set_size(
    const uint64_t *rows, int64_t start, int64_t end, int form, bint with_runs
) noexcept nogil:
    """Return how many bytes a set takes, -1 if its rows do not ascend, or a plain one has other high halves."""
    cdef int64_t size, at, after, containers
    cdef bint any_run
    for at in range(start + 1, end):
        if rows[at] <= rows[at - 1]:
            return -1
    if form == PLAIN:
        if start < end and rows[end - 1] >> 32:
            return -1
        return _bitmap_size(rows, start, end, with_runs, &containers, &any_run)
    size = 4 if form == ADDRESSES else 8
    at = start
    while at < end:
        after = _high_end(rows, at, end)
        size += 8 if form == ADDRESSES else 4
        size += _bitmap_size(rows, at, after, with_runs, &containers, &any_run)
        at = after
    return size


cdef void _put_set(
    uint8_t *to, const uint64_t *rows, int64_t start, int64_t end, int form, bint with_runs
) noexcept nogil:
    cdef int64_t at = start, after
    cdef uint64_t highs = 0
    cdef uint8_t *begin = to
    cdef uint8_t *size
    if form == PLAIN:
        _put_bitmap(to, rows, start, end, with_runs)
        return
    to += 4 if form == ADDRESSES else 8
    while at < end:
        after = _high_end(rows, at, end)
        to = _put32(to, rows[at] >> 32)
        size = to
        if form == ADDRESSES:
            to += 4
        to = _put_bitmap(to, rows, at, after, with_runs)
        if form == ADDRESSES:
            _put32(size, to - size - 4)
        highs += 1
        at = after
    begin = _put32(begin, highs)
    if form == TREEMAP:
        _put32(begin, 0)


def serialize_sets(const uint64_t[::1] rows, const int64_t[::1] borders, int form, bint with_runs):
    """Return the bytes of sets, and where each begins; see the stub."""
    cdef int64_t count = borders.shape[0] - 1, at, size = 0
    cdef int64_t total = 0
    cdef const uint64_t *start = NULL
    if count < 0 or form < PLAIN or form > TREEMAP:
        raise ValueError("sets have borders, one more than there are sets, and one of three forms")
    for at in range(count):
        if borders[at + 1] < borders[at]:
            raise ValueError("the borders of sets fall")
    if borders[0] < 0 or borders[count] > rows.shape[0]:
        raise ValueError("the borders of sets leave the rows")
    offsets_made = np.empty(count + 1, np.int64)
    cdef int64_t[::1] offsets = offsets_made
    if rows.shape[0]:
        start = &rows[0]
    with nogil:
        offsets[0] = 0
        for at in range(count):
            size = _set_size(start, borders[at], borders[at + 1], form, with_runs)
            if size < 0:
                break
            total += size
            offsets[at + 1] = total
    if size < 0:
        raise ValueError("the rows of a set ascend, and those of a plain one are below 2 ** 32")
    data_made = np.empty(max(total, 1), np.uint8)
    cdef uint8_t[::1] data = data_made
    with nogil:
        for at in range(count):
            _put_set(&data[offsets[at]], start, borders[at], borders[at + 1], form, with_runs)
    return data_made[:total], offsets_made


def read_bits(const uint8_t[::1] bits, Py_ssize_t size):
    """See roaring.pyi."""
    cdef Py_ssize_t i, found = 0
    cdef uint64_t word
    if bits.shape[0] != BITMAP_BYTES or size < 0:
        raise ValueError(f"a container of {bits.shape[0]} bytes")
    values = np.empty(size + 1, np.uint32)
    cdef uint32_t[::1] out = values
    with nogil:
        for i in range(BITMAP_BYTES // 8):
            memcpy(&word, &bits[8 * i], 8)
            while word and found <= size:
                out[found] = <uint32_t> (64 * i + PENNON_LOWEST_BIT(word))
                found += 1
                word &= word - 1
    return values[:found]
