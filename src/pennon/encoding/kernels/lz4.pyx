# cython: language_level=3
"""The size of what an LZ4 block holds.  See lz4.pyi."""

from libc.stdint cimport int64_t, uint8_t


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
