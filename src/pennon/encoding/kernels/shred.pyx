# cython: language_level=3
"""Validity bitmaps and offsets to repetition and definition levels.  See shred.pyi."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t

import numpy as np

ctypedef fused Offset:
    int32_t
    int64_t

cdef enum:
    CLOSED = 0x8000


cdef inline bint _is_valid(const uint8_t* bits, int64_t bit) noexcept nogil:
    return bits[bit >> 3] >> (bit & 7) & 1


def add_items(
    uint16_t[::1] definition, const uint8_t[::1] validity, int64_t bit_offset, uint16_t null_mark
):
    """See shred.pyi."""
    cdef Py_ssize_t i, count = definition.shape[0]
    cdef int64_t slot = 0, slots = 0, nulls = 0
    cdef uint16_t is_null
    for i in range(count):
        slots += not definition[i] & CLOSED
    if bit_offset < 0 or (bit_offset + slots + 7) // 8 > validity.shape[0]:
        raise ValueError("the bitmap is shorter than the slots")
    with nogil:
        for i in range(count if slots == count else 0):  # without branches, as NULLs come anyhow
            is_null = (definition[i] == 0) & (1 ^ _is_valid(&validity[0], bit_offset + i))
            definition[i] |= <uint16_t>(is_null * null_mark)
            nulls += is_null
        for i in range(count if slots < count else 0):
            if definition[i] & CLOSED:
                continue
            if definition[i] == 0 and not _is_valid(&validity[0], bit_offset + slot):
                definition[i] = null_mark
                nulls += 1
            slot += 1
    return nulls


cdef int64_t _measure(
    const uint16_t* definition, Py_ssize_t count, const Offset* offsets,
    const uint8_t* bits, int64_t bit_offset, int64_t* found,
) noexcept nogil:
    """Return how many levels there will be, or -1 if offsets fall; ``found``: nulls, empty, garbage."""
    cdef Py_ssize_t i
    cdef int64_t slot = 0, levels = 0, length
    for i in range(count):
        if definition[i] & CLOSED:
            levels += 1
            continue
        length = offsets[slot + 1] - offsets[slot]
        if length < 0:
            return -1
        if definition[i] != 0:
            found[2] += length
            levels += 1
        elif bits != NULL and not _is_valid(bits, bit_offset + slot):
            found[0] += 1
            found[2] += length
            levels += 1
        elif length == 0:
            found[1] += 1
            levels += 1
        else:
            levels += length
        slot += 1
    return levels


cdef void _spread(
    const uint16_t* rep, const uint16_t* definition, Py_ssize_t count, const Offset* offsets,
    const uint8_t* bits, int64_t bit_offset, uint16_t rep_level, uint16_t null_mark,
    uint16_t empty_mark, uint16_t* out_rep, uint16_t* out_def,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef int64_t slot = 0, length, item, at = 0
    for i in range(count):
        if definition[i] & CLOSED:
            out_rep[at] = rep[i]
            out_def[at] = definition[i]
            at += 1
            continue
        length = offsets[slot + 1] - offsets[slot]
        out_rep[at] = rep[i] if rep[i] else rep_level
        out_def[at] = 0
        if definition[i] != 0:
            out_def[at] = definition[i] | CLOSED
        elif bits != NULL and not _is_valid(bits, bit_offset + slot):
            out_def[at] = null_mark | CLOSED
        elif length == 0:
            out_def[at] = empty_mark | CLOSED
        else:
            for item in range(1, length):
                out_rep[at + item] = 0
                out_def[at + item] = 0
            at += length - 1
        at += 1
        slot += 1


def add_lists(
    const uint16_t[::1] rep, const uint16_t[::1] definition, const Offset[::1] offsets, validity,
    int64_t bit_offset, uint16_t rep_level, uint16_t null_mark, uint16_t empty_mark,
):
    """See shred.pyi."""
    cdef Py_ssize_t i, count = definition.shape[0]
    cdef int64_t slots = 0, levels = 0
    cdef int64_t[3] found
    cdef const uint8_t[::1] bitmap
    cdef const uint8_t* bits = NULL
    for i in range(count):
        slots += not definition[i] & CLOSED
    if rep.shape[0] != count or offsets.shape[0] != slots + 1:
        raise ValueError("levels and lists differ in number")
    if validity is not None and slots:
        bitmap = validity
        if bit_offset < 0 or (bit_offset + slots + 7) // 8 > bitmap.shape[0]:
            raise ValueError("the bitmap is shorter than the slots")
        bits = &bitmap[0]
    found[0] = found[1] = found[2] = 0
    if count:
        with nogil:
            levels = _measure[Offset](
                &definition[0], count, &offsets[0], bits, bit_offset, &found[0]
            )
    if levels < 0:
        raise ValueError("offsets fall")
    new_rep = np.empty(levels, np.uint16)
    new_def = np.empty(levels, np.uint16)
    if levels == 0:
        return new_rep, new_def, 0, 0, 0
    cdef uint16_t[::1] out_rep = new_rep
    cdef uint16_t[::1] out_def = new_def
    with nogil:
        _spread[Offset](
            &rep[0], &definition[0], count, &offsets[0], bits, bit_offset, rep_level, null_mark,
            empty_mark, &out_rep[0], &out_def[0],
        )
    return new_rep, new_def, found[0], found[1], found[2]


def number_levels(uint16_t[::1] definition, const uint16_t[::1] numbers):
    """See shred.pyi."""
    cdef Py_ssize_t i, count = definition.shape[0]
    cdef uint16_t most = 0
    for i in range(count):
        most = max(most, <uint16_t>(definition[i] & (CLOSED - 1)))
    if count and most >= numbers.shape[0]:
        raise ValueError("a mark without a number")
    with nogil:
        for i in range(count):
            definition[i] = numbers[definition[i] & (CLOSED - 1)]


def count_levels(const uint16_t[::1] definition, const int64_t[::1] counts, int max_visible):
    """See shred.pyi."""
    cdef Py_ssize_t chunk, chunks = counts.shape[0]
    cdef int64_t at = 0, taken, began, end = definition.shape[0]
    cdef bint lacking = False
    found = np.zeros(chunks, np.int64)
    cdef int64_t[::1] out = found
    with nogil:
        for chunk in range(chunks):
            began = at
            taken = 0
            while taken < counts[chunk]:
                if at == end:
                    lacking = True
                    break
                taken += definition[at] <= max_visible
                at += 1
            if chunk == chunks - 1:
                at = end
            out[chunk] = at - began
    if lacking:
        raise ValueError("there are fewer visible levels than items")
    return found


def index_rows(const uint16_t[::1] rep, const int64_t[::1] counts, int row_level):
    """See shred.pyi."""
    cdef Py_ssize_t chunk, chunks = counts.shape[0]
    cdef int64_t at = 0, i, last, end
    index = np.zeros((chunks, 2), np.uint64)
    cdef uint64_t[:, ::1] out = index
    for chunk in range(chunks):
        if counts[chunk] < 1 or counts[chunk] > rep.shape[0] - at:
            raise ValueError("chunks do not divide the levels")
        at += counts[chunk]
    if at != rep.shape[0]:
        raise ValueError("chunks do not divide the levels")
    at = 0
    with nogil:
        for chunk in range(chunks):
            end = at + counts[chunk]
            if chunk and rep[at] == row_level:
                out[chunk - 1, 0] += 1
                out[chunk - 1, 1] = 0
            last = at
            for i in range(at + 1, end):
                if rep[i] == row_level:
                    out[chunk, 0] += 1
                    last = i
            if chunk == chunks - 1:
                out[chunk, 0] += 1
            else:
                out[chunk, 1] = end - last
            at = end
    return index
