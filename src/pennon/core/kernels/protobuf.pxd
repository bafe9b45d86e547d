# cython: language_level=3
"""Protobuf messages, read in place: tags, numbers, and lengths that are checked.

Damage sets ``is_bad`` and ends the message, so that a loop over its fields ends, too.
"""

from libc.stdint cimport uint8_t, uint64_t

cdef enum:
    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5

cdef struct Message:
    const uint8_t *at
    const uint8_t *end
    bint is_bad


cdef inline uint64_t read_varint(Message *message) noexcept nogil:
    """Return the number at the place; more bits than 64 fall off, as in protobuf."""
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while message.at < message.end and shift < 70:
        byte = message.at[0]
        message.at += 1
        if shift < 64:
            value |= <uint64_t> (byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7
    message.is_bad = True
    message.at = message.end
    return 0


cdef inline Message read_bytes(Message *message) noexcept nogil:
    """Return what a length stands in front of, and go behind it."""
    cdef uint64_t size = read_varint(message)
    cdef Message inner
    if size > <uint64_t> (message.end - message.at):
        message.is_bad = True
        message.at = message.end
        size = 0
    inner.at = message.at
    inner.end = message.at + size
    inner.is_bad = message.is_bad
    message.at = inner.end
    return inner


cdef inline void skip(Message *message, int wire) noexcept nogil:
    """Go behind a value of a wire type; groups are damage, which nobody writes."""
    cdef int size = 0
    if wire == VARINT:
        read_varint(message)
    elif wire == BYTES:
        read_bytes(message)
    elif wire == FIXED64 or wire == FIXED32:
        size = 8 if wire == FIXED64 else 4
        if message.end - message.at < size:
            message.is_bad = True
            message.at = message.end
        else:
            message.at += size
    else:
        message.is_bad = True
        message.at = message.end
