"""Decode FSST: bytes that each stand for a symbol of one to eight bytes."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from pennon.errors import FormatError
from pennon.room import room

ctypedef fused Offset:
    int32_t
    int64_t

cdef enum:
    ESCAPE = 255


cdef Py_ssize_t _measure(
    const uint8_t *codes, const Offset[::1] offsets, const uint8_t *lengths, int64_t *ends,
) noexcept nogil:
    """Fill in where each string ends; return the number of the first bad one, or -1."""
    cdef Py_ssize_t i
    cdef int64_t at, stop, total = 0
    cdef uint8_t code
    for i in range(offsets.shape[0] - 1):
        at = offsets[i]
        stop = offsets[i + 1]
        while at < stop:
            code = codes[at]
            if code == ESCAPE:
                if at + 1 >= stop:
                    return i
                at += 2
                total += 1
            else:
                if lengths[code] == 0:
                    return i
                total += lengths[code]
                at += 1
        ends[i + 1] = total
    return -1


cdef void _expand(
    const uint8_t *codes, int64_t at, int64_t stop, const uint64_t *symbols,
    const uint8_t *lengths, uint8_t *out,
) noexcept nogil:
    """Write the symbols; ``out`` has eight bytes to spare, so a symbol is one move."""
    cdef uint8_t code
    while at < stop:
        code = codes[at]
        if code == ESCAPE:
            out[0] = codes[at + 1]
            out += 1
            at += 2
        else:
            memcpy(out, &symbols[code], 8)
            out += lengths[code]
            at += 1


def decode_fsst(
    const uint8_t[::1] codes,
    const Offset[::1] offsets,
    const uint64_t[::1] symbols,
    const uint8_t[::1] lengths,
):
    """See fsst.pyi."""
    cdef Py_ssize_t rows = offsets.shape[0] - 1, i, bad
    cdef uint8_t none = 0
    cdef const uint8_t *source = &codes[0] if codes.shape[0] else &none
    if rows < 0 or symbols.shape[0] != 256 or lengths.shape[0] != 256:
        raise ValueError("offsets have at least one entry, symbols and lengths 256")
    for i in range(256):
        if lengths[i] > 8:
            raise FormatError(f"FSST symbol {i} is {lengths[i]} bytes long, more than 8")
    if offsets[0] < 0 or offsets[rows] > codes.shape[0]:
        raise FormatError("FSST offsets leave the codes")
    for i in range(rows):
        if offsets[i + 1] < offsets[i]:
            raise FormatError("FSST offsets fall")
    ends = room(rows + 1, np.int64)
    ends[0] = 0
    cdef int64_t[::1] end = ends
    with nogil:
        bad = _measure[Offset](source, offsets, &lengths[0], &end[0])
    if bad >= 0:
        raise FormatError(f"string {bad} holds an FSST code that is no symbol, or ends in an escape")
    data = room(end[rows] + 8, np.uint8)
    cdef uint8_t[::1] out = data
    with nogil:
        _expand(source, offsets[0], offsets[rows], &symbols[0], &lengths[0], &out[0])
    return data[: end[rows]], ends
