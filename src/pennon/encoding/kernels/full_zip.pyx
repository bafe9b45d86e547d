# cython: language_level=3
"""Full-zip pages: control words, sizes and values, taken apart.  See full_zip.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from pennon.encoding.kernels.numbers cimport number_at
from pennon.errors import FormatError
from pennon.core.memory import allocate


cdef bint _measure(
    const uint8_t* data, int64_t end, int word_width, uint64_t mask, uint64_t visible_to,
    int64_t value_width, int size_width, int64_t* found,
) noexcept nogil:
    """Count entries, visible entries and bytes of values; tell whether they end with the data."""
    cdef int64_t at = 0, room
    cdef uint64_t level, size
    while at < end:
        if word_width > end - at:
            return False
        level = number_at(data + at, word_width) & mask
        at += word_width
        found[0] += 1
        if level > visible_to:
            continue
        found[1] += 1
        if size_width == 0:
            size = value_width
        elif level:
            continue
        else:
            if size_width > end - at:
                return False
            size = number_at(data + at, size_width)
            at += size_width
        room = end - at
        if size > <uint64_t>room:
            return False
        at += <int64_t>size
        found[2] += <int64_t>size
    return True


def unzip(
    const uint8_t[::1] data, int word_width, int bits_def, int visible_to,
    int64_t value_width, int size_width,
):
    """See full_zip.pyi."""
    cdef int64_t end = data.shape[0]
    cdef int64_t[3] found
    cdef uint64_t mask
    cdef bint fine
    cdef uint8_t none = 0
    cdef const uint8_t* source = &data[0] if end else &none
    if word_width not in (0, 1, 2, 4) or not 0 <= bits_def <= 16 or value_width < 0:
        raise ValueError("no such control words")
    if size_width not in (0, 1, 2, 4, 8) or word_width + value_width + size_width == 0:
        raise ValueError("entries without bytes")
    mask = (<uint64_t>1 << bits_def) - 1
    found[0] = found[1] = found[2] = 0
    with nogil:
        fine = _measure(
            source, end, word_width, mask, visible_to, value_width, size_width, found
        )
    if not fine:
        raise FormatError("the last entry of a full-zip page is cut off")
    rep = allocate(found[0], np.uint16)
    definition = allocate(found[0], np.uint16)
    offsets = allocate(found[1] + 1 if size_width else 0, np.int64)
    offsets[:1] = 0
    values = allocate(found[2], np.uint8)
    if found[0] == 0:
        return rep, definition, offsets, values
    cdef uint16_t[::1] reps = rep
    cdef uint16_t[::1] defs = definition
    cdef int64_t[::1] ends = offsets
    cdef uint8_t[::1] out = values
    with nogil:
        _copy(
            source, end, word_width, bits_def, mask, visible_to, value_width, size_width,
            &reps[0], &defs[0], &ends[0] if size_width else NULL, &out[0] if found[2] else NULL,
        )
    return rep, definition, offsets, values


cdef void _copy(
    const uint8_t* source, int64_t end, int word_width, int bits_def, uint64_t mask,
    uint64_t visible_to, int64_t value_width, int size_width,
    uint16_t* reps, uint16_t* defs, int64_t* ends, uint8_t* out,
) noexcept nogil:
    """Write what was measured."""
    cdef int64_t at = 0, entry = 0, slot = 0, filled = 0
    cdef uint64_t word, size
    while at < end:
        word = number_at(source + at, word_width)
        at += word_width
        reps[entry] = <uint16_t>(word >> bits_def)
        defs[entry] = <uint16_t>(word & mask)
        entry += 1
        if (word & mask) > visible_to:
            continue
        size = value_width
        if size_width:
            size = 0
            if not word & mask:
                size = number_at(source + at, size_width)
                at += size_width
        if size:
            memcpy(out + filled, source + at, size)
            at += <int64_t>size
            filled += <int64_t>size
        slot += 1
        if size_width:
            ends[slot] = filled


def place_sized(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] ends, int size_width,
    int64_t entries,
):
    """See full_zip.pyi."""
    cdef Py_ssize_t i, count = starts.shape[0]
    cdef int64_t at, entry = 0
    cdef uint64_t size
    cdef bint fine = True
    if size_width not in (1, 2, 4, 8) or entries < 0 or ends.shape[0] != count:
        raise ValueError("no such sizes, or starts and ends differ in length")
    for i in range(count):
        if not 0 <= starts[i] <= ends[i] <= data.shape[0]:
            raise FormatError("entries of a full-zip page outside its data")
    if entries > data.shape[0] // size_width:
        raise FormatError(f"{entries} entries of a full-zip page in {data.shape[0]} bytes")
    firsts, lasts = np.empty(entries, np.int64), np.empty(entries, np.int64)
    cdef int64_t[::1] first = firsts
    cdef int64_t[::1] last = lasts
    with nogil:
        for i in range(count):
            at = starts[i]
            while fine and at < ends[i]:
                if entry == entries or size_width > ends[i] - at:
                    fine = False
                    break
                size = number_at(&data[at], size_width)
                at += size_width
                if size > <uint64_t>(ends[i] - at):
                    fine = False
                    break
                first[entry] = at
                at += <int64_t>size
                last[entry] = at
                entry += 1
            if not fine:
                break
    if not fine or entry != entries:
        raise FormatError(f"rows of a full-zip page that are no {entries} entries")
    return firsts, lasts
