# cython: language_level=3
"""Sets of rows as ranges that ascend: what two of them have in common, and which numbers are in one."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

import numpy as np

from pennon.core.kernels.long_work cimport is_long

cdef enum:
    BLOCK = 16
    BLOCK_WORDS = 1024
    STEPS = 8  # nanoseconds that a number or a range takes, about

cdef uint64_t LOW = 0xFFFF


cdef struct Ranges:
    const uint64_t *starts
    const uint64_t *lasts
    int64_t count


cdef inline int64_t _reach(const uint64_t *values, int64_t at, int64_t count, uint64_t least) noexcept nogil:
    """Return the first place from ``at`` on whose value is ``least`` or more; it is looked for nearby first."""
    cdef int64_t step = 1, high, middle
    if at >= count or values[at] >= least:
        return at
    while at + step < count and values[at + step] < least:
        at += step
        step *= 2
    high = min(at + step, count)
    while high - at > 1:
        middle = (at + high) >> 1
        if values[middle] < least:
            at = middle
        else:
            high = middle
    return high


cdef uint64_t _meet(Ranges a, Ranges b, uint64_t *starts, uint64_t *lasts, int64_t *found) noexcept nogil:
    """Write what both have, unless there is no room for it; return how many rows that are."""
    cdef int64_t i = 0, j = 0
    cdef uint64_t rows = 0, first, last
    found[0] = 0
    while i < a.count and j < b.count:
        i = _reach(a.lasts, i, a.count, b.starts[j])
        if i == a.count:
            break
        j = _reach(b.lasts, j, b.count, a.starts[i])
        if j == b.count:
            break
        first, last = max(a.starts[i], b.starts[j]), min(a.lasts[i], b.lasts[j])
        if first <= last:
            rows += last - first + 1
            if starts != NULL:
                starts[found[0]], lasts[found[0]] = first, last
                found[0] += 1
        if a.lasts[i] < b.lasts[j]:
            i += 1
        else:
            j += 1
    return rows


cdef int64_t _unite(Ranges a, Ranges b, uint64_t *starts, uint64_t *lasts) noexcept nogil:
    cdef int64_t i = 0, j = 0, found = 0
    cdef uint64_t first, last
    while i < a.count or j < b.count:
        if j == b.count or (i < a.count and a.starts[i] <= b.starts[j]):
            first, last = a.starts[i], a.lasts[i]
            i += 1
        else:
            first, last = b.starts[j], b.lasts[j]
            j += 1
        if found and (first <= lasts[found - 1] or first - lasts[found - 1] == 1):
            lasts[found - 1] = max(lasts[found - 1], last)
        else:
            starts[found], lasts[found] = first, last
            found += 1
    return found


cdef void _mark(Ranges among, const uint64_t *numbers, int64_t count, uint8_t *marks) noexcept nogil:
    cdef int64_t place, at = 0
    for place in range(count):
        if at and among.lasts[at - 1] >= numbers[place]:
            at = 0  # it falls behind the one before
        at = _reach(among.lasts, at, among.count, numbers[place])
        marks[place] = at < among.count and among.starts[at] <= numbers[place]


cdef int64_t _find_ranges(const uint64_t *numbers, int64_t count, uint64_t *starts, uint64_t *lasts) noexcept nogil:
    """Write the ranges of numbers; return how many, -1 if the numbers do not ascend."""
    cdef int64_t at, found = 0
    cdef uint64_t first = numbers[0], last = first
    for at in range(1, count):
        if numbers[at] < last:
            return -1
        if numbers[at] - last > 1:
            starts[found], lasts[found] = first, last
            found += 1
            first = numbers[at]
        last = numbers[at]
    starts[found], lasts[found] = first, last
    return found + 1


cdef int64_t _find_blocks(Ranges of, int64_t most, uint64_t *keys) noexcept nogil:
    """Write the numbers of the blocks that have some of a set; return how many, -1 if they are too many."""
    cdef int64_t at, found = 0
    cdef uint64_t key
    for at in range(of.count):
        key = of.starts[at] >> BLOCK
        if found and keys[found - 1] >= key:
            key = keys[found - 1] + 1
        while key <= of.lasts[at] >> BLOCK:
            if found == most:
                return -1
            keys[found] = key
            found += 1
            key += 1
    return found


cdef void _set_bits(Ranges of, uint64_t first_key, uint64_t *words) noexcept nogil:
    """Set the bits of a set's numbers; block after block, as they were found."""
    cdef int64_t at
    cdef uint64_t number, key = first_key, more
    for at in range(of.count):
        number = of.starts[at]
        while True:
            if number >> BLOCK != key:
                key = number >> BLOCK
                words += BLOCK_WORDS
            more = min(of.lasts[at] - number, 63 - (number & 63))  # in the same word
            words[(number & LOW) >> 6] |= ~<uint64_t>0 >> (63 - more) << (number & 63)
            if number + more == of.lasts[at]:
                break
            number += more + 1


cdef void _test_bits(
    const uint64_t *keys, int64_t blocks, const uint64_t *words, const uint64_t *numbers, int64_t count, uint8_t *marks
) noexcept nogil:
    cdef int64_t place, block = 0
    cdef uint64_t key
    for place in range(count):
        key = numbers[place] >> BLOCK
        if keys[block] != key:
            block = _reach(keys, 0 if keys[block] > key else block, blocks, key)
            if block == blocks or keys[block] != key:
                block = min(block, blocks - 1)
                marks[place] = 0
                continue
        marks[place] = words[block * BLOCK_WORDS + ((numbers[place] & LOW) >> 6)] >> (numbers[place] & 63) & 1


cdef Ranges _ranges(const uint64_t[::1] starts, const uint64_t[::1] lasts) except *:
    cdef Ranges found
    if starts.shape[0] != lasts.shape[0]:
        raise ValueError("each range has a start and a last number")
    found.count = starts.shape[0]
    found.starts = &starts[0] if found.count else NULL
    found.lasts = &lasts[0] if found.count else NULL
    return found


def _cut(starts, lasts, int64_t count):
    """Return the ranges that were written; they take no more memory than they need."""
    if 8 * count > 7 * len(starts):
        return starts[:count], lasts[:count]
    return starts[:count].copy(), lasts[:count].copy()


def common_ranges(
    const uint64_t[::1] starts, const uint64_t[::1] lasts,
    const uint64_t[::1] other_starts, const uint64_t[::1] other_lasts,
):
    """See row_ranges.pyi."""
    cdef Ranges a = _ranges(starts, lasts), b = _ranges(other_starts, other_lasts)
    made_starts, made_lasts = np.empty(a.count + b.count + 1, np.uint64), np.empty(a.count + b.count + 1, np.uint64)
    cdef uint64_t[::1] to_starts = made_starts, to_lasts = made_lasts
    cdef int64_t found
    if is_long(STEPS * (a.count + b.count)):
        with nogil:
            _meet(a, b, &to_starts[0], &to_lasts[0], &found)
    else:
        _meet(a, b, &to_starts[0], &to_lasts[0], &found)
    return _cut(made_starts, made_lasts, found)


def count_common(
    const uint64_t[::1] starts, const uint64_t[::1] lasts,
    const uint64_t[::1] other_starts, const uint64_t[::1] other_lasts,
):
    """See row_ranges.pyi."""
    cdef Ranges a = _ranges(starts, lasts), b = _ranges(other_starts, other_lasts)
    cdef int64_t found
    cdef uint64_t rows
    if is_long(STEPS * (a.count + b.count)):
        with nogil:
            rows = _meet(a, b, NULL, NULL, &found)
    else:
        rows = _meet(a, b, NULL, NULL, &found)
    return rows


def united_ranges(
    const uint64_t[::1] starts, const uint64_t[::1] lasts,
    const uint64_t[::1] other_starts, const uint64_t[::1] other_lasts,
):
    """See row_ranges.pyi."""
    cdef Ranges a = _ranges(starts, lasts), b = _ranges(other_starts, other_lasts)
    made_starts, made_lasts = np.empty(a.count + b.count + 1, np.uint64), np.empty(a.count + b.count + 1, np.uint64)
    cdef uint64_t[::1] to_starts = made_starts, to_lasts = made_lasts
    cdef int64_t found
    if is_long(STEPS * (a.count + b.count)):
        with nogil:
            found = _unite(a, b, &to_starts[0], &to_lasts[0])
    else:
        found = _unite(a, b, &to_starts[0], &to_lasts[0])
    return _cut(made_starts, made_lasts, found)


def are_in_ranges(const uint64_t[::1] starts, const uint64_t[::1] lasts, const uint64_t[::1] numbers):
    """See row_ranges.pyi."""
    cdef Ranges among = _ranges(starts, lasts)
    cdef int64_t count = numbers.shape[0]
    found = np.empty(count, np.bool_)
    cdef uint8_t[::1] marks = found.view(np.uint8)
    if is_long(STEPS * count):
        with nogil:
            _mark(among, &numbers[0], count, &marks[0])
    elif count:
        _mark(among, &numbers[0], count, &marks[0])
    return found


def ranges_of(const uint64_t[::1] numbers):
    """See row_ranges.pyi."""
    cdef int64_t count = numbers.shape[0], found = 0
    made_starts, made_lasts = np.empty(count + 1, np.uint64), np.empty(count + 1, np.uint64)
    cdef uint64_t[::1] to_starts = made_starts, to_lasts = made_lasts
    if is_long(STEPS * count):
        with nogil:
            found = _find_ranges(&numbers[0], count, &to_starts[0], &to_lasts[0])
    elif count:
        found = _find_ranges(&numbers[0], count, &to_starts[0], &to_lasts[0])
    if found < 0:
        return None
    return _cut(made_starts, made_lasts, found)


def bits_of(const uint64_t[::1] starts, const uint64_t[::1] lasts, int64_t most):
    """See row_ranges.pyi."""
    cdef Ranges of = _ranges(starts, lasts)
    cdef int64_t at, found
    for at in range(of.count):
        if of.lasts[at] < of.starts[at] or (at and of.starts[at] <= of.lasts[at - 1]):
            raise ValueError("ranges ascend, and do not overlap")
    made = np.empty(max(most, 0) + 1, np.uint64)
    cdef uint64_t[::1] keys = made
    with nogil:
        found = _find_blocks(of, most, &keys[0])
    if found < 0:
        return None
    table = np.zeros(found * BLOCK_WORDS, np.uint64)
    cdef uint64_t[::1] words = table
    if found:
        with nogil:
            _set_bits(of, keys[0], &words[0])
    return made[:found].copy(), table


def are_in_bits(const uint64_t[::1] keys, const uint64_t[::1] words, const uint64_t[::1] numbers):
    """See row_ranges.pyi."""
    cdef int64_t count = numbers.shape[0]
    found = np.zeros(count, np.bool_)
    cdef uint8_t[::1] marks = found.view(np.uint8)
    if words.shape[0] != keys.shape[0] * BLOCK_WORDS:
        raise ValueError("each block has 1,024 words")
    if count and keys.shape[0]:
        if is_long(STEPS * count):
            with nogil:
                _test_bits(&keys[0], keys.shape[0], &words[0], &numbers[0], count, &marks[0])
        else:
            _test_bits(&keys[0], keys.shape[0], &words[0], &numbers[0], count, &marks[0])
    return found
