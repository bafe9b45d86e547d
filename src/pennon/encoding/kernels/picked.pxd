# cython: language_level=3
"""Values picked out of chunks, one after the other, in memory that grows."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy, memset

from pennon.encoding.kernels.streams cimport (
    BITS, BYTES, RUNS, STRINGS, ZEROS, Stream, levels_of_runs, load, value_at, values_in_block
)

cdef enum:
    ESCAPE = 255  # the FSST code before a byte that stands for itself

cdef enum:
    MANY = 64  # of so many numbers of a block, one after the other, the block is unpacked

cdef enum:
    # What may be wrong with a page.
    FINE = 0
    NO_ROOM = 1
    BAD_HEADER = 2
    BAD_LEVELS = 3
    BAD_VALUES = 4
    OTHER_ROWS = 5
    OTHER_VALUES = 6
    OTHER_ENDS = 7
    BAD_CODES = 8


cdef struct Vector:
    uint8_t* data
    int64_t size
    int64_t room
    bint is_lent  # it does not grow, and somebody else frees it


cdef inline bint reserve(Vector* v, int64_t more) noexcept nogil:
    cdef int64_t room
    cdef void* moved
    if more <= v.room - v.size:
        return True
    if v.is_lent:
        return False
    room = max(2 * v.room, v.size + more, 256)
    moved = realloc(v.data, <size_t>room)
    if moved == NULL:
        return False
    v.data = <uint8_t*>moved
    v.room = room
    return True


cdef inline bint append(Vector* v, const void* source, int64_t size) noexcept nogil:
    if not reserve(v, size):
        return False
    if size:  # nothing has no address
        memcpy(v.data + v.size, source, size)
        v.size += size
    return True


cdef struct Symbols:
    # What FSST codes stand for; those without a symbol have length 0.
    bint in_use
    uint64_t[256] symbols
    uint8_t[256] lengths


cdef struct Picked:
    const Symbols* symbols  # of the page at hand
    Vector rep
    Vector definition
    Vector values
    Vector ends
    int64_t items


cdef inline int _pick_bits(Stream* s, int64_t first, int64_t last, Picked* out) noexcept nogil:
    cdef int64_t i, bits = (out.items + last - first + 7) // 8
    if last > s.size * 8:
        return BAD_VALUES
    if bits > out.values.size:
        if not reserve(&out.values, bits - out.values.size):
            return NO_ROOM
        memset(out.values.data + out.values.size, 0, bits - out.values.size)
        out.values.size = bits
    for i in range(first, last):
        if s.data[i >> 3] >> (i & 7) & 1:
            out.values.data[out.items >> 3] |= <uint8_t>(1 << (out.items & 7))
        out.items += 1
    return FINE


cdef inline int _expand(
    const uint8_t* codes, int64_t count, const Symbols* table, Vector* out
) noexcept nogil:
    """Append what the codes of one string stand for; a symbol is one move of 8 bytes."""
    cdef int64_t at = 0
    cdef uint8_t code
    if not reserve(out, 8 * count + 8):
        return NO_ROOM
    while at < count:
        code = codes[at]
        if code == ESCAPE:
            if at + 1 == count:
                return BAD_CODES
            out.data[out.size] = codes[at + 1]
            out.size += 1
            at += 2
            continue
        if not table.lengths[code]:
            return BAD_CODES
        memcpy(out.data + out.size, &table.symbols[code], 8)
        out.size += table.lengths[code]
        at += 1
    return FINE


cdef inline int _pick_strings(Stream* s, int64_t first, int64_t last, Picked* out) noexcept nogil:
    """``s.bits`` is the width of an offset; there is one more than there are strings."""
    cdef int width = s.bits // 8, fault
    cdef int64_t i, before, base, total = out.values.size
    cdef uint64_t number
    if s.count >= s.size // width:
        return BAD_VALUES
    if not reserve(&out.ends, 8 * (last - first)):
        return NO_ROOM
    number = load(s.data + first * width, s.bits)
    if number > <uint64_t>s.size:
        return BAD_VALUES
    base = before = <int64_t>number
    for i in range(first + 1, last + 1):
        number = load(s.data + i * width, s.bits)
        if number > <uint64_t>s.size or <int64_t>number < before:
            return BAD_VALUES
        if out.symbols.in_use:
            fault = _expand(s.data + before, <int64_t>number - before, out.symbols, &out.values)
            if fault:
                return fault
            total = out.values.size
        else:
            total += <int64_t>number - before
        before = <int64_t>number
        memcpy(out.ends.data + out.ends.size, &total, 8)
        out.ends.size += 8
    out.items += last - first
    if out.symbols.in_use:
        return FINE
    return FINE if append(&out.values, s.data + base, before - base) else NO_ROOM


cdef inline int append_numbers(Stream* s, int64_t first, int64_t last, Vector* out) noexcept nogil:
    """Append the numbers [first, last) of a chunk, which has so many; levels may be RUNS or ZEROS."""
    cdef int64_t end, width = s.bits // 8
    cdef uint64_t number = 0
    if s.kind == BYTES:
        if last > s.size // width:
            return BAD_VALUES
        return FINE if append(out, s.data + first * width, (last - first) * width) else NO_ROOM
    if not reserve(out, width * (last - first)):
        return NO_ROOM
    if s.kind == ZEROS:
        memset(out.data + out.size, 0, width * (last - first))
        out.size += width * (last - first)
        return FINE
    if s.kind == RUNS:
        if not levels_of_runs(s, first, last, <uint16_t*>(out.data + out.size)):
            return BAD_VALUES
        out.size += width * (last - first)
        return FINE
    while first < last:
        end = min(last, (first // 1024 + 1) * 1024)
        if end - first >= MANY:
            if not values_in_block(s, first, end, out.data + out.size):
                return BAD_VALUES
            out.size += width * (end - first)
            first = end
            continue
        while first < end:
            if not value_at(s, first, &number):
                return BAD_VALUES
            memcpy(out.data + out.size, &number, width)  # little endian
            out.size += width
            first += 1
    return FINE


cdef inline int pick_values(Stream* s, int64_t first, int64_t last, Picked* out) noexcept nogil:
    """Append the values [first, last) of a chunk."""
    if last <= first:
        return FINE
    if first < 0 or last > s.count:
        return BAD_VALUES
    if s.kind == BITS:
        return _pick_bits(s, first, last, out)
    if s.kind == STRINGS:
        return _pick_strings(s, first, last, out)
    out.items += last - first
    return append_numbers(s, first, last, &out.values)
