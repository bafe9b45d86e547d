# cython: language_level=3
"""Binary search in sorted numbers, and a sort of few numbers.  See places.pyi."""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from pennon.core.kernels.long_work cimport is_long

cdef enum:
    # Nanoseconds that a number takes, about.
    SEARCH_STEPS = 50
    SORT_STEPS = 50

ctypedef fused Number:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef void _find(
    Number like, const uint8_t *numbers, int64_t count, const uint8_t *others, int64_t wanted, bint behind,
    int64_t *found,
) noexcept nogil:
    """Write how many numbers come before each of the others; they may lie at any address."""
    cdef int64_t i, low, high, middle
    cdef Number number = like, other = like
    for i in range(wanted):
        memcpy(&other, others + i * <int64_t> sizeof(Number), sizeof(Number))
        low, high = 0, count
        while low < high:
            middle = low + (high - low) // 2
            memcpy(&number, numbers + middle * <int64_t> sizeof(Number), sizeof(Number))
            if number < other or (behind and number == other):
                low = middle + 1
            else:
                high = middle
        found[i] = low


cdef void _find_all(
    const void *numbers, int64_t count, const void *others, int64_t asked, int kind, bint behind, int64_t *found,
) noexcept nogil:
    if kind == -8:
        _find(<int64_t> 0, <const uint8_t *> numbers, count, <const uint8_t *> others, asked, behind, found)
    elif kind == 8:
        _find(<uint64_t> 0, <const uint8_t *> numbers, count, <const uint8_t *> others, asked, behind, found)
    elif kind == -4:
        _find(<int32_t> 0, <const uint8_t *> numbers, count, <const uint8_t *> others, asked, behind, found)
    elif kind == 4:
        _find(<uint32_t> 0, <const uint8_t *> numbers, count, <const uint8_t *> others, asked, behind, found)
    elif kind == -2:
        _find(<int16_t> 0, <const uint8_t *> numbers, count, <const uint8_t *> others, asked, behind, found)
    elif kind == 2:
        _find(<uint16_t> 0, <const uint8_t *> numbers, count, <const uint8_t *> others, asked, behind, found)
    elif kind == -1:
        _find(<int8_t> 0, <const uint8_t *> numbers, count, <const uint8_t *> others, asked, behind, found)
    else:
        _find(<uint8_t> 0, <const uint8_t *> numbers, count, <const uint8_t *> others, asked, behind, found)


cdef int _kind(const Py_buffer *view) noexcept:
    """Return the bytes of whole numbers, below 0 if they have a sign; 0 for other values."""
    cdef char code = view.format[0] if view.format != NULL else 0
    if code == 0 or view.format[1] != 0 or view.itemsize not in (1, 2, 4, 8):
        return 0
    if code in b"bhilq":
        return -<int> view.itemsize
    return <int> view.itemsize if code in b"BHILQ" else 0


def places(numbers, others, bint behind=False):
    """See places.pyi."""
    cdef Py_buffer among, wanted, room
    cdef int kind
    cdef int64_t count, asked
    if not numbers.flags.c_contiguous or not others.flags.c_contiguous:
        return numbers.searchsorted(others, "right" if behind else "left")
    PyObject_GetBuffer(numbers, &among, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
    try:
        PyObject_GetBuffer(others, &wanted, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
        try:
            kind = _kind(&among)
            if kind == 0 or kind != _kind(&wanted):
                return numbers.searchsorted(others, "right" if behind else "left")
            count, asked = among.len // among.itemsize, wanted.len // wanted.itemsize
            found = np.empty(asked, np.int64)
            PyObject_GetBuffer(found, &room, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
            try:
                if is_long(asked * SEARCH_STEPS):
                    with nogil:
                        _find_all(among.buf, count, wanted.buf, asked, kind, behind, <int64_t *> room.buf)
                else:
                    _find_all(among.buf, count, wanted.buf, asked, kind, behind, <int64_t *> room.buf)
            finally:
                PyBuffer_Release(&room)
            return found
        finally:
            PyBuffer_Release(&wanted)
    finally:
        PyBuffer_Release(&among)


def place_of_uint64(const uint64_t[::1] numbers, uint64_t other, bint behind=False):
    """See places.pyi."""
    cdef int64_t found = 0
    if numbers.shape[0]:
        _find_all(&numbers[0], numbers.shape[0], &other, 1, 8, behind, &found)
    return found


cdef struct Entry:
    uint64_t number
    int64_t place


cdef void _sort(Entry *entries, Entry *spare, int64_t count) noexcept nogil:
    """Sort entries by their numbers, equal ones by where they were."""
    cdef int64_t width = 1, start, middle, end, low, high, out
    cdef Entry *source = entries
    cdef Entry *target = spare
    while width < count:
        start = 0
        while start < count:
            middle, end = min(start + width, count), min(start + 2 * width, count)
            low, high = start, middle
            for out in range(start, end):
                if low < middle and (high == end or source[low].number <= source[high].number):
                    target[out] = source[low]
                    low += 1
                else:
                    target[out] = source[high]
                    high += 1
            start = end
        source, target = target, source
        width *= 2
    if source != entries:
        memcpy(entries, source, count * sizeof(Entry))


def sort_few(const uint64_t[::1] numbers):
    """See places.pyi."""
    cdef int64_t count = numbers.shape[0], i, last = -1
    sorted_numbers, made = np.empty(count, np.uint64), np.empty(count, np.int64)
    cdef uint64_t[::1] distinct = sorted_numbers
    cdef int64_t[::1] places = made
    cdef Entry *entries
    if not count:
        return sorted_numbers, made
    entries = <Entry *> malloc(2 * count * sizeof(Entry))
    if entries == NULL:
        raise MemoryError
    for i in range(count):
        entries[i].number, entries[i].place = numbers[i], i
    if is_long(count * SORT_STEPS):
        with nogil:
            _sort(entries, entries + count, count)
    else:
        _sort(entries, entries + count, count)
    for i in range(count):
        if not i or entries[i].number != entries[i - 1].number:
            last += 1
            distinct[last] = entries[i].number
        places[entries[i].place] = last
    free(entries)
    return sorted_numbers[: last + 1], made
