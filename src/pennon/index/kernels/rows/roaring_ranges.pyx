# cython: language_level=3
"""The union of sets of numbers that are Roaring bitmaps, as ranges.

All containers of all sets are found first, and put in order.  One that has its 65,536 numbers for itself becomes
ranges as it is; those that share them are laid upon one another as bits.  Every count is compared with the bytes
that are there: sets may be damaged.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset

import numpy as np

from pennon.errors import FormatError

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil
    int __builtin_popcountll(unsigned long long) noexcept nogil

cdef enum:
    ADDRESSES = 1
    TREEMAP = 2
    COOKIE = 12346
    COOKIE_WITH_RUNS = 12347
    OFFSETS_FROM = 4
    ARRAY_MOST = 4096
    BITMAP_BYTES = 8192
    WORDS = 1024
    MOST_CONTAINERS = 65536

cdef uint64_t LOW = 0xFFFFFFFF

cdef enum Form:
    VALUES
    BITS
    RUNS
    WHOLE


cdef struct Container:
    uint64_t key  # the numbers' upper 48 bits
    const uint8_t *body
    int64_t size  # how many numbers it says that it has
    Form form


cdef struct Ranges:
    uint64_t *starts
    uint64_t *lasts
    int64_t count


cdef inline uint16_t _two(const uint8_t *at) noexcept nogil:
    cdef uint16_t value
    memcpy(&value, at, 2)
    return value


cdef inline uint32_t _four(const uint8_t *at) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, at, 4)
    return value


# --- finding containers -----------------------------------------------------------------------------------


cdef const uint8_t *_bitmap(
    const uint8_t *at, const uint8_t *end, uint64_t high, Container *to, int64_t *found
) noexcept nogil:
    """Find the containers of a bitmap, unless there is no room for them; return what is behind it, NULL if damaged."""
    cdef const uint8_t *flags = NULL
    cdef const uint8_t *headers
    cdef int64_t count, number, size, key, before = -1
    cdef Container each
    if end - at < 8:
        return NULL
    if _two(at) == COOKIE_WITH_RUNS:
        count = <int64_t>_two(at + 2) + 1
        flags = at + 4
        size = 4 + (count + 7) // 8
    else:
        count = _four(at + 4)
        size = 8
        if _four(at) != COOKIE or count > MOST_CONTAINERS:
            return NULL
    headers = at + size
    size += 4 * count
    if flags == NULL or count >= OFFSETS_FROM:
        size += 4 * count
    if end - at < size:
        return NULL
    at += size
    for number in range(count):
        key = _two(headers + 4 * number)
        each.size = <int64_t>_two(headers + 4 * number + 2) + 1
        if key <= before:
            return NULL
        before = key
        if flags != NULL and flags[number >> 3] >> (number & 7) & 1:
            if end - at < 2:
                return NULL
            each.form, size = RUNS, 2 + 4 * <int64_t>_two(at)
        elif each.size <= ARRAY_MOST:
            each.form, size = VALUES, 2 * each.size
        else:
            each.form, size = BITS, BITMAP_BYTES
        if end - at < size:
            return NULL
        if to != NULL:
            each.key, each.body = high << 16 | <uint64_t>key, at
            to[found[0]] = each
        found[0] += 1
        at += size
    return at


cdef int64_t _containers(
    const uint8_t *at, const uint8_t *end, int form, Container *to
) noexcept nogil:
    """Find the containers of a set, unless there is no room for them; return how many, -1 if it is damaged."""
    cdef int64_t found = 0
    cdef uint64_t highs, number, high
    cdef int64_t width = 4 if form == ADDRESSES else 8, size
    cdef const uint8_t *body_end
    if end - at < width:
        return -1
    highs = _four(at)
    if form == TREEMAP:
        highs |= <uint64_t>_four(at + 4) << 32
    at += width
    number = 0
    while number < highs:
        number += 1
        if form == TREEMAP:
            if end - at < 4:
                return -1
            at = _bitmap(at + 4, end, _four(at), to, &found)
            if at == NULL:
                return -1
            continue
        if end - at < 8:
            return -1
        high, size = _four(at), _four(at + 4)
        at += 8
        if end - at < size:
            return -1
        if size and _bitmap(at, at + size, high, to, &found) == NULL:
            return -1
        if not size:
            if to != NULL:
                to[found].key, to[found].body, to[found].size, to[found].form = high << 16, at, 1, WHOLE
            found += 1
        at += size
    return found


cdef int _by_key(const void *a, const void *b) noexcept nogil:
    cdef uint64_t left = (<const Container *>a).key, right = (<const Container *>b).key
    return (left > right) - (left < right)


cdef void _sort(Container *containers, int64_t count) noexcept nogil:
    cdef int64_t at
    for at in range(1, count):
        if containers[at].key < containers[at - 1].key:
            qsort(containers, count, sizeof(Container), _by_key)
            return


cdef int64_t _most_ranges(const Container *containers, int64_t count) noexcept nogil:
    """Return how many ranges there are at most: each takes some bytes of the sets."""
    cdef int64_t at, most = 0
    for at in range(count):
        if containers[at].form == RUNS:
            most += _two(containers[at].body)
        else:
            most += min(containers[at].size, MOST_CONTAINERS // 2)
    return most


# --- their numbers ----------------------------------------------------------------------------------------


cdef inline void _put(Ranges *to, uint64_t first, uint64_t last) noexcept nogil:
    if to.count and to.lasts[to.count - 1] + 1 == first:
        to.lasts[to.count - 1] = last
    else:
        to.starts[to.count], to.lasts[to.count] = first, last
        to.count += 1


cdef void _put_bits(Ranges *to, uint64_t base, const uint64_t *words) noexcept nogil:
    cdef int64_t at
    cdef int low, ones
    cdef uint64_t word
    for at in range(WORDS):
        word = words[at]
        while word:
            low = __builtin_ctzll(word)
            word = ~(word >> low)
            ones = __builtin_ctzll(word) if word else 64
            _put(to, base + 64 * at + low, base + 64 * at + low + ones - 1)
            if low + ones == 64:
                break
            word = words[at] & ~<uint64_t>0 << (low + ones)


cdef bint _put_values(Ranges *to, uint64_t base, const Container *of) noexcept nogil:
    cdef int64_t at
    cdef uint64_t value, first = _two(of.body), last = first
    for at in range(1, of.size):
        value = _two(of.body + 2 * at)
        if value <= last:
            return False
        if value != last + 1:
            _put(to, base + first, base + last)
            first = value
        last = value
    _put(to, base + first, base + last)
    return True


cdef bint _are_runs(const Container *of) noexcept nogil:
    """Tell whether the runs of a container ascend, do not overlap, and have as many numbers as it says."""
    cdef int64_t at, start, length, end = 0, sum = 0
    for at in range(_two(of.body)):
        start, length = _two(of.body + 2 + 4 * at), <int64_t>_two(of.body + 4 + 4 * at) + 1
        if start < end or start + length > MOST_CONTAINERS:
            return False
        end = start + length
        sum += length
    return sum == of.size


cdef bint _read_bits(const Container *of, uint64_t *words) noexcept nogil:
    cdef int64_t at, sum = 0
    memcpy(words, of.body, BITMAP_BYTES)
    for at in range(WORDS):
        sum += __builtin_popcountll(words[at])
    return sum == of.size


cdef bint _put_container(Ranges *to, const Container *of, uint64_t *words) noexcept nogil:
    """Write the ranges of a container that is the only one of its key; tell whether it is not damaged."""
    cdef uint64_t base = of.key << 16, start
    cdef int64_t at
    if of.form == VALUES:
        return _put_values(to, base, of)
    if of.form == WHOLE:
        _put(to, base, base | LOW)
        return True
    if of.form == BITS:
        if not _read_bits(of, words):
            return False
        _put_bits(to, base, words)
        return True
    if not _are_runs(of):
        return False
    for at in range(_two(of.body)):
        start = base + _two(of.body + 2 + 4 * at)
        _put(to, start, start + _two(of.body + 4 + 4 * at))
    return True


cdef bint _lay(uint64_t *words, const Container *of, uint64_t *own) noexcept nogil:
    """Set the bits of a container's numbers; tell whether it is not damaged."""
    cdef int64_t at, value, before = -1, end
    if of.form == VALUES:
        for at in range(of.size):
            value = _two(of.body + 2 * at)
            if value <= before:
                return False
            words[value >> 6] |= <uint64_t>1 << (value & 63)
            before = value
        return True
    if of.form == BITS:
        if not _read_bits(of, own):
            return False
        for at in range(WORDS):
            words[at] |= own[at]
        return True
    if not _are_runs(of):
        return False
    for at in range(_two(of.body)):
        value = _two(of.body + 2 + 4 * at)
        end = value + _two(of.body + 4 + 4 * at)
        while value <= end:
            if not value & 63 and end - value >= 63:
                words[value >> 6] = ~<uint64_t>0
                value += 64
            else:
                words[value >> 6] |= <uint64_t>1 << (value & 63)
                value += 1
    return True


cdef bint _unite(Ranges *to, const Container *containers, int64_t count) noexcept nogil:
    """Write the ranges of containers in order; tell whether none is damaged."""
    cdef uint64_t words[WORDS]
    cdef uint64_t own[WORDS]
    cdef int64_t at = 0, after, each
    cdef bint is_whole
    while at < count:
        after = at + 1
        is_whole = containers[at].form == WHOLE
        while after < count and containers[after].key == containers[at].key:
            is_whole = is_whole or containers[after].form == WHOLE
            after += 1
        if is_whole:
            _put(to, containers[at].key << 16, containers[at].key << 16 | LOW)
            while after < count and containers[after].key >> 16 == containers[at].key >> 16:
                after += 1
        elif after == at + 1:
            if not _put_container(to, &containers[at], own):
                return False
        else:
            memset(words, 0, BITMAP_BYTES)
            for each in range(at, after):
                if not _lay(words, &containers[each], own):
                    return False
            _put_bits(to, containers[at].key << 16, words)
        at = after
    return True


def parse_sets(const uint8_t[::1] data, const int64_t[::1] borders, int form):
    """See roaring_ranges.pyi."""
    cdef int64_t count = borders.shape[0] - 1, at, found = 0, one = 0
    cdef uint8_t nothing = 0
    cdef const uint8_t *bytes_of = &data[0] if data.shape[0] else &nothing
    cdef Ranges to
    cdef bint is_right
    if count < 0 or form < ADDRESSES or form > TREEMAP:
        raise ValueError("sets have borders, one more than there are sets, and one of two forms")
    for at in range(count):
        if borders[at + 1] < borders[at]:
            raise ValueError("the borders of sets fall")
    if borders[0] < 0 or borders[count] > data.shape[0]:
        raise ValueError("the borders of sets leave the data")
    with nogil:
        for at in range(count):
            one = _containers(bytes_of + borders[at], bytes_of + borders[at + 1], form, NULL)
            if one < 0:
                break
            found += one
    if one < 0:
        raise FormatError(f"a set of rows of {borders[at + 1] - borders[at]} bytes is cut off or damaged")
    cdef uint8_t[::1] room = np.empty((found + 1) * sizeof(Container), np.uint8)
    cdef Container *containers = <Container *>&room[0]
    cdef int64_t most
    with nogil:
        found = 0
        for at in range(count):
            found += _containers(
                bytes_of + borders[at], bytes_of + borders[at + 1], form, containers + found
            )
        _sort(containers, found)
        most = _most_ranges(containers, found)
    made_starts, made_lasts = np.empty(most + 1, np.uint64), np.empty(most + 1, np.uint64)
    cdef uint64_t[::1] starts = made_starts, lasts = made_lasts
    to.starts, to.lasts, to.count = &starts[0], &lasts[0], 0
    with nogil:
        is_right = _unite(&to, containers, found)
    if not is_right:
        raise FormatError(f"a set of rows in {data.shape[0]} bytes has other numbers than it says")
    if 8 * to.count > 7 * most:
        return made_starts[:to.count], made_lasts[:to.count]
    return made_starts[:to.count].copy(), made_lasts[:to.count].copy()
