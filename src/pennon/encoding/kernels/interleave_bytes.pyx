# cython: language_level=3
"""Full-zip pages: control words, sizes and values, put together.  See interleave_bytes.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np


def interleave(
    const uint16_t[::1] rep, const uint16_t[::1] definition, int bits_def, int word_width,
    int row_level, int max_visible, const uint8_t[::1] data, int64_t value_width, offsets,
    int size_width,
):
    """See interleave_bytes.pyi."""
    cdef Py_ssize_t i, levels = max(rep.shape[0], definition.shape[0])
    cdef bint has_rep = rep.shape[0] > 0, has_def = definition.shape[0] > 0
    cdef int64_t slot = 0, slots = 0, valid = 0, at = 0, size, total, rows = 0
    cdef const int64_t[::1] ends = offsets
    cdef uint64_t word
    cdef uint32_t narrow
    if word_width not in (0, 1, 2, 4) or size_width not in (0, 4, 8):
        raise ValueError("no such control words or sizes")
    if (has_rep and rep.shape[0] != levels) or (has_def and definition.shape[0] != levels):
        raise ValueError("levels differ in number")
    if not has_rep and not has_def:
        levels = ends.shape[0] - 1 if size_width else data.shape[0] // max(value_width, 1)
    if has_def:
        for i in range(levels):
            slots += definition[i] <= max_visible
            valid += definition[i] == 0
    else:
        slots = valid = levels
    if size_width:
        if ends.shape[0] != slots + 1 or ends[0] < 0 or ends[slots] > data.shape[0]:
            raise ValueError("not a value for each visible level")
        for i in range(slots):
            if ends[i + 1] < ends[i]:
                raise ValueError("offsets fall")
        total = levels * word_width + ends[slots] - ends[0] + slots * size_width
    else:
        if data.shape[0] != slots * value_width:
            raise ValueError("not a value for each visible level")
        total = levels * word_width + data.shape[0]
    zipped = np.empty(total, np.uint8)
    starts = np.empty(levels + 1, np.int64)
    cdef uint8_t[::1] out = zipped
    cdef int64_t[::1] start = starts
    with nogil:
        for i in range(levels):
            if not has_rep or rep[i] == row_level:
                start[rows] = at
                rows += 1
            if word_width:
                word = 0
                if has_rep:
                    word = <uint64_t>rep[i] << bits_def
                if has_def:
                    word |= definition[i]
                memcpy(&out[at], &word, word_width)
                at += word_width
            if has_def and definition[i] > max_visible:
                continue
            if size_width:
                if not has_def or definition[i] == 0:
                    size = ends[slot + 1] - ends[slot]
                    if size_width == 4:
                        narrow = <uint32_t>size
                        memcpy(&out[at], &narrow, 4)
                    else:
                        memcpy(&out[at], &size, 8)
                    at += size_width
                    if size:
                        memcpy(&out[at], &data[ends[slot]], size)
                        at += size
            elif value_width:
                memcpy(&out[at], &data[slot * value_width], value_width)
                at += value_width
            slot += 1
        start[rows] = at
    return zipped[:at], starts[: rows + 1]
