# cython: language_level=3
"""FSST: count symbols in a sample, encode strings with a table.  See fsst_train.pyi."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

ctypedef fused Offset:
    int32_t
    int64_t

cdef enum:
    ESCAPE = 255
    FIRST_BYTE = 256
    LANES = 4
    BLOCK_BYTES = 1 << 18


cdef struct Group:
    # The symbols of some lengths: no two of them begin with the same ``key`` bytes, and ``slots``
    # (NULL if there are none) has the code at the hash of those, or `ESCAPE`.
    uint8_t* slots
    uint64_t key, factor
    int shift


cdef struct Matcher:
    # What each code stands for; `ESCAPE` is no symbol, and like no word.
    uint64_t[256] symbols
    uint64_t[256] masks
    uint8_t[256] lengths
    uint32_t[256] founds
    Group[3] groups
    # Whether a symbol ends in a zero byte, as if it went on behind the end of a string.
    bint has_zeros
    # The code for the first two bytes or the first one, and how many bytes it takes (times 256).
    uint16_t* pairs
    uint16_t[256] single


cdef struct Lane:
    # A part of the strings that is encoded for itself: where it is, and what it may write to.
    int64_t first_row, row, last_row, at, stop, filled
    uint8_t* out


cdef inline uint32_t _try(
    const Matcher* matcher, const Group* group, uint64_t word, int64_t room, uint32_t found,
    bint has_zeros,
) noexcept nogil:
    """Return the symbol of a group that ``word`` begins with, or else ``found``."""
    cdef uint64_t code, wrong
    if group.slots == NULL:
        return found
    code = group.slots[((word & group.key) * group.factor) >> group.shift]
    wrong = (word & matcher.masks[code]) ^ matcher.symbols[code]
    if has_zeros:
        wrong |= <uint64_t>(room < matcher.lengths[code])
    # A mask instead of a condition, of which compilers make branches.
    return found ^ ((found ^ matcher.founds[code]) & -<uint32_t>(wrong == 0))


cdef inline uint32_t _find(
    const Matcher* matcher, uint64_t word, int64_t room, bint has_zeros
) noexcept nogil:
    """Return the longest symbol at the begin of ``word``: its code, and 256 times its length.

    Nothing here depends on the bytes but the results, so that no branch is guessed wrongly.
    ``word`` is zero behind the end of its string; unless symbols end so, that needs no look.
    """
    cdef uint32_t one, found = matcher.pairs[word & 0xFFFF]
    if has_zeros:
        one = matcher.single[word & 0xFF]
        found ^= (found ^ one) & -<uint32_t>(room < 2)
    found = _try(matcher, &matcher.groups[0], word, room, found, has_zeros)
    found = _try(matcher, &matcher.groups[1], word, room, found, has_zeros)
    return _try(matcher, &matcher.groups[2], word, room, found, has_zeros)


cdef inline uint64_t _load(const uint8_t* at, int64_t room, int64_t left) noexcept nogil:
    """Return up to eight bytes of a string that goes on for ``room``, and the data for ``left``."""
    cdef uint64_t word = 0
    cdef int64_t beyond = 8 - room
    if left < 8:
        memcpy(&word, at, room)
        return word
    memcpy(&word, at, 8)
    return word & (~(<uint64_t>0) >> (8 * (beyond if beyond > 0 else 0)))


cdef bint _fill(
    uint8_t* slots, const uint64_t* keys, const uint8_t* codes, Py_ssize_t count, uint64_t factor,
    int shift,
) noexcept nogil:
    """Give each key its slot; return whether no two wanted the same."""
    cdef Py_ssize_t i
    cdef uint64_t slot
    for i in range(count):
        slot = (keys[i] * factor) >> shift
        if slots[slot] != ESCAPE:
            return False
        slots[slot] = codes[i]
    return True


cdef object _spread(Group* group, keys, codes):
    """Find a hash that gives every key a slot of its own; returns the slots, to be kept."""
    cdef const uint64_t[::1] key_of = keys
    cdef const uint8_t[::1] code_of = codes
    cdef uint8_t[::1] slots
    cdef Py_ssize_t count = key_of.shape[0]
    cdef int bits = 8
    cdef uint64_t factor = <uint64_t>0x9E3779B97F4A7C15
    group.slots = NULL
    if count == 0:
        return None
    if len(np.unique(keys)) < count:
        raise ValueError("symbols of a group begin alike")
    while count * count > <Py_ssize_t>2 << bits:
        bits += 1
    while True:
        table = np.full(1 << bits, ESCAPE, np.uint8)
        slots = table
        if _fill(&slots[0], &key_of[0], &code_of[0], count, factor, 64 - bits):
            break
        factor = factor * <uint64_t>6364136223846793005 + <uint64_t>1442695040888963407 | 1
        bits += count * count > <Py_ssize_t>1 << bits
    group.slots = &slots[0]
    group.factor = factor
    group.shift = 64 - bits
    return table


cdef list _prepare(Matcher* matcher, symbols, lengths):
    """Fill a matcher; what is returned must live as long as it does."""
    if len(symbols) != len(lengths) or len(symbols) > 255:
        raise ValueError("at most 255 symbols, each with its length")
    if len(lengths) and not (1 <= lengths.min() and lengths.max() <= 8):
        raise ValueError("symbols have 1 to 8 bytes")
    cdef const uint64_t[::1] symbol_of = symbols
    cdef const uint8_t[::1] length_of = lengths
    cdef int code
    matcher.has_zeros = False
    memset(&matcher.symbols[0], 0xFF, sizeof(matcher.symbols))
    memset(&matcher.masks[0], 0, sizeof(matcher.masks))
    memset(&matcher.lengths[0], 0, sizeof(matcher.lengths))
    for code in range(symbol_of.shape[0]):
        matcher.symbols[code] = symbol_of[code]
        matcher.masks[code] = ~(<uint64_t>0) >> (64 - 8 * length_of[code])
        matcher.lengths[code] = length_of[code]
        matcher.has_zeros |= length_of[code] > 1 and not symbol_of[code] >> (8 * length_of[code] - 8)
        matcher.founds[code] = code | length_of[code] << 8
    kept = []
    for number, (shortest, longest) in enumerate(((3, 5), (6, 7), (8, 8))):
        key = (1 << 8 * shortest) - 1
        codes = np.flatnonzero((lengths >= shortest) & (lengths <= longest)).astype(np.uint8)
        matcher.groups[number].key = key
        kept.append(_spread(&matcher.groups[number], symbols[codes] & np.uint64(key), codes))
    single = np.full(256, ESCAPE | 1 << 8, np.uint16)
    codes = np.flatnonzero(lengths == 1)
    single[symbols[codes]] = codes | 1 << 8
    pairs = np.tile(single, 256)
    codes = np.flatnonzero(lengths == 2)
    pairs[symbols[codes]] = codes | 2 << 8
    cdef uint16_t[::1] single_codes = single
    cdef uint16_t[::1] pair_codes = pairs
    memcpy(&matcher.single[0], &single_codes[0], sizeof(matcher.single))
    matcher.pairs = &pair_codes[0]
    return [*kept, pairs]


def count_symbols(
    const uint8_t[::1] data, const int64_t[::1] offsets, symbols, lengths, int64_t least, pairs
):
    """See fsst_train.pyi."""
    cdef Matcher matcher
    if least < 1:
        raise ValueError("what never comes is no candidate")
    kept = _prepare(&matcher, symbols, lengths)
    ones = np.zeros(512, np.uint32)
    cdef uint32_t[::1] one = ones
    cdef uint32_t[:, ::1] pair = pairs
    if pair.shape[0] != 512 or pair.shape[1] != 512:
        raise ValueError("pairs of 512 codes are to be counted")
    # The pairs that came ``least`` times, which are few of the many that could.
    frequent = np.empty(512 * 512, np.int32)
    cdef int32_t[::1] frequent_pairs = frequent
    cdef int64_t i, at, stop, size = data.shape[0], found_pairs = 0
    cdef int code, before, single
    cdef uint32_t found
    cdef uint64_t word
    for i in range(offsets.shape[0] - 1):
        if offsets[i] < 0 or offsets[i + 1] < offsets[i] or offsets[i + 1] > size:
            raise ValueError("offsets fall or leave the data")
    with nogil:
        memset(&pair[0, 0], 0, 512 * 512 * sizeof(uint32_t))
        for i in range(offsets.shape[0] - 1):
            at = offsets[i]
            stop = offsets[i + 1]
            before = -1
            while at < stop:
                word = _load(&data[at], stop - at, size - at)
                single = FIRST_BYTE + <int>(word & 0xFF)
                found = _find(&matcher, word, stop - at, True)
                code = found & 0xFF
                if code == ESCAPE:
                    code = single
                one[code] += 1
                if before >= 0:
                    pair[before, code] += 1
                    if pair[before, code] == least:
                        frequent_pairs[found_pairs] = before * 512 + code
                        found_pairs += 1
                if found >= 2 << 8:
                    one[single] += 1
                    if before >= 0:
                        pair[before, single] += 1
                        if pair[before, single] == least:
                            frequent_pairs[found_pairs] = before * 512 + single
                            found_pairs += 1
                at += found >> 8
                before = code
    return _candidates(symbols, lengths, ones, pairs, least, np.sort(frequent[:found_pairs]))


def _candidates(symbols, lengths, ones, pairs, least, frequent):
    """Return what could be a symbol next, with what it would save; doubles are not yet merged."""
    texts = np.zeros(512, np.uint64)
    sizes = np.ones(512, np.int64)
    texts[: len(symbols)] = symbols
    sizes[: len(symbols)] = lengths
    texts[256:] = np.arange(256, dtype=np.uint64)
    single = np.flatnonzero(ones >= least)
    left, right = frequent >> 9, frequent & 511
    size = sizes[left] + sizes[right]
    fits = size <= 8
    left, right, size = left[fits], right[fits], size[fits]
    joined = texts[left] | texts[right] << (sizes[left] * 8).astype(np.uint64)
    return (
        np.concatenate([texts[single], joined]),
        np.concatenate([sizes[single], size]),
        np.concatenate([
            ones[single] * np.where(sizes[single] == 1, 8, sizes[single]),
            pairs[left, right] * size,
        ]).astype(np.int64),
    )


cdef inline bint _step(
    const Matcher* matcher, Lane* lane, const uint8_t* data, int64_t size, const Offset* offsets,
    int64_t* ends, bint has_zeros,
) noexcept nogil:
    """Write the next code of a lane; return False at its end."""
    cdef uint64_t word
    cdef uint32_t found
    while lane.at == lane.stop:
        if lane.row > lane.first_row:  # where a lane begins, the one before it ends, which says where
            ends[lane.row] = lane.filled
        if lane.row == lane.last_row:
            return False
        lane.row += 1
        lane.stop = offsets[lane.row]
    word = _load(data + lane.at, lane.stop - lane.at, size - lane.at)
    found = _find(matcher, word, lane.stop - lane.at, has_zeros)
    lane.out[lane.filled] = <uint8_t>found
    lane.out[lane.filled + 1] = <uint8_t>word
    lane.filled += 1 + ((found & 0xFF) == ESCAPE)
    lane.at += found >> 8
    return True


cdef int64_t _encode(
    const Matcher* matcher, const uint8_t* data, int64_t size, const Offset* offsets, int64_t rows,
    uint8_t* scratch, uint8_t* codes, int64_t filled, int64_t* ends,
) noexcept nogil:
    """Encode four parts of the strings by turns: the next of one need not wait for another's.

    Their codes go behind the ``filled`` bytes of ``codes``; ``ends[0]`` is already there.
    """
    cdef Lane[LANES] lanes
    cdef int lane
    cdef int64_t row
    cdef bint going = True
    for lane in range(LANES):
        row = rows * lane // LANES
        lanes[lane].first_row = lanes[lane].row = row
        lanes[lane].last_row = rows * (lane + 1) // LANES
        lanes[lane].at = lanes[lane].stop = offsets[row]
        lanes[lane].filled = 0
        lanes[lane].out = scratch + 2 * (offsets[row] - offsets[0])
    while going and matcher.has_zeros:
        going = False
        for lane in range(LANES):
            going |= _step(matcher, &lanes[lane], data, size, offsets, ends, True)
    while going:
        going = False
        for lane in range(LANES):
            going |= _step(matcher, &lanes[lane], data, size, offsets, ends, False)
    for lane in range(LANES):
        memcpy(codes + filled, lanes[lane].out, lanes[lane].filled)
        row = rows * lane // LANES
        while row < lanes[lane].last_row:
            row += 1
            ends[row] += filled
        filled += lanes[lane].filled
    return filled


cdef int64_t _block_end(const Offset* offsets, int64_t row, int64_t rows) noexcept nogil:
    """Return where a block that begins at ``row`` ends, with at least one string."""
    cdef int64_t end = row + 1
    while end < rows and offsets[end + 1] - offsets[row] <= BLOCK_BYTES:
        end += 1
    return end


def encode_symbols(const uint8_t[::1] data, const Offset[::1] offsets, symbols, lengths):
    """See fsst_train.pyi."""
    cdef Matcher matcher
    kept = _prepare(&matcher, symbols, lengths)
    cdef int64_t i, end, room, filled = 0, rows = offsets.shape[0] - 1, size = data.shape[0]
    if rows < 0 or offsets[0] < 0 or offsets[rows] > size:
        raise ValueError("offsets leave the data")
    for i in range(rows):
        if offsets[i + 1] < offsets[i]:
            raise ValueError("offsets fall")
    # Blocks share one small scratch, which stays in the cache: codes may take twice their bytes.
    codes = np.empty((offsets[rows] - offsets[0]) // 2 + 2 * BLOCK_BYTES, np.uint8)
    blank = np.empty(2 * BLOCK_BYTES, np.uint8)
    ends = np.zeros(rows + 1, np.int64)
    cdef uint8_t[::1] out = codes
    cdef uint8_t[::1] scratch = blank
    cdef int64_t[::1] ends_of = ends
    cdef const uint8_t* bytes_at = &data[0] if size else NULL
    i = 0
    while i < rows:
        end = _block_end[Offset](&offsets[0], i, rows)
        room = 2 * (offsets[end] - offsets[i]) + 1
        if room > scratch.shape[0]:
            scratch = np.empty(room, np.uint8)
        if filled + room > out.shape[0]:
            codes = np.empty(2 * (filled + room), np.uint8)
            codes[:filled] = out[:filled]
            out = codes
        with nogil:
            filled = _encode[Offset](
                &matcher, bytes_at, size, &offsets[i], end - i, &scratch[0], &out[0], filled,
                &ends_of[i],
            )
        i = end
    return codes[:filled], ends
