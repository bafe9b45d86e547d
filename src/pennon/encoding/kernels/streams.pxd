# cython: language_level=3
"""One buffer of a chunk of a mini-block page, and the numbers in it.

All of it is inline: a kernel that picks a few values out of many chunks lives by it.  Where many of a block are
wanted, the block is unpacked.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pennon.encoding.kernels.numbers cimport number_at
from pennon.encoding.kernels.run_lengths cimport Runs, expand, find_runs

cdef enum:
    # Kinds of encodings; pennon.encoding.v2_1.point_read has the same.
    NOTHING = 0
    BYTES = 1
    BITS = 2
    INLINE = 3
    PACKED = 4
    STRINGS = 5
    # Only of levels, numbers of 16 bits:
    RUNS = 6
    ZEROS = 7


cdef struct Stream:
    # One buffer of a chunk: `count` values of a kind.
    const uint8_t* data
    int64_t size
    int64_t count
    int kind
    int bits
    int width
    # INLINE: the block that was looked at last, where its words are, and where the next one begins.
    int64_t block
    int64_t words
    int64_t behind
    int block_width
    # RUNS: `block` is the run that was looked at last, `behind` how many levels are in front of it.
    Runs runs


cdef inline int _order(int group) noexcept nogil:
    """Return where a group of 128 values stands in FastLanes order: 0 4 2 6 1 5 3 7."""
    return (group & 1) << 2 | (group & 2) | group >> 2


cdef inline uint64_t load(const uint8_t* at, int bits) noexcept nogil:
    return number_at(at, bits // 8)


cdef inline uint64_t _unpacked(const uint8_t* words, int bits, int width, int index) noexcept nogil:
    """Return value ``index`` of a block of 1024, in FastLanes order."""
    cdef int lanes = 1024 // bits, rest = index % 128
    cdef int row = 8 * _order(rest // lanes * (lanes // 16)) + index // 128
    cdef int bit = row * width
    cdef int shift = bit % bits, word = bit // bits * lanes + rest % lanes
    cdef uint64_t value = load(words + word * (bits // 8), bits) >> shift
    if shift + width > bits:
        value |= load(words + (word + lanes) * (bits // 8), bits) << (bits - shift)
    return value & (~(<uint64_t>0) >> (64 - width))


cdef inline bint _find_block(Stream* s, int64_t block) noexcept nogil:
    """INLINE: go to a block; blocks are only found by going past those in front."""
    cdef uint64_t width
    if block < s.block:
        s.block = -1
        s.behind = 0
    while s.block < block:
        if s.bits // 8 > s.size - s.behind:
            return False
        width = load(s.data + s.behind, s.bits)
        if width > <uint64_t>s.bits:
            return False
        s.words = s.behind + s.bits // 8
        if 128 * <int64_t>width > s.size - s.words:
            return False
        s.block_width = <int>width
        s.behind = s.words + 128 * <int64_t>width
        s.block += 1
    return True


cdef inline int64_t _packed_block(const Stream* s, int64_t block) noexcept nogil:
    """PACKED: return where a block begins; -2 - position if it is the last, left unpacked; or -1."""
    cdef int64_t packed = 128 * <int64_t>s.width, whole = s.count // 1024, tail = s.count % 1024
    cdef int64_t left
    if block < whole:
        return block * packed if block < s.size // packed else -1
    if whole > s.size // packed:
        return -1
    left = s.size - whole * packed
    if left == tail * (s.bits // 8):
        return -2 - whole * packed
    return whole * packed if left >= packed else -1


cdef inline bint value_at(Stream* s, int64_t index, uint64_t* value) noexcept nogil:
    """Get one number of INLINE or PACKED, or of BYTES up to 8; tell whether it is there."""
    cdef int64_t at
    if index < 0 or index >= s.count:
        return False
    if s.kind == INLINE:
        if not _find_block(s, index // 1024):
            return False
        value[0] = 0
        if s.block_width:
            value[0] = _unpacked(s.data + s.words, s.bits, s.block_width, index % 1024)
        return True
    if s.kind == PACKED:
        at = _packed_block(s, index // 1024)
        if at == -1:
            return False
        if at < 0:
            value[0] = load(s.data + (-2 - at) + index % 1024 * (s.bits // 8), s.bits)
        else:
            value[0] = _unpacked(s.data + at, s.bits, s.width, index % 1024)
        return True
    if index >= s.size // (s.bits // 8):
        return False
    value[0] = load(s.data + index * (s.bits // 8), s.bits)
    return True


ctypedef fused Word:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef inline void unpack_block(const Word* packed, int width, Word* values) noexcept nogil:
    """Unpack a block of 1024 numbers: row after row of the grid, all lanes of a row in one vector loop."""
    cdef int bits = sizeof(Word) * 8
    cdef int lanes = 1024 // bits
    cdef int row, lane, shift, high
    cdef const Word* low_words
    cdef const Word* high_words
    cdef Word* out
    cdef Word mask = <Word>(~(<uint64_t>0) >> (64 - width))
    for row in range(bits):
        out = values + 16 * _order(row // 8) + 128 * (row % 8)
        shift = (row * width) % bits
        low_words = packed + (row * width) // bits * lanes
        if shift + width <= bits:
            for lane in range(lanes):
                out[lane] = (low_words[lane] >> shift) & mask
        else:
            high = bits - shift
            high_words = low_words + lanes
            for lane in range(lanes):
                out[lane] = ((low_words[lane] >> shift) | <Word>(high_words[lane] << high)) & mask


cdef inline void _unpack_part(
    const uint8_t* packed, int width, int64_t first, int64_t count, uint8_t* out, Word none
) noexcept nogil:
    """Unpack some numbers of a block; ``none`` says how wide they are."""
    cdef Word[1024] words  # the bytes of a file may lie anywhere
    cdef Word[1024] values
    memcpy(words, packed, 128 * width)
    if count == 1024:
        unpack_block(<const Word*>words, width, <Word*>out)
        return
    unpack_block(<const Word*>words, width, &values[0])
    memcpy(out, &values[first], count * sizeof(Word))


cdef inline void _unpack(
    const uint8_t* packed, int bits, int width, int64_t first, int64_t count, uint8_t* out
) noexcept nogil:
    """Unpack some numbers of a block to memory that is aligned for them."""
    if width == 0:
        memset(out, 0, count * (bits // 8))
    elif bits == 8:
        _unpack_part(packed, width, first, count, out, <uint8_t>0)
    elif bits == 16:
        _unpack_part(packed, width, first, count, out, <uint16_t>0)
    elif bits == 32:
        _unpack_part(packed, width, first, count, out, <uint32_t>0)
    else:
        _unpack_part(packed, width, first, count, out, <uint64_t>0)


cdef inline bint values_in_block(Stream* s, int64_t first, int64_t last, uint8_t* out) noexcept nogil:
    """Get the numbers [first, last) of INLINE or PACKED, all of one block of 1024; tell whether they are there."""
    cdef int64_t at, block = first // 1024
    if s.kind == INLINE:
        if not _find_block(s, block):
            return False
        _unpack(s.data + s.words, s.bits, s.block_width, first % 1024, last - first, out)
        return True
    at = _packed_block(s, block)
    if at == -1:
        return False
    if at < 0:
        memcpy(out, s.data + (-2 - at) + first % 1024 * (s.bits // 8), (last - first) * (s.bits // 8))
    else:
        _unpack(s.data + at, s.bits, s.width, first % 1024, last - first, out)
    return True


cdef inline bint levels_of_runs(Stream* s, int64_t first, int64_t last, uint16_t* out) noexcept nogil:
    """RUNS: get the levels [first, last); tell whether they are there.

    Runs are only found by going past those in front, so ranges best rise.
    """
    cdef int64_t size, end, i
    cdef uint16_t level
    if s.block < 0 and not find_runs(s.data, s.size, 2, s.width, &s.runs):
        return False
    if s.block < 0 or first < s.behind:
        s.block = s.behind = 0
    while s.block < s.runs.count:
        size = <int64_t>number_at(s.runs.lengths + s.block * s.width, s.width)
        if s.behind + size > first:
            memcpy(&level, s.runs.values + 2 * s.block, 2)
            end = min(s.behind + size, last)
            for i in range(end - first):
                out[i] = level
            out += end - first
            first = end
            if first == last:
                return True
        s.behind += size
        s.block += 1
    return first == last


cdef inline bint all_levels(Stream* s, uint16_t* levels) noexcept nogil:
    """Unpack all levels of a chunk."""
    cdef int64_t first
    if s.kind == RUNS:
        return (
            find_runs(s.data, s.size, 2, s.width, &s.runs)
            and expand(&s.runs, s.width, levels, s.count)
        )
    if s.kind == ZEROS:
        memset(levels, 0, 2 * s.count)
        return True
    if s.kind == BYTES:
        if s.count > s.size // 2:
            return False
        memcpy(levels, s.data, 2 * s.count)
        return True
    for first in range(0, s.count, 1024):
        if not values_in_block(s, first, min(first + 1024, s.count), <uint8_t*>(levels + first)):
            return False
    return True
