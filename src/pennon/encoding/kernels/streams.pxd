# cython: language_level=3
"""One buffer of a chunk of a mini-block page, whose numbers are got one by one, or those of a block together.

All of it is inline: a kernel that picks a few values out of many chunks lives by it.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pennon.encoding.kernels.numbers cimport number_at

cdef enum:
    # Kinds of encodings; pennon.encoding.v2_1.point_read has the same.
    NOTHING = 0
    BYTES = 1
    BITS = 2
    INLINE = 3
    PACKED = 4
    STRINGS = 5


ctypedef fused Word:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


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


cdef inline void _unpack_block(const uint8_t* packed, int width, Word* values) noexcept nogil:
    """Unpack a block of 1024 numbers, of at least one bit each."""
    cdef int bits = sizeof(Word) * 8, lanes = 128 // sizeof(Word)
    cdef int row, lane, shift
    cdef Word mask = <Word>(~(<uint64_t>0) >> (64 - width))
    cdef Word[128] low
    cdef Word[128] high
    cdef Word* out
    for row in range(bits):
        out = values + 16 * _order(row // 8) + 128 * (row % 8)
        shift = (row * width) % bits
        memcpy(low, packed + (row * width) // bits * 128, 128)
        if shift + width <= bits:
            for lane in range(lanes):
                out[lane] = (low[lane] >> shift) & mask
        else:
            memcpy(high, packed + (row * width) // bits * 128 + 128, 128)
            for lane in range(lanes):
                out[lane] = ((low[lane] >> shift) | <Word>(high[lane] << (bits - shift))) & mask


cdef inline bint neighbours_at(
    Stream* s, int64_t first, int64_t last, uint64_t* block, uint8_t* values
) noexcept nogil:
    """Get the numbers [first, last) of one block of INLINE or PACKED, unpacked whole to ``block``.

    Tell whether they are there.
    """
    cdef int64_t at, word = s.bits // 8, size = (last - first) * word
    cdef int width = s.width
    if first < 0 or last > s.count:
        return False
    if s.kind == INLINE:
        if not _find_block(s, first // 1024):
            return False
        at, width = s.words, s.block_width
        if width == 0:
            memset(values, 0, size)
            return True
    else:
        at = _packed_block(s, first // 1024)
        if at == -1:
            return False
        if at < 0:
            memcpy(values, s.data + (-2 - at) + first % 1024 * word, size)
            return True
    if word == 1:
        _unpack_block(s.data + at, width, <uint8_t*>block)
    elif word == 2:
        _unpack_block(s.data + at, width, <uint16_t*>block)
    elif word == 4:
        _unpack_block(s.data + at, width, <uint32_t*>block)
    else:
        _unpack_block(s.data + at, width, block)
    memcpy(values, <uint8_t*>block + first % 1024 * word, size)
    return True


cdef inline bint all_levels(Stream* s, uint16_t* levels) noexcept nogil:
    """Unpack all levels of a chunk; there is room for whole blocks."""
    cdef int64_t block, at, left
    if s.kind == BYTES:
        if s.count > s.size // 2:
            return False
        memcpy(levels, s.data, 2 * s.count)
        return True
    for block in range((s.count + 1023) // 1024):
        if s.kind == INLINE:
            if not _find_block(s, block):
                return False
            if s.block_width == 0:
                memset(levels + 1024 * block, 0, 2048)
            else:
                _unpack_block(s.data + s.words, s.block_width, levels + 1024 * block)
            continue
        at = _packed_block(s, block)
        if at == -1:
            return False
        if at < 0:
            left = s.count - 1024 * block
            memcpy(levels + 1024 * block, s.data + (-2 - at), 2 * left)
        else:
            _unpack_block(s.data + at, s.width, levels + 1024 * block)
    return True
