# cython: language_level=3
"""Zstandard frames that hold nothing compressed.  See frames.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

from pennon.encoding.kernels.numbers cimport number_at

cdef enum:
    MAGIC = 0xFD2FB528
    SINGLE_SEGMENT = 0x20
    CHECKSUM = 0x04
    RESERVED = 0x08
    DICTIONARY = 0x03
    RAW = 0
    RUN = 1


cdef int64_t _first_block(const uint8_t* frame, int64_t size) noexcept nogil:
    """Return where the blocks of a frame begin; -1 if the codec has to look at it."""
    cdef int descriptor, fields
    cdef int64_t at = 5
    if size < 6 or number_at(frame, 4) != MAGIC:
        return -1
    descriptor = frame[4]
    if descriptor & (CHECKSUM | RESERVED | DICTIONARY):
        return -1
    fields = descriptor >> 6
    if not descriptor & SINGLE_SEGMENT:
        at += 1 + (0 if fields == 0 else 1 << fields)
    else:
        at += 1 << fields
    return at if at <= size else -1


cdef int64_t _walk(const uint8_t* frame, int64_t size, uint8_t* out, int64_t room) noexcept nogil:
    """Return the size of what a frame holds, and copy it to ``out`` if that is not NULL.

    -1 if a block of it is compressed, or anything is odd about it.
    """
    cdef int64_t at = _first_block(frame, size), held = 0, length
    cdef int header, kind
    cdef bint is_last = False
    if at < 0:
        return -1
    while not is_last:
        if size - at < 3:
            return -1
        header = frame[at] | frame[at + 1] << 8 | frame[at + 2] << 16
        at += 3
        is_last, kind, length = header & 1, header >> 1 & 3, header >> 3
        if kind not in (RAW, RUN) or (length if kind == RAW else 1) > size - at:
            return -1
        if out != NULL:
            if length > room - held:
                return -1
            if kind == RAW:
                memcpy(out + held, frame + at, length)
            else:
                memset(out + held, frame[at], length)
        held += length
        at += length if kind == RAW else 1
    return held if at == size else -1


cdef int _check(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] ends
) except -1:
    cdef Py_ssize_t i
    if ends.shape[0] != starts.shape[0]:
        raise ValueError("starts and ends differ in length")
    for i in range(starts.shape[0]):
        if not 0 <= starts[i] <= ends[i] <= data.shape[0]:
            raise ValueError("a frame lies outside its data")
    return 0


def stored_sizes(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] ends
):
    """See frames.pyi."""
    cdef Py_ssize_t i, count = starts.shape[0]
    _check(data, starts, ends)
    sizes = np.empty(count, np.int64)
    cdef int64_t[::1] out = sizes
    cdef const uint8_t* source = &data[0] if data.shape[0] else NULL
    if source == NULL:
        sizes[:] = -1
        return sizes
    with nogil:
        for i in range(count):
            out[i] = _walk(source + starts[i], ends[i] - starts[i], NULL, 0)
    return sizes


def copy_stored(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] ends,
    uint8_t[::1] target, const int64_t[::1] places, const int64_t[::1] sizes,
):
    """See frames.pyi."""
    cdef Py_ssize_t i, count = starts.shape[0]
    cdef bint fine = True
    cdef uint8_t none = 0
    cdef uint8_t* out = &target[0] if target.shape[0] else &none
    _check(data, starts, ends)
    if places.shape[0] != count or sizes.shape[0] != count:
        raise ValueError("not a place and a size for each frame")
    for i in range(count):
        if not 0 <= places[i] <= target.shape[0] or not 0 <= sizes[i] <= target.shape[0] - places[i]:
            raise ValueError("a place outside the target")
    if count == 0:
        return
    if data.shape[0] == 0:
        raise ValueError("no frames")
    with nogil:
        for i in range(count):
            if _walk(&data[0] + starts[i], ends[i] - starts[i], out + places[i], sizes[i]) != sizes[i]:
                fine = False
                break
    if not fine:
        raise ValueError("a frame that is not stored, or of another size")
