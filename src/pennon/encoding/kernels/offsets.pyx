"""End offsets that carry their NULLs, to Arrow offsets and validity, and back."""

from libc.stdint cimport (
    INT32_MAX, INT64_MAX, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)

import numpy as np

from pennon.errors import FormatError

ctypedef fused Stored:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused Offset:
    int32_t
    int64_t

# What a walk found wrong; 0 is nothing.
cdef enum Fault:
    FALLS = 1
    BEYOND = 2
    OVERFLOWS = 3


cdef Py_ssize_t _first_bad_extent(
    const int64_t[::1] starts, const int64_t[::1] ends, const uint8_t[::1] leads, int64_t have
) noexcept nogil:
    """Return the first range that leaves ``have`` stored values, or -1."""
    cdef Py_ssize_t i
    cdef int64_t used = 0
    for i in range(starts.shape[0]):
        if ends[i] < starts[i] or starts[i] < 0:
            return i
        if ends[i] - starts[i] > have - used:
            return i
        used += ends[i] - starts[i]
        if leads[i]:
            used += 1
        if used > have:
            return i
    return -1


cdef bint _plain_run(
    const Stored *stored, int64_t rows, uint64_t previous, uint64_t adjustment,
    Offset *offsets, uint64_t shift,
) noexcept nogil:
    """Write a run without NULLs and tell whether it was one; ``shift`` turns ends into offsets."""
    cdef int64_t i
    cdef uint64_t bad = 0, value, before = previous
    for i in range(rows):
        value = stored[i]
        bad |= (value < before) | (value >= adjustment)
        offsets[i] = <Offset>(value + shift)
        before = value
    return bad == 0


cdef int _mixed_run(
    const Stored *stored, int64_t rows, uint64_t previous, uint64_t adjustment,
    Offset *offsets, uint64_t shift, uint8_t *validity, int64_t first_row,
    uint64_t *last, int64_t *nulls,
) noexcept nogil:
    """Write a run that may hold NULLs."""
    cdef int64_t i, row
    cdef uint64_t value
    for i in range(rows):
        value = stored[i]
        if value >= adjustment:
            value -= adjustment
            row = first_row + i
            validity[row >> 3] &= ~(1 << (row & 7))
            nulls[0] += 1
            if value >= adjustment:
                return BEYOND
        if value < previous:
            return FALLS
        offsets[i] = <Offset>(value + shift)
        previous = value
    last[0] = previous
    return 0


cdef int _walk(
    const Stored *stored, const int64_t[::1] starts, const int64_t[::1] ends,
    const uint8_t[::1] leads, uint64_t adjustment, uint64_t limit,
    Offset *offsets, uint64_t most, uint8_t *validity,
    int64_t *span_starts, int64_t *span_ends, int64_t *nulls,
) noexcept nogil:
    """Decode all ranges; every stored value was counted before."""
    cdef Py_ssize_t i
    cdef int64_t rows, row = 0, at = 0
    cdef uint64_t position = 0, previous, last, total = 0, shift
    cdef int fault
    offsets[0] = 0
    for i in range(starts.shape[0]):
        rows = ends[i] - starts[i]
        if leads[i]:
            previous = stored[at]
            at += 1
            if previous >= adjustment:
                previous -= adjustment
        elif starts[i] == 0:
            previous = 0
        else:
            previous = position
        if previous < position:
            return FALLS
        # A lead that is corrupt shows up here or as a fall, because limit bounds every end.
        if previous > limit:
            return BEYOND
        span_starts[i] = <int64_t>previous
        last = previous
        if rows > 0:
            shift = total - previous
            if _plain_run(stored + at, rows, previous, adjustment, offsets + row + 1, shift):
                last = stored[at + rows - 1]
            else:
                fault = _mixed_run(
                    stored + at, rows, previous, adjustment, offsets + row + 1, shift,
                    validity, row, &last, nulls,
                )
                if fault:
                    return fault
            if last > limit:
                return BEYOND
            if total + (last - previous) > most:
                return OVERFLOWS
            total += last - previous
        span_ends[i] = <int64_t>last
        position = last
        at += rows
        row += rows
    return 0


cdef _decode(
    const Stored[::1] stored, const int64_t[::1] starts, const int64_t[::1] ends,
    const uint8_t[::1] leads, uint64_t adjustment, int64_t limit, bint wide,
):
    cdef int64_t rows = 0, nulls = 0
    cdef Py_ssize_t i, count = starts.shape[0]
    cdef int fault
    cdef Stored empty = 0
    cdef const Stored *source = &stored[0] if stored.shape[0] else &empty
    if ends.shape[0] != count or leads.shape[0] != count:
        raise ValueError("starts, ends and leads differ in length")
    if _first_bad_extent(starts, ends, leads, stored.shape[0]) >= 0:
        raise FormatError(f"too few offsets: {stored.shape[0]} for {count} ranges of rows")
    for i in range(count):
        rows += ends[i] - starts[i]
    offsets = np.empty(rows + 1, np.int64 if wide else np.int32)
    validity = np.full((rows + 7) // 8, 0xFF, np.uint8)
    spans = np.empty((2, count), np.int64)
    cdef uint8_t[::1] bits = validity if rows else np.zeros(1, np.uint8)
    cdef int64_t[:, ::1] span = spans if count else np.zeros((2, 1), np.int64)
    cdef int32_t[::1] narrow_offsets
    cdef int64_t[::1] wide_offsets
    if wide:
        wide_offsets = offsets
        with nogil:
            fault = _walk[Stored, int64_t](
                source, starts, ends, leads, adjustment, limit, &wide_offsets[0], INT64_MAX,
                &bits[0], &span[0, 0], &span[1, 0], &nulls,
            )
    else:
        narrow_offsets = offsets
        with nogil:
            fault = _walk[Stored, int32_t](
                source, starts, ends, leads, adjustment, limit, &narrow_offsets[0], INT32_MAX,
                &bits[0], &span[0, 0], &span[1, 0], &nulls,
            )
    if fault == FALLS:
        raise FormatError("offsets fall: an entry ends before the one in front of it")
    if fault == BEYOND:
        raise FormatError(f"an offset lies beyond the {limit} items there are")
    if fault == OVERFLOWS:
        raise OverflowError("the offsets do not fit 32 bits")
    return offsets, (validity if nulls else None), spans[0], spans[1]


def decode_end_offsets(stored, starts, ends, leads, uint64_t adjustment, int64_t limit, bint wide):
    """See offsets.pyi."""
    if limit < 0:
        raise ValueError("limit is negative")
    if stored.dtype == np.uint64:
        return _decode[uint64_t](stored, starts, ends, leads, adjustment, limit, wide)
    if stored.dtype == np.uint32:
        return _decode[uint32_t](stored, starts, ends, leads, adjustment, limit, wide)
    if stored.dtype == np.uint16:
        return _decode[uint16_t](stored, starts, ends, leads, adjustment, limit, wide)
    return _decode[uint8_t](stored, starts, ends, leads, adjustment, limit, wide)


def encode_end_offsets(const Offset[::1] offsets, validity, int64_t bit_offset):
    """See offsets.pyi."""
    cdef Py_ssize_t rows = offsets.shape[0] - 1, i
    cdef int64_t bit
    cdef uint64_t adjustment, missing, under_nulls = 0
    cdef int64_t base
    cdef const uint8_t[::1] bits
    if rows < 0:
        raise ValueError("offsets have at least one entry")
    ends = np.empty(rows, np.uint64)
    cdef uint64_t[::1] out = ends
    base = offsets[0]
    adjustment = <uint64_t>(offsets[rows] - base) + 1
    if validity is None or rows == 0:
        with nogil:
            for i in range(rows):
                out[i] = <uint64_t>(offsets[i + 1] - base)
        return ends, adjustment, 0
    bits = validity
    if bit_offset < 0 or bit_offset + rows > bits.shape[0] * 8:
        raise ValueError("the validity bitmap is too short")
    with nogil:
        for i in range(rows):
            bit = bit_offset + i
            missing = 1 - (bits[bit >> 3] >> (bit & 7) & 1)
            out[i] = <uint64_t>(offsets[i + 1] - base) + missing * adjustment
            under_nulls += missing * <uint64_t>(offsets[i + 1] - offsets[i])
    return ends, adjustment, under_nulls
