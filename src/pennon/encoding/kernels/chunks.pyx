# cython: language_level=3
"""Mini-block chunks: cut byte strings, put the buffers of all chunks together.  See chunks.pyi."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uintptr_t
from libc.string cimport memcpy, memset

import numpy as np

ctypedef fused Offset:
    int32_t
    int64_t

cdef enum:
    MOST_BUFFERS = 64
    PADDING = 0xFE
    MOST_CHUNK_BYTES = 32768


def cut_strings(const Offset[::1] offsets, int width, int64_t aim_bytes, int64_t most_items):
    """See chunks.pyi."""
    cdef int64_t items = offsets.shape[0] - 1, at = 0, take, size, best, rest
    cuts = np.empty(max(items, 0), np.int64)
    cdef int64_t[::1] out = cuts
    cdef Py_ssize_t chunk = 0
    with nogil:
        while at < items:
            rest = items - at
            best = 1
            if rest <= most_items:
                size = offsets[items] - offsets[at] + (rest + 1) * width
                if size <= aim_bytes:
                    best = rest
            if best != rest:
                take = 2
                while take <= rest and take <= most_items:
                    size = offsets[at + take] - offsets[at] + (take + 1) * width
                    if size > aim_bytes:
                        break
                    best = take
                    take *= 2
            out[chunk] = best
            chunk += 1
            at += best
    return cuts[:chunk].copy()


def write_strings(
    const uint8_t[::1] data, const Offset[::1] offsets, const int64_t[::1] counts, int width
):
    """See chunks.pyi."""
    cdef Py_ssize_t chunks = counts.shape[0], chunk
    cdef int64_t items = offsets.shape[0] - 1, at = 0, i, start, size, filled = 0
    cdef uint32_t narrow
    cdef int64_t wide
    if width not in (4, 8):
        raise ValueError("offsets of 4 or 8 bytes")
    for chunk in range(chunks):
        if counts[chunk] < 1 or counts[chunk] > items - at:
            raise ValueError("chunks do not divide the items")
        at += counts[chunk]
    if at != items or items < 0:
        raise ValueError("chunks do not divide the items")
    for i in range(items):
        if offsets[i + 1] < offsets[i]:
            raise ValueError("offsets fall")
    if offsets[0] < 0 or offsets[items] > data.shape[0]:
        raise ValueError("offsets leave the data")
    sizes = np.empty(chunks, np.int64)
    cdef int64_t[::1] size_of = sizes
    at = 0
    for chunk in range(chunks):
        size = offsets[at + counts[chunk]] - offsets[at] + (counts[chunk] + 1) * width
        size = (size + width - 1) // width * width
        size_of[chunk] = size
        at += counts[chunk]
        filled += size
    packed = np.empty(filled, np.uint8)
    if filled == 0:
        return packed, sizes
    cdef uint8_t[::1] out = packed
    cdef uint8_t* target
    at = filled = 0
    with nogil:
        for chunk in range(chunks):
            target = &out[filled]
            start = (counts[chunk] + 1) * width
            for i in range(counts[chunk] + 1):
                wide = offsets[at + i] - offsets[at] + start
                if width == 4:
                    narrow = <uint32_t>wide
                    memcpy(target + 4 * i, &narrow, 4)
                else:
                    memcpy(target + 8 * i, &wide, 8)
            size = offsets[at + counts[chunk]] - offsets[at]
            if size:
                memcpy(target + start, &data[offsets[at]], size)
            memset(target + start + size, 0x48, size_of[chunk] - start - size)
            filled += size_of[chunk]
            at += counts[chunk]
    return packed, sizes


def put_together(
    const int64_t[::1] level_counts,
    const uint8_t[::1] log_counts,
    buffers,
    sizes,
    int level_buffers,
    bint is_large,
):
    """See chunks.pyi."""
    cdef Py_ssize_t chunks = level_counts.shape[0], chunk
    cdef int count = len(buffers), b
    cdef uintptr_t[MOST_BUFFERS] sources
    cdef int64_t[MOST_BUFFERS] done
    cdef const int64_t[:, ::1] size_of = np.ascontiguousarray(sizes, np.int64)
    cdef const uint8_t[::1] view
    cdef uint8_t none = 0
    cdef int64_t total = 0, size, at, began, most = 0xFFFF
    cdef int width = 4 if is_large else 2
    cdef int64_t header = (2 + 2 * level_buffers + width * (count - level_buffers) + 7) // 8 * 8
    if not 0 <= level_buffers <= count:
        raise ValueError("more buffers of levels than buffers")
    if count > MOST_BUFFERS or size_of.shape[0] != count or size_of.shape[1] != chunks:
        raise ValueError("not a size for each buffer of each chunk")
    if log_counts.shape[0] != chunks:
        raise ValueError("tables of chunks differ in length")
    for b in range(count):
        view = buffers[b]
        size = 0
        most = 0xFFFFFFFF if is_large and b >= level_buffers else 0xFFFF
        for chunk in range(chunks):
            if not 0 <= size_of[b, chunk] <= most:
                return None
            size += size_of[b, chunk]
        if size != view.shape[0]:
            raise ValueError("the chunks do not divide a buffer")
        sources[b] = <uintptr_t>&view[0] if view.shape[0] else <uintptr_t>&none
        done[b] = 0
    for chunk in range(chunks):
        size = header
        for b in range(count):
            size += (size_of[b, chunk] + 7) // 8 * 8
        if size > MOST_CHUNK_BYTES or not 0 <= level_counts[chunk] <= 0xFFFF:
            return None
        total += size
    data = np.empty(total, np.uint8)
    words = np.empty(chunks, np.uint32)
    if total == 0:
        return data, words if is_large else words.astype(np.uint16)
    cdef uint8_t[::1] out = data
    cdef uint32_t[::1] word = words
    cdef uint16_t small
    cdef uint32_t large
    at = 0
    with nogil:
        for chunk in range(chunks):
            began = at
            memset(&out[at], PADDING, header)
            small = <uint16_t>level_counts[chunk]
            memcpy(&out[at], &small, 2)
            for b in range(count):
                large = <uint32_t>size_of[b, chunk]
                small = <uint16_t>large
                if b < level_buffers:
                    memcpy(&out[at + 2 + 2 * b], &small, 2)
                elif is_large:
                    memcpy(&out[at + 2 + 2 * level_buffers + 4 * (b - level_buffers)], &large, 4)
                else:
                    memcpy(&out[at + 2 + 2 * b], &small, 2)
            at += header
            for b in range(count):
                size = size_of[b, chunk]
                if size == 0:
                    continue
                memcpy(&out[at], <const uint8_t*>sources[b] + done[b], size)
                done[b] += size
                at += size
                while at & 7:
                    out[at] = PADDING
                    at += 1
            word[chunk] = <uint32_t>((((at - began) // 8 - 1) << 4) | log_counts[chunk])
    return data, words if is_large else words.astype(np.uint16)
