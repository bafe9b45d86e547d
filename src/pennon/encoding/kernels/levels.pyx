# cython: language_level=3
"""Repetition and definition levels to validity bitmaps and offsets.  See levels.pyi."""

from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint8_t, uint16_t
from libc.string cimport memset

import numpy as np

from pennon.errors import FormatError
from pennon.room import room

ctypedef fused Offset:
    int32_t
    int64_t


def validity_of(
    const uint16_t[::1] definition, const uint8_t[::1] visible, int valid_to
):
    """See levels.pyi."""
    cdef Py_ssize_t i, count = definition.shape[0], levels = visible.shape[0]
    cdef int64_t slots = 0, valid = 0
    cdef int level, worst = 0
    cdef uint8_t bit
    cdef bint all_visible = True
    for i in range(levels):
        if not visible[i]:
            all_visible = False
    bitmap = np.zeros((count + 7) // 8, np.uint8)
    if count == 0:
        return bitmap, 0, 0
    cdef uint8_t[::1] bits = bitmap
    with nogil:
        for i in range(count):
            if definition[i] > worst:
                worst = definition[i]
        if worst < levels:
            if all_visible:
                valid = _pack_all(&definition[0], count, valid_to, &bits[0])
                slots = count
            else:
                for i in range(count):
                    level = definition[i]
                    if visible[level]:
                        bit = level <= valid_to
                        bits[slots >> 3] |= bit << (slots & 7)
                        valid += bit
                        slots += 1
    if worst >= levels:
        raise FormatError(f"definition level {worst}, where the highest is {levels - 1}")
    return bitmap[: (slots + 7) // 8], slots, slots - valid


cdef int64_t _pack_all(
    const uint16_t* levels, Py_ssize_t count, int valid_to, uint8_t* bits
) noexcept nogil:
    """Set a bit for each level up to ``valid_to``; return how many there are."""
    cdef Py_ssize_t byte, whole = count // 8, i
    cdef int64_t valid = 0
    cdef int j
    cdef uint8_t out, one
    cdef const uint16_t* at
    for byte in range(whole):
        at = levels + 8 * byte
        out = 0
        for j in range(8):
            one = at[j] <= valid_to
            out |= one << j
            valid += one
        bits[byte] = out
    for i in range(8 * whole, count):
        one = levels[i] <= valid_to
        bits[i >> 3] |= one << (i & 7)
        valid += one
    return valid


cdef int64_t _plain_lists(
    const uint16_t* rep, Py_ssize_t count, Offset* offsets, uint16_t* outer_rep
) noexcept nogil:
    """Lists without NULL and empty ones: every level is an item.  Return the number of lists."""
    cdef Py_ssize_t i
    cdef int64_t lists = 0
    for i in range(count):
        if rep[i]:
            offsets[lists] = <Offset>i
            outer_rep[lists] = rep[i] - 1
            lists += 1
    offsets[lists] = <Offset>count
    return lists


cdef int64_t _mixed_lists(
    const uint16_t* rep, const uint16_t* definition, Py_ssize_t count,
    int valid_to, int empty_level, int highest,
    Offset* offsets, uint8_t* bits, uint16_t* outer_rep, uint16_t* outer_def,
    int64_t* kept, int64_t* nulls,
) noexcept nogil:
    """Return the number of lists; ``kept`` counts the levels that stay for the layers outside."""
    cdef Py_ssize_t i
    cdef int64_t lists = 0, items = 0, out = 0
    cdef int level
    for i in range(count):
        if rep[i] == 0:
            items += 1
            continue
        level = definition[i]
        outer_rep[out] = rep[i] - 1
        outer_def[out] = definition[i]
        out += 1
        if level > highest:
            continue
        offsets[lists] = <Offset>items
        if level <= valid_to:
            items += 1
            bits[lists >> 3] |= <uint8_t>(1 << (lists & 7))
        elif level == empty_level:
            bits[lists >> 3] |= <uint8_t>(1 << (lists & 7))
        else:
            nulls[0] += 1
        lists += 1
    offsets[lists] = <Offset>items
    kept[0] = out
    return lists


def lists_of(
    const uint16_t[::1] rep, definition, int valid_to, int empty_level, int highest, bint wide,
):
    """See levels.pyi."""
    cdef Py_ssize_t count = rep.shape[0]
    cdef int64_t lists = 0, kept = 0, nulls = 0
    cdef const uint16_t[::1] levels
    cdef uint8_t[::1] bits
    cdef uint16_t[::1] reps, defs
    cdef int32_t[::1] narrow
    cdef int64_t[::1] broad
    if not wide and count > INT32_MAX:
        raise OverflowError("the offsets do not fit 32 bits")
    offsets = room(count + 1, np.int64 if wide else np.int32)
    offsets[0] = 0
    outer_rep = room(count, np.uint16)
    if count == 0:
        return offsets, None, outer_rep, None if definition is None else outer_rep
    if rep[0] == 0:
        raise FormatError("the levels of a page of lists begin in the middle of a list")
    reps = outer_rep
    if wide:
        broad = offsets
    else:
        narrow = offsets
    if definition is None:
        with nogil:
            if wide:
                lists = _plain_lists[int64_t](&rep[0], count, &broad[0], &reps[0])
            else:
                lists = _plain_lists[int32_t](&rep[0], count, &narrow[0], &reps[0])
        return offsets[: lists + 1], None, outer_rep[:lists], None
    levels = definition
    if levels.shape[0] != count:
        raise FormatError(f"{count} repetition levels, but {levels.shape[0]} definition levels")
    validity = np.zeros((count + 7) // 8, np.uint8)
    outer_def = room(count, np.uint16)
    bits = validity
    defs = outer_def
    with nogil:
        if wide:
            lists = _mixed_lists[int64_t](
                &rep[0], &levels[0], count, valid_to, empty_level, highest,
                &broad[0], &bits[0], &reps[0], &defs[0], &kept, &nulls,
            )
        else:
            lists = _mixed_lists[int32_t](
                &rep[0], &levels[0], count, valid_to, empty_level, highest,
                &narrow[0], &bits[0], &reps[0], &defs[0], &kept, &nulls,
            )
    return (
        offsets[: lists + 1],
        validity[: (lists + 7) // 8] if nulls else None,
        outer_rep[:kept],
        outer_def[:kept],
    )


def every_nth(
    const uint16_t[::1] rep, const uint16_t[::1] definition, const uint8_t[::1] visible,
    int64_t dimension,
):
    """See levels.pyi."""
    cdef Py_ssize_t i, count = definition.shape[0], out = 0
    cdef int64_t left = 0
    cdef bint fine = True, has_rep = rep.shape[0] == count
    if dimension < 1:
        raise ValueError("a list of no items has no levels of its own")
    outer_rep = room(count if has_rep else 0, np.uint16)
    outer_def = room(count, np.uint16)
    cdef uint16_t[::1] reps = outer_rep
    cdef uint16_t[::1] defs = outer_def
    with nogil:
        for i in range(count):
            if definition[i] >= visible.shape[0]:
                fine = False
                break
            if not visible[definition[i]]:
                fine = left == 0
                if not fine:
                    break
            elif left > 0:
                left -= 1
                continue
            else:
                left = dimension - 1
            defs[out] = definition[i]
            if has_rep:
                reps[out] = rep[i]
            out += 1
    if left or not fine:
        raise FormatError(f"levels that are no whole lists of {dimension} items")
    return outer_rep[:out] if has_rep else None, outer_def[:out]
