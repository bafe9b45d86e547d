# cython: language_level=3
"""Repetition and definition levels to validity bitmaps and offsets.  See levels.pyi."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

from pennon.errors import FormatError
from pennon.core.memory import allocate

cdef extern from *:
    int __builtin_ctzll(unsigned long long bits) nogil

ctypedef fused Offset:
    int32_t
    int64_t


def validity_of(
    const uint16_t[::1] definition, const uint8_t[::1] visible, int valid_to
):
    """See levels.pyi."""
    cdef Py_ssize_t i, count = definition.shape[0], levels = visible.shape[0]
    cdef int64_t slots = 0, nulls = 0
    cdef int worst = 0
    cdef bint all_visible = True
    for i in range(levels):
        if not visible[i]:
            all_visible = False
    if count == 0:
        return np.empty(0, np.uint8), 0, 0
    held = allocate(count, np.uint8)
    cdef uint8_t[::1] flags = held, bits
    with nogil:
        worst = _highest(&definition[0], count)
        if worst < levels:
            if all_visible:
                slots = count
                for i in range(count):
                    flags[i] = definition[i] <= valid_to
            else:
                for i in range(count):
                    flags[slots] = definition[i] <= valid_to
                    slots += visible[definition[i]]
    if worst >= levels:
        raise FormatError(f"definition level {worst}, where the highest is {levels - 1}")
    bitmap = allocate((slots + 7) // 8, np.uint8)
    if slots:
        bits = bitmap
        with nogil:
            nulls = _pack_bytes(&flags[0], slots, &bits[0])
    return bitmap, slots, nulls


cdef int _highest(const uint16_t* levels, Py_ssize_t count) noexcept nogil:
    """Return the highest level."""
    cdef Py_ssize_t i
    cdef uint16_t highest = 0
    for i in range(count):
        highest = levels[i] if levels[i] > highest else highest
    return highest


cdef int64_t _pack_bytes(const uint8_t* flags, int64_t count, uint8_t* bits) noexcept nogil:
    """Set a bit for each byte of 1 (the others are 0); return how many are 0."""
    cdef int64_t byte, whole = count // 8, i, zeros = count
    cdef uint64_t eight
    for byte in range(whole):
        memcpy(&eight, flags + 8 * byte, 8)
        # The product brings bit 0 of each byte to a bit of its own of the highest byte.
        bits[byte] = <uint8_t>((eight * <uint64_t>0x0102040810204080) >> 56)
    if count & 7:
        bits[whole] = 0
    for i in range(8 * whole, count):
        bits[i >> 3] |= <uint8_t>(flags[i] << (i & 7))
    for i in range(count):
        zeros -= flags[i]
    return zeros


cdef int64_t _count_begins(const uint16_t* rep, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    cdef int64_t begins = 0
    for i in range(count):
        begins += rep[i] != 0
    return begins


cdef uint64_t _begins(const uint16_t* rep, Py_ssize_t count) noexcept nogil:
    """Return a bit for each of the next levels, 64 at the most: does a list begin there?"""
    cdef uint8_t[64] flags
    cdef uint64_t eight, begins = 0
    cdef int i
    if count >= 64:
        for i in range(64):
            flags[i] = rep[i] != 0
    else:
        memset(flags, 0, 64)
        for i in range(<int>count):
            flags[i] = rep[i] != 0
    for i in range(8):
        memcpy(&eight, flags + 8 * i, 8)
        begins |= ((eight * <uint64_t>0x0102040810204080) >> 56) << (8 * i)
    return begins


cdef int64_t _plain_lists(
    const uint16_t* rep, Py_ssize_t count, Offset* offsets, uint16_t* outer_rep
) noexcept nogil:
    """Lists without NULL and empty ones: every level is an item.  Return the number of lists."""
    cdef Py_ssize_t block, i
    cdef int64_t lists = 0
    cdef uint64_t begins
    for block in range(0, count, 64):
        begins = _begins(rep + block, count - block)
        while begins:
            i = block + __builtin_ctzll(begins)
            begins &= begins - 1
            offsets[lists] = <Offset>i
            if outer_rep != NULL:
                outer_rep[lists] = rep[i] - 1
            lists += 1
    offsets[lists] = <Offset>count
    return lists


cdef int64_t _mixed_lists(
    const uint16_t* rep, const uint16_t* definition, Py_ssize_t count,
    int valid_to, int empty_level, int highest, Offset* offsets, uint8_t* held,
    uint16_t* outer_rep, uint16_t* outer_def, int64_t* kept,
) noexcept nogil:
    """Write where each list begins, whether it is not NULL, and the levels outside of it.

    Return the number of lists.  An entry that begins a list but lies in no list is kept for the
    layers outside.  No branch depends on a definition level: it is as random as the data.
    """
    cdef Py_ssize_t block, i
    cdef int64_t lists = 0, skipped = 0, outer = 0
    cdef uint64_t begins
    cdef int level
    for block in range(0, count, 64):
        begins = _begins(rep + block, count - block)
        while begins:
            i = block + __builtin_ctzll(begins)
            begins &= begins - 1
            level = definition[i]
            offsets[lists] = <Offset>(i - skipped)
            if held != NULL:
                held[lists] = (level <= valid_to) | (level == empty_level)
            if outer_rep != NULL:
                outer_rep[outer] = rep[i] - 1
                outer_def[outer] = <uint16_t>level
                outer += 1
            lists += level <= highest
            skipped += level > valid_to
    offsets[lists] = <Offset>(count - skipped)
    kept[0] = outer
    return lists


def lists_of(
    const uint16_t[::1] rep, definition, int valid_to, int empty_level, int highest, bint wide,
    bint is_outermost=False, bint has_nulls=True,
):
    """See levels.pyi."""
    cdef Py_ssize_t count = rep.shape[0]
    cdef int64_t lists = 0, kept = 0, nulls = 0
    cdef const uint16_t[::1] levels
    cdef uint8_t[::1] flags, bits
    cdef uint16_t[::1] reps, defs
    cdef int32_t[::1] narrow
    cdef int64_t[::1] broad
    cdef int64_t most = 0
    if not wide and count > INT32_MAX:
        raise OverflowError("the offsets do not fit 32 bits")
    if count:
        with nogil:
            most = _count_begins(&rep[0], count)
    offsets = allocate(most + 1, np.int64 if wide else np.int32)
    offsets[0] = 0
    outer_rep = np.empty(0, np.uint16) if is_outermost else allocate(most, np.uint16)
    if count == 0:
        return offsets, None, outer_rep, None if definition is None else outer_rep
    if rep[0] == 0:
        raise FormatError("the levels of a page of lists begin in the middle of a list")
    reps = outer_rep
    cdef uint16_t* outer = NULL if is_outermost else &reps[0]
    if wide:
        broad = offsets
    else:
        narrow = offsets
    if definition is None:
        with nogil:
            if wide:
                lists = _plain_lists[int64_t](&rep[0], count, &broad[0], outer)
            else:
                lists = _plain_lists[int32_t](&rep[0], count, &narrow[0], outer)
        return offsets[: lists + 1], None, outer_rep[:lists], None
    levels = definition
    if levels.shape[0] != count:
        raise FormatError(f"{count} repetition levels, but {levels.shape[0]} definition levels")
    held = allocate(most if has_nulls else 0, np.uint8)
    outer_def = np.empty(0, np.uint16) if is_outermost else allocate(most, np.uint16)
    flags = held
    defs = outer_def
    cdef uint8_t* known = &flags[0] if has_nulls else NULL
    cdef uint16_t* others = NULL if is_outermost else &defs[0]
    with nogil:
        if wide:
            lists = _mixed_lists[int64_t](
                &rep[0], &levels[0], count, valid_to, empty_level, highest, &broad[0], known,
                outer, others, &kept,
            )
        else:
            lists = _mixed_lists[int32_t](
                &rep[0], &levels[0], count, valid_to, empty_level, highest, &narrow[0], known,
                outer, others, &kept,
            )
    validity = allocate((lists + 7) // 8 if has_nulls else 0, np.uint8)
    if lists and has_nulls:
        bits = validity
        with nogil:
            nulls = _pack_bytes(&flags[0], lists, &bits[0])
    return (
        offsets[: lists + 1], validity if nulls else None, outer_rep[:kept], outer_def[:kept]
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
    outer_rep = allocate(count if has_rep else 0, np.uint16)
    outer_def = allocate(count, np.uint16)
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
