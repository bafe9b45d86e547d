"""The order of values: unsigned words and strings of bytes, equal ones in the order in which they stand.

Words are sorted by their digits, the last one first, and digits that all words share are passed over; short
words are sorted together with their places, as one word.
Strings are sorted by their first eight bytes as one word, then those that share these by the next
eight, and so on; few strings are compared as they are.

Among strings that are in order the places of others are found by halving.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

import numpy as np

ctypedef fused Offset:
    int32_t
    int64_t

cdef enum:
    DIGIT_BITS = 11
    DIGITS = 6
    VALUES = 2048
    FEW = 24
    WORD = 8


cdef struct Item:
    uint64_t key
    int64_t place


cdef struct Range:
    int64_t start
    int64_t end
    int64_t depth


cdef void _few_words(Item *items, int64_t count) noexcept nogil:
    """Sort some items where they stand."""
    cdef int64_t at, to
    cdef Item moved
    for at in range(1, count):
        moved = items[at]
        to = at
        while to > 0 and items[to - 1].key > moved.key:
            items[to] = items[to - 1]
            to -= 1
        items[to] = moved


cdef void _words(Item *items, Item *spare, int64_t count, int64_t *counts) noexcept nogil:
    """Sort items by their keys; ``spare`` has room for as many, ``counts`` for all digits."""
    cdef int64_t at, digit, total, here, shift
    cdef int64_t *mine
    cdef uint64_t key
    cdef Item *source = items
    cdef Item *target = spare
    cdef Item *swapped
    if count <= FEW:
        _few_words(items, count)
        return
    memset(counts, 0, DIGITS * VALUES * sizeof(int64_t))
    for at in range(count):
        key = items[at].key
        for digit in range(DIGITS):
            counts[digit * VALUES + <int64_t> (key & (VALUES - 1))] += 1
            key >>= DIGIT_BITS
    for digit in range(DIGITS):
        mine = counts + digit * VALUES
        shift = digit * DIGIT_BITS
        if mine[(source[0].key >> shift) & (VALUES - 1)] == count:
            continue  # all share it
        total = 0
        for at in range(VALUES):
            here = mine[at]
            mine[at] = total
            total += here
        for at in range(count):
            here = (source[at].key >> shift) & (VALUES - 1)
            target[mine[here]] = source[at]
            mine[here] += 1
        swapped, source, target = source, target, source
    if source != items:
        memcpy(items, source, count * sizeof(Item))


cdef int _bits_of(uint64_t number) noexcept nogil:
    """Return how many bits a number needs."""
    cdef int bits = 0
    while number:
        bits += 1
        number >>= 1
    return bits


cdef void _packed(
    uint64_t *items, uint64_t *spare, int64_t count, int64_t *counts, int first_bit, int bits
) noexcept nogil:
    """Sort words by some of their bits; ``spare`` has room for as many, ``counts`` for all digits."""
    cdef int64_t at, digit, digits = (bits + DIGIT_BITS - 1) // DIGIT_BITS, total, here, shift
    cdef int64_t *mine
    cdef uint64_t key
    cdef uint64_t *source = items
    cdef uint64_t *target = spare
    cdef uint64_t *swapped
    memset(counts, 0, digits * VALUES * sizeof(int64_t))
    for at in range(count):
        key = items[at] >> first_bit
        for digit in range(digits):
            counts[digit * VALUES + <int64_t> (key & (VALUES - 1))] += 1
            key >>= DIGIT_BITS
    for digit in range(digits):
        mine = counts + digit * VALUES
        shift = first_bit + digit * DIGIT_BITS
        if mine[(source[0] >> shift) & (VALUES - 1)] == count:
            continue  # all share it
        total = 0
        for at in range(VALUES):
            here = mine[at]
            mine[at] = total
            total += here
        for at in range(count):
            here = (source[at] >> shift) & (VALUES - 1)
            target[mine[here]] = source[at]
            mine[here] += 1
        swapped, source, target = source, target, source
    if source != items:
        memcpy(items, source, count * sizeof(uint64_t))


def order_words(const uint64_t[::1] keys, uint64_t least):
    """Return the places of words in ascending order; see the stub."""
    cdef int64_t count = keys.shape[0], at
    cdef uint64_t greatest = 0, mask
    cdef bint is_packed
    cdef int place_bits = _bits_of(count - 1 if count else 0), key_bits
    cdef uint64_t *words
    cdef uint64_t *others = NULL
    cdef Item *items = NULL
    cdef Item *spare = NULL
    cdef int64_t *counts
    found = np.empty(count, np.int64)
    cdef int64_t[::1] places = found
    if count == 0:
        return found
    with nogil:
        for at in range(count):
            if keys[at] - least > greatest:
                greatest = keys[at] - least
    key_bits = _bits_of(greatest)
    is_packed = count > FEW and place_bits + key_bits <= 64
    counts = <int64_t *> malloc(DIGITS * VALUES * sizeof(int64_t))
    if is_packed:
        others = <uint64_t *> malloc(count * sizeof(uint64_t))
    else:
        items = <Item *> malloc(count * sizeof(Item))
        spare = <Item *> malloc(count * sizeof(Item))
    if counts == NULL or (others == NULL if is_packed else items == NULL or spare == NULL):
        free(counts)
        free(others)
        free(items)
        free(spare)
        raise MemoryError
    with nogil:
        if others != NULL:  # a key and its place are one word, and what is found is made where it stays
            words = <uint64_t *> &places[0]
            mask = (<uint64_t> 1 << place_bits) - 1
            for at in range(count):
                words[at] = (keys[at] - least) << place_bits | <uint64_t> at
            _packed(words, others, count, counts, place_bits, key_bits)
            for at in range(count):
                places[at] = <int64_t> (words[at] & mask)
        else:
            for at in range(count):
                items[at].key = keys[at] - least
                items[at].place = at
            _words(items, spare, count, counts)
            for at in range(count):
                places[at] = items[at].place
    free(counts)
    free(others)
    free(items)
    free(spare)
    return found


cdef uint64_t _word_at(const uint8_t *value, int64_t size, int64_t depth) noexcept nogil:
    """Return the eight bytes of a string from a position on, the first one the highest; zeros behind its end."""
    cdef uint64_t word = 0
    cdef int64_t at, end = size - depth
    if end > WORD:
        end = WORD
    for at in range(end):
        word |= (<uint64_t> value[depth + at]) << (56 - 8 * at)
    return word


cdef int _compare(
    const uint8_t *data, const Offset *offsets, int64_t a, int64_t b, int64_t depth
) noexcept nogil:
    """Compare two strings that share what lies before a position."""
    cdef int64_t m = offsets[a + 1] - offsets[a] - depth, n = offsets[b + 1] - offsets[b] - depth
    cdef int found = 0
    if m > 0 and n > 0:
        found = memcmp(data + offsets[a] + depth, data + offsets[b] + depth, m if m < n else n)
    if found == 0:
        return (m > n) - (m < n)
    return found


cdef void _few_strings(
    const uint8_t *data, const Offset *offsets, Item *items, int64_t count, int64_t depth
) noexcept nogil:
    cdef int64_t at, to
    cdef Item moved
    for at in range(1, count):
        moved = items[at]
        to = at
        while to > 0 and _compare(data, offsets, items[to - 1].place, moved.place, depth) > 0:
            items[to] = items[to - 1]
            to -= 1
        items[to] = moved


cdef int64_t _ended_first(
    const Offset *offsets, Item *items, Item *spare, int64_t count, int64_t depth
) noexcept nogil:
    """Put strings that end within the next word before the others, shorter ones first; return how many."""
    cdef int64_t ends = 0, length, at, size
    for length in range(WORD + 1):
        for at in range(count):
            size = offsets[items[at].place + 1] - offsets[items[at].place] - depth
            if size == length:
                spare[ends] = items[at]
                ends += 1
    if ends == 0 or ends == count:
        if ends:
            memcpy(items, spare, count * sizeof(Item))
        return ends
    size = ends
    for at in range(count):
        if offsets[items[at].place + 1] - offsets[items[at].place] - depth > WORD:
            spare[size] = items[at]
            size += 1
    memcpy(items, spare, count * sizeof(Item))
    return ends


cdef int _strings(
    const uint8_t *data, const Offset *offsets, int64_t count, Item *items, Item *spare, int64_t *counts
) noexcept nogil:
    """Sort strings; return -1 if there is no memory."""
    cdef int64_t room = 64, waiting = 1, at, start, end, first, ended
    cdef Range now
    cdef Range *more
    cdef Range *ranges = <Range *> malloc(room * sizeof(Range))
    if ranges == NULL:
        return -1
    ranges[0].start, ranges[0].end, ranges[0].depth = 0, count, 0
    while waiting:
        waiting -= 1
        now = ranges[waiting]
        start, end = now.start, now.end
        if end - start <= FEW:
            _few_strings(data, offsets, items + start, end - start, now.depth)
            continue
        for at in range(start, end):
            first = items[at].place
            items[at].key = _word_at(
                data + offsets[first], offsets[first + 1] - offsets[first], now.depth
            )
        _words(items + start, spare, end - start, counts)
        first = start
        while first < end:
            at = first + 1
            while at < end and items[at].key == items[first].key:
                at += 1
            if at - first > 1:
                ended = _ended_first(offsets, items + first, spare, at - first, now.depth)
                if at - first - ended > 1:
                    if waiting == room:
                        more = <Range *> realloc(ranges, 2 * room * sizeof(Range))
                        if more == NULL:
                            free(ranges)
                            return -1
                        ranges = more
                        room *= 2
                    ranges[waiting].start = first + ended
                    ranges[waiting].end = at
                    ranges[waiting].depth = now.depth + WORD
                    waiting += 1
            first = at
    free(ranges)
    return 0


def order_strings(const uint8_t[::1] data, const Offset[::1] offsets):
    """Return the places of strings in ascending order; see the stub."""
    cdef int64_t count = offsets.shape[0] - 1, at
    cdef const uint8_t *start = NULL
    cdef Item *items
    cdef Item *spare
    cdef int64_t *counts
    cdef bint falls
    cdef int status = 0
    if count < 0:
        raise ValueError("the offsets of strings are one more than these")
    found = np.empty(count, np.int64)
    cdef int64_t[::1] places = found
    falls = offsets[0] < 0 or offsets[count] > data.shape[0]
    for at in range(count):
        falls = falls or offsets[at + 1] < offsets[at]
    if falls:
        raise ValueError("the offsets of strings fall, or leave the data")
    if count == 0:
        return found
    if data.shape[0]:
        start = &data[0]
    items = <Item *> malloc(count * sizeof(Item))
    spare = <Item *> malloc(count * sizeof(Item))
    counts = <int64_t *> malloc(DIGITS * VALUES * sizeof(int64_t))
    if items == NULL or spare == NULL or counts == NULL:
        status = -1
    else:
        with nogil:
            for at in range(count):
                items[at].place = at
            status = _strings(start, &offsets[0], count, items, spare, counts)
            for at in range(count):
                places[at] = items[at].place
    free(items)
    free(spare)
    free(counts)
    if status:
        raise MemoryError
    return found


def places_of_strings(
    const uint8_t[::1] data,
    const Offset[::1] offsets,
    const uint8_t[::1] others,
    const Offset[::1] borders,
    bint behind,
):
    """Return how many strings come before each of others; see the stub."""
    cdef int64_t count = offsets.shape[0] - 1, wanted = borders.shape[0] - 1
    cdef int64_t at, low, high, middle, size, length
    cdef const uint8_t *start = NULL
    cdef const uint8_t *other = NULL
    cdef int order
    cdef bint leaves = 0
    if count < 0 or wanted < 0:
        raise ValueError("the offsets of strings are one more than these")
    found = np.empty(wanted, np.int64)
    cdef int64_t[::1] places = found
    if data.shape[0]:
        start = &data[0]
    if others.shape[0]:
        other = &others[0]
    with nogil:
        for at in range(wanted):
            size = borders[at + 1] - borders[at]
            leaves = leaves or borders[at] < 0 or size < 0 or borders[at + 1] > others.shape[0]
            low, high = 0, count
            while low < high and not leaves:
                middle = (low + high) // 2
                length = offsets[middle + 1] - offsets[middle]
                if offsets[middle] < 0 or length < 0 or offsets[middle + 1] > data.shape[0]:
                    leaves = 1
                    break
                order = 0
                if size > 0 and length > 0:
                    order = memcmp(
                        start + offsets[middle], other + borders[at], size if size < length else length
                    )
                if order == 0:
                    order = (length > size) - (length < size)
                if order < 0 or (behind and order == 0):
                    low = middle + 1
                else:
                    high = middle
            places[at] = low
    if leaves:
        raise ValueError("the offsets of strings fall, or leave the data")
    return found
