# cython: language_level=3
"""LZ4 blocks: the size of what they hold, and what they hold.  See lz4.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint16_t
from libc.string cimport memcpy, memset

from pennon.errors import FormatError


def decoded_size(const uint8_t[::1] block):
    cdef int64_t at = 0, end = block.shape[0], size = 0, length
    cdef uint8_t token, more
    with nogil:
        while at < end:
            token = block[at]
            at += 1
            length = token >> 4
            if length == 15:
                more = 255
                while more == 255 and at < end:
                    more = block[at]
                    length += more
                    at += 1
            at += length
            size += length
            if at >= end:
                break
            at += 2
            length = (token & 15) + 4
            if length == 19:
                more = 255
                while more == 255 and at < end:
                    more = block[at]
                    length += more
                    at += 1
            size += length
    if at != end:
        raise ValueError("the last sequence of the LZ4 block is cut off")
    return size


cdef inline int64_t _more(const uint8_t* source, int64_t end, int64_t* at) noexcept nogil:
    """Return what the bytes behind a length of 15 add to it, -1 if they are cut off."""
    cdef int64_t length = 0
    cdef uint8_t byte = 255
    while byte == 255:
        if at[0] >= end:
            return -1
        byte = source[at[0]]
        at[0] += 1
        length += byte
    return length


cdef inline void _repeat(uint8_t* out, int64_t offset, int64_t length, int64_t space) noexcept nogil:
    """Copy what lies ``offset`` bytes back, over and over if that is less than ``length``."""
    cdef int64_t i = 0
    if offset >= 8 and length + 8 <= space:
        while i < length:
            memcpy(out + i, out + i - offset, 8)
            i += 8
    elif offset == 1:
        memset(out, (out - 1)[0], length)
    elif offset >= length:
        memcpy(out, out - offset, length)
    else:
        for i in range(length):
            out[i] = out[i - offset]


cdef int64_t _inflate(
    const uint8_t* source, int64_t end, uint8_t* out, int64_t space
) noexcept nogil:
    """Return the bytes written, or -1 if the block is damaged or they are more than ``space``."""
    cdef int64_t at = 0, filled = 0, length, more
    cdef uint8_t token
    cdef uint16_t offset
    while at < end:
        token = source[at]
        at += 1
        length = token >> 4
        if length < 15 and at + 16 <= end and filled + 16 <= space:
            memcpy(out + filled, source + at, 16)
        else:
            if length == 15:
                more = _more(source, end, &at)
                if more < 0:
                    return -1
                length += more
            if length > end - at or length > space - filled:
                return -1
            memcpy(out + filled, source + at, length)
        at += length
        filled += length
        if at == end:
            return filled
        if end - at < 2:
            return -1
        memcpy(&offset, source + at, 2)
        at += 2
        length = token & 15
        if length == 15:
            more = _more(source, end, &at)
            if more < 0:
                return -1
            length += more
        length += 4
        if offset == 0 or offset > filled or length > space - filled:
            return -1
        _repeat(out + filled, offset, length, space - filled)
        filled += length
    return -1


def inflate_blocks(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] ends,
    const int64_t[::1] sizes, uint8_t[::1] target,
):
    """See lz4.pyi."""
    cdef Py_ssize_t blocks = starts.shape[0], block, bad = -1
    cdef int64_t filled = 0, room = target.shape[0], limit = data.shape[0]
    cdef uint8_t none = 0
    cdef uint8_t* out = &target[0] if room else &none
    if ends.shape[0] != blocks or sizes.shape[0] != blocks:
        raise ValueError("tables of blocks differ in length")
    with nogil:
        for block in range(blocks):
            if (
                starts[block] < 0 or ends[block] < starts[block] or ends[block] > limit
                or sizes[block] < 0 or sizes[block] > room - filled
            ):
                bad = block
                break
            if starts[block] == ends[block] and sizes[block] == 0:
                continue
            if starts[block] == ends[block] or _inflate(
                &data[0] + starts[block], ends[block] - starts[block], out + filled, sizes[block]
            ) != sizes[block]:
                bad = block
                break
            filled += sizes[block]
    if bad >= 0:
        raise FormatError(f"LZ4 block {bad} does not hold the {sizes[bad]} bytes that it says")
    if filled != room:
        raise ValueError("the blocks do not fill the target")
