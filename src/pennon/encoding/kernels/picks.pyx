# cython: language_level=3
"""A few rows of a mini-block page: find their chunks, pick their levels and values.  See picks.pyi.

Nothing is unpacked that is not wanted, but for the levels of lists, which say where rows begin.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

import numpy as np

from pennon.errors import FormatError

cdef enum:
    # Kinds of encodings; pennon.encoding.v2_1.recipe has the same.
    NOTHING = 0
    BYTES = 1
    BITS = 2
    INLINE = 3
    PACKED = 4
    STRINGS = 5

    # What may be wrong.
    FINE = 0
    NO_ROOM = 1
    BAD_HEADER = 2
    BAD_LEVELS = 3
    BAD_VALUES = 4
    OTHER_ROWS = 5
    OTHER_VALUES = 6
    OTHER_ENDS = 7

    MOST_LEVELS = 65536
    STRIDE = 64

cdef int[8] ORDER = [0, 4, 2, 6, 1, 5, 3, 7]

FAULTS = {
    BAD_HEADER: "the buffers of a chunk leave it",
    BAD_LEVELS: "the levels of a chunk are not as many as it says",
    BAD_VALUES: "the values of a chunk are not as many as it should have",
    OTHER_ROWS: "chunks in which other rows begin than the row index says",
    OTHER_VALUES: "chunks whose levels stand for more or fewer values than they have",
    OTHER_ENDS: "rows that do not end where the row index says",
}


# --- which chunks ---------------------------------------------------------------------------------


cdef Py_ssize_t _last_up_to(const int64_t* first, Py_ssize_t low, Py_ssize_t high, int64_t row) noexcept nogil:
    """Return the last place of [low, high) with a number up to ``row``; that at ``low`` is one."""
    cdef Py_ssize_t middle
    while high - low > 1:
        middle = (low + high) // 2
        if first[middle] <= row:
            low = middle
        else:
            high = middle
    return low


def find_chunks(
    const int64_t[::1] first_rows, const uint8_t[::1] goes_on, const int64_t[::1] offsets,
    const int64_t[::1] starts, const int64_t[::1] ends,
):
    """See picks.pyi."""
    cdef Py_ssize_t count = goes_on.shape[0], ranges = starts.shape[0], i, at = 0, low, high
    cdef Py_ssize_t found = 0, runs = 0, last = -1, most
    cdef int64_t filled = 0
    if count < 1 or first_rows.shape[0] != count + 1 or offsets.shape[0] != count + 1:
        raise ValueError("tables of chunks differ in length")
    if ends.shape[0] != ranges:
        raise ValueError("starts and ends differ in length")
    most = 0
    for i in range(ranges):
        if starts[i] < 0 or ends[i] < starts[i] or ends[i] > first_rows[count]:
            raise ValueError("rows outside the page")
        most += min(ends[i] - starts[i], count) + 1
    # A row may go on through many chunks, so the rows do not bound the chunks.
    most = count if ranges > 1 or most > 2 else min(count, 64)
    table = np.empty((4, most), np.int64)
    cdef int64_t[:, ::1] out = table
    for i in range(ranges):
        if ends[i] == starts[i]:
            continue
        low = _last_up_to(&first_rows[0], at, count, starts[i])
        if ends[i] >= first_rows[count]:
            high = count - 1
        else:
            high = _last_up_to(&first_rows[0], low, count, ends[i])
            if first_rows[high] == ends[i] and not goes_on[high]:
                high -= 1
        at = low
        if low <= last:
            low = last + 1
        while low <= high:
            if found == most:
                most = count
                larger = np.empty((4, most), np.int64)
                larger[:, :found] = table[:, :found]
                table = larger
                out = table
            if runs == 0 or low != last + 1:
                out[2, runs] = offsets[low]
                runs += 1
            out[3, runs - 1] = offsets[low + 1]
            out[0, found] = low
            out[1, found] = filled
            filled += offsets[low + 1] - offsets[low]
            found += 1
            last = low
            low += 1
    return table[0, :found], table[1, :found], table[2, :runs], table[3, :runs]


# --- numbers --------------------------------------------------------------------------------------


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


cdef inline uint64_t _load(const uint8_t* at, int bits) noexcept nogil:
    cdef uint16_t two
    cdef uint32_t four
    cdef uint64_t eight
    if bits == 64:
        memcpy(&eight, at, 8)
        return eight
    if bits == 32:
        memcpy(&four, at, 4)
        return four
    if bits == 16:
        memcpy(&two, at, 2)
        return two
    return at[0]


cdef inline uint64_t _unpacked(const uint8_t* words, int bits, int width, int index) noexcept nogil:
    """Return value ``index`` of a block of 1024, in FastLanes order."""
    cdef int lanes = 1024 // bits, rest = index % 128
    cdef int row = 8 * ORDER[rest // lanes * (lanes // 16)] + index // 128
    cdef int bit = row * width
    cdef int shift = bit % bits, word = bit // bits * lanes + rest % lanes
    cdef uint64_t value = _load(words + word * (bits // 8), bits) >> shift
    if shift + width > bits:
        value |= _load(words + (word + lanes) * (bits // 8), bits) << (bits - shift)
    return value & (~(<uint64_t>0) >> (64 - width))


cdef bint _find_block(Stream* s, int64_t block) noexcept nogil:
    """INLINE: go to a block; blocks are only found by going past those in front."""
    cdef uint64_t width
    if block < s.block:
        s.block = -1
        s.behind = 0
    while s.block < block:
        if s.bits // 8 > s.size - s.behind:
            return False
        width = _load(s.data + s.behind, s.bits)
        if width > <uint64_t>s.bits:
            return False
        s.words = s.behind + s.bits // 8
        if 128 * <int64_t>width > s.size - s.words:
            return False
        s.block_width = <int>width
        s.behind = s.words + 128 * <int64_t>width
        s.block += 1
    return True


cdef int64_t _packed_block(const Stream* s, int64_t block) noexcept nogil:
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


cdef bint _value(Stream* s, int64_t index, uint64_t* value) noexcept nogil:
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
            value[0] = _load(s.data + (-2 - at) + index % 1024 * (s.bits // 8), s.bits)
        else:
            value[0] = _unpacked(s.data + at, s.bits, s.width, index % 1024)
        return True
    if index >= s.size // (s.bits // 8):
        return False
    value[0] = _load(s.data + index * (s.bits // 8), s.bits)
    return True


cdef void _unpack_levels(const uint8_t* packed, int width, uint16_t* values) noexcept nogil:
    """Unpack a block of 1024 numbers of 16 bits."""
    cdef int row, lane, shift
    cdef uint16_t mask = <uint16_t>(0xFFFF >> (16 - width))
    cdef uint16_t[64] low
    cdef uint16_t[64] high
    cdef uint16_t* out
    for row in range(16):
        out = values + 16 * ORDER[row // 8] + 128 * (row % 8)
        shift = (row * width) % 16
        memcpy(low, packed + (row * width) // 16 * 128, 128)
        if shift + width <= 16:
            for lane in range(64):
                out[lane] = (low[lane] >> shift) & mask
        else:
            memcpy(high, packed + (row * width) // 16 * 128 + 128, 128)
            for lane in range(64):
                out[lane] = ((low[lane] >> shift) | <uint16_t>(high[lane] << (16 - shift))) & mask


cdef bint _all_levels(Stream* s, uint16_t* levels) noexcept nogil:
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
                _unpack_levels(s.data + s.words, s.block_width, levels + 1024 * block)
            continue
        at = _packed_block(s, block)
        if at == -1:
            return False
        if at < 0:
            left = s.count - 1024 * block
            memcpy(levels + 1024 * block, s.data + (-2 - at), 2 * left)
        else:
            _unpack_levels(s.data + at, s.width, levels + 1024 * block)
    return True


# --- what was picked ------------------------------------------------------------------------------


cdef struct Vector:
    uint8_t* data
    int64_t size
    int64_t room


cdef bint _reserve(Vector* v, int64_t more) noexcept nogil:
    cdef int64_t room
    cdef void* moved
    if more <= v.room - v.size:
        return True
    room = max(2 * v.room, v.size + more, 256)
    moved = realloc(v.data, <size_t>room)
    if moved == NULL:
        return False
    v.data = <uint8_t*>moved
    v.room = room
    return True


cdef bint _append(Vector* v, const void* source, int64_t size) noexcept nogil:
    if not _reserve(v, size):
        return False
    if size:  # nothing has no address
        memcpy(v.data + v.size, source, size)
        v.size += size
    return True


cdef object _array(const Vector* v, dtype):
    array = np.empty(v.size, np.uint8)
    cdef uint8_t[::1] out = array
    if v.size:
        memcpy(&out[0], v.data, v.size)
    return array.view(dtype)


cdef struct Picked:
    Vector rep
    Vector definition
    Vector values
    Vector ends
    int64_t items


cdef int _pick_bits(Stream* s, int64_t first, int64_t last, Picked* out) noexcept nogil:
    cdef int64_t i, bits = (out.items + last - first + 7) // 8
    if last > s.size * 8:
        return BAD_VALUES
    if bits > out.values.size:
        if not _reserve(&out.values, bits - out.values.size):
            return NO_ROOM
        memset(out.values.data + out.values.size, 0, bits - out.values.size)
        out.values.size = bits
    for i in range(first, last):
        if s.data[i >> 3] >> (i & 7) & 1:
            out.values.data[out.items >> 3] |= <uint8_t>(1 << (out.items & 7))
        out.items += 1
    return FINE


cdef int _pick_strings(Stream* s, int64_t first, int64_t last, Picked* out) noexcept nogil:
    """``s.bits`` is the width of an offset; there is one more than there are strings."""
    cdef int width = s.bits // 8
    cdef int64_t i, offset, before, base, total = out.values.size
    cdef uint64_t number
    if s.count >= s.size // width:
        return BAD_VALUES
    if not _reserve(&out.ends, 8 * (last - first)):
        return NO_ROOM
    number = _load(s.data + first * width, s.bits)
    if number > <uint64_t>s.size:
        return BAD_VALUES
    base = before = <int64_t>number
    for i in range(first + 1, last + 1):
        number = _load(s.data + i * width, s.bits)
        if number > <uint64_t>s.size or <int64_t>number < before:
            return BAD_VALUES
        before = <int64_t>number
        offset = total + before - base
        memcpy(out.ends.data + out.ends.size, &offset, 8)
        out.ends.size += 8
    out.items += last - first
    return FINE if _append(&out.values, s.data + base, before - base) else NO_ROOM


cdef int _pick(Stream* s, int64_t first, int64_t last, Picked* out) noexcept nogil:
    """Append the values [first, last) of a chunk."""
    cdef int64_t i, width
    cdef uint64_t number = 0
    if last <= first:
        return FINE
    if first < 0 or last > s.count:
        return BAD_VALUES
    if s.kind == BITS:
        return _pick_bits(s, first, last, out)
    if s.kind == STRINGS:
        return _pick_strings(s, first, last, out)
    width = s.bits // 8
    if s.kind == BYTES:
        if last > s.size // width:
            return BAD_VALUES
        out.items += last - first
        return FINE if _append(&out.values, s.data + first * width, (last - first) * width) else NO_ROOM
    if not _reserve(&out.values, width * (last - first)):
        return NO_ROOM
    for i in range(first, last):
        if not _value(s, i, &number):
            return BAD_VALUES
        memcpy(out.values.data + out.values.size, &number, width)  # little endian
        out.values.size += width
    out.items += last - first
    return FINE


# --- pages ----------------------------------------------------------------------------------------


cdef struct Recipe:
    int[3] kind      # of repetition levels, definition levels, values
    int[3] bits
    int[3] width
    bint is_large
    int top
    int visible_to


cdef int _streams(
    const Recipe* recipe, const uint8_t* chunk, int64_t size, int64_t values,
    int64_t* levels, Stream* found,
) noexcept nogil:
    """Find the buffers of a chunk."""
    cdef int i, width
    cdef int64_t at = 2, offset = 2, length
    for i in range(3):
        if recipe.kind[i]:
            offset += 4 if i == 2 and recipe.is_large else 2
    if offset > size:
        return BAD_HEADER
    levels[0] = <int64_t>_load(chunk, 16)
    for i in range(3):
        if not recipe.kind[i]:
            continue
        width = 32 if i == 2 and recipe.is_large else 16
        length = <int64_t>_load(chunk + at, width)
        at += width // 8
        offset = (offset + 7) & ~<int64_t>7
        if offset > size or length > size - offset:
            return BAD_HEADER
        found[i].data = chunk + offset
        found[i].size = length
        found[i].count = values if i == 2 else levels[0]
        found[i].kind = recipe.kind[i]
        found[i].bits = recipe.bits[i]
        found[i].width = recipe.width[i]
        found[i].block = -1
        found[i].behind = 0
        offset += length
    return FINE


cdef struct Page:
    const uint8_t* data
    const int64_t* chunks
    const int64_t* positions
    Py_ssize_t touched
    const int64_t* offsets
    const int64_t* first_values
    const int64_t* first_rows
    const int64_t* starts
    const int64_t* ends
    Py_ssize_t ranges


cdef int _flat(const Recipe* recipe, const Page* page, Picked* out) noexcept nogil:
    """Rows that are one value each."""
    cdef Py_ssize_t i, wanted = 0
    cdef int64_t chunk, first, last, levels = 0, row, before, stop
    cdef uint64_t level = 0
    cdef uint16_t narrow
    cdef Stream[3] streams
    cdef int fault
    for i in range(page.touched):
        chunk = page.chunks[i]
        before, stop = page.first_values[chunk], page.first_values[chunk + 1]
        fault = _streams(
            recipe, page.data + page.positions[i], page.offsets[chunk + 1] - page.offsets[chunk],
            stop - before, &levels, streams,
        )
        if fault:
            return fault
        if recipe.kind[1] and levels != stop - before:
            return BAD_LEVELS
        while wanted < page.ranges:
            first, last = max(page.starts[wanted], before), min(page.ends[wanted], stop)
            if first >= stop and page.ends[wanted] > page.starts[wanted]:
                break
            if recipe.kind[1] and last > first:
                if not _reserve(&out.definition, 2 * (last - first)):
                    return NO_ROOM
                for row in range(first - before, last - before):
                    if not _value(&streams[1], row, &level):
                        return BAD_LEVELS
                    narrow = <uint16_t>level
                    memcpy(out.definition.data + out.definition.size, &narrow, 2)
                    out.definition.size += 2
            fault = _pick(&streams[2], first - before, last - before, out)
            if fault:
                return fault
            if page.ends[wanted] > stop:
                break
            wanted += 1
    return FINE if wanted == page.ranges else OTHER_ENDS


cdef void _skip(
    const uint16_t* rep, const uint16_t* definition, int64_t count, int top, int visible_to,
    int64_t target, int64_t* level, int64_t* row, int64_t* value,
) noexcept nogil:
    """Go over levels as long as row ``target`` cannot begin in the next few."""
    cdef int64_t at = level[0]
    cdef int i, tops, values
    while count - at >= STRIDE:
        tops = 0
        for i in range(STRIDE):
            tops += rep[at + i] == top
        if row[0] + tops > target:
            break
        values = STRIDE
        if definition != NULL:
            values = 0
            for i in range(STRIDE):
                values += definition[at + i] <= visible_to
        row[0] += tops
        value[0] += values
        at += STRIDE
    level[0] = at


cdef int _take_levels(
    const uint16_t* rep, const uint16_t* definition, int64_t first, int64_t last, Picked* out
) noexcept nogil:
    if last <= first:
        return FINE
    if not _append(&out.rep, rep + first, 2 * (last - first)):
        return NO_ROOM
    if definition != NULL and not _append(&out.definition, definition + first, 2 * (last - first)):
        return NO_ROOM
    return FINE


cdef int _lists(
    const Recipe* recipe, const Page* page, uint16_t* rep, uint16_t* defs, Picked* out
) noexcept nogil:
    """Rows of lists; ``rep`` and ``defs`` have room for the levels of a chunk."""
    cdef Py_ssize_t i, wanted = 0
    cdef int64_t chunk, levels = 0, level, row = 0, value, first_level, first_value, target
    cdef const uint16_t* definition = defs if recipe.kind[1] else NULL
    cdef int top = recipe.top, visible_to = recipe.visible_to, fault
    cdef bint inside = False
    cdef Stream[3] streams
    for i in range(page.touched):
        chunk = page.chunks[i]
        fault = _streams(
            recipe, page.data + page.positions[i], page.offsets[chunk + 1] - page.offsets[chunk],
            page.first_values[chunk + 1] - page.first_values[chunk], &levels, streams,
        )
        if fault:
            return fault
        if not _all_levels(&streams[0], rep):
            return BAD_LEVELS
        if definition != NULL and not _all_levels(&streams[1], defs):
            return BAD_LEVELS
        if i == 0 or chunk != page.chunks[i - 1] + 1:
            if inside:
                if row != page.ends[wanted]:
                    return OTHER_ENDS
                wanted += 1
                inside = False
            row = page.first_rows[chunk]
        elif row != page.first_rows[chunk]:
            return OTHER_ROWS
        level = value = first_level = first_value = 0
        while level < levels:
            while wanted < page.ranges and page.ends[wanted] == page.starts[wanted]:
                wanted += 1
            if inside:
                target = page.ends[wanted]
            else:
                target = page.starts[wanted] if wanted < page.ranges else <int64_t>1 << 62
            _skip(rep, definition, levels, top, visible_to, target, &level, &row, &value)
            while level < levels:
                if rep[level] == top:
                    if row == target:
                        break
                    row += 1
                if definition == NULL or definition[level] <= visible_to:
                    value += 1
                level += 1
            if level == levels:
                break
            if inside:
                fault = _take_levels(rep, definition, first_level, level, out)
                if not fault:
                    fault = _pick(&streams[2], first_value, value, out)
                if fault:
                    return fault
                wanted += 1
                inside = False
            else:
                first_level, first_value = level, value
                inside = True
        if inside:
            fault = _take_levels(rep, definition, first_level, levels, out)
            if not fault:
                fault = _pick(&streams[2], first_value, value, out)
            if fault:
                return fault
        if row != page.first_rows[chunk + 1]:
            return OTHER_ROWS
        if value != page.first_values[chunk + 1] - page.first_values[chunk]:
            return OTHER_VALUES
    if inside:
        if row != page.ends[wanted]:
            return OTHER_ENDS
        wanted += 1
    while wanted < page.ranges and page.ends[wanted] == page.starts[wanted]:
        wanted += 1
    return FINE if wanted == page.ranges else OTHER_ENDS


def pick_rows(
    recipe,
    const uint8_t[::1] data,
    const int64_t[::1] chunks, const int64_t[::1] positions,
    const int64_t[::1] offsets, const int64_t[::1] first_values, const int64_t[::1] first_rows,
    const int64_t[::1] starts, const int64_t[::1] ends,
):
    """See picks.pyi."""
    cdef Recipe how
    cdef Page page
    cdef Picked out
    cdef Py_ssize_t i, count = offsets.shape[0] - 1
    cdef int64_t before = 0
    cdef int fault
    cdef uint16_t* scratch = NULL
    cdef uint8_t none = 0
    _read_recipe(recipe, &how)
    if first_values.shape[0] != count + 1 or first_rows.shape[0] != count + 1 or count < 1:
        raise ValueError("tables of chunks differ in length")
    if positions.shape[0] != chunks.shape[0] or ends.shape[0] != starts.shape[0]:
        raise ValueError("chunks and positions, or starts and ends, differ in length")
    for i in range(chunks.shape[0]):
        if not before <= chunks[i] < count:
            raise ValueError("the chunks are not sorted and distinct")
        before = chunks[i] + 1
        if (
            positions[i] < 0 or offsets[before] < offsets[before - 1]
            or first_values[before] < first_values[before - 1]
            or offsets[before] - offsets[before - 1] > data.shape[0] - positions[i]
        ):
            raise FormatError("a chunk leaves its buffer")
    before = 0
    for i in range(starts.shape[0]):
        if starts[i] < before or ends[i] < starts[i]:
            raise ValueError("the rows are not sorted and disjoint")
        before = ends[i]
    memset(&out, 0, sizeof(Picked))
    page.data = &data[0] if data.shape[0] else &none
    page.touched = chunks.shape[0]
    page.ranges = starts.shape[0]
    page.chunks = &chunks[0] if page.touched else NULL
    page.positions = &positions[0] if page.touched else NULL
    page.offsets, page.first_values, page.first_rows = &offsets[0], &first_values[0], &first_rows[0]
    page.starts = &starts[0] if page.ranges else NULL
    page.ends = &ends[0] if page.ranges else NULL
    try:
        with nogil:
            if how.top == 0:
                fault = _flat(&how, &page, &out)
            else:
                scratch = <uint16_t*>realloc(NULL, 4 * (MOST_LEVELS + 1024))
                fault = NO_ROOM
                if scratch != NULL:
                    fault = _lists(&how, &page, scratch, scratch + MOST_LEVELS + 1024, &out)
        if fault == NO_ROOM:
            raise MemoryError
        if fault:
            raise FormatError(FAULTS[fault])
        return _results(&how, &out)
    finally:
        free(scratch)
        free(out.rep.data)
        free(out.definition.data)
        free(out.values.data)
        free(out.ends.data)


cdef object _read_recipe(recipe, Recipe* how):
    (
        how.kind[0], how.bits[0], how.width[0], how.kind[1], how.bits[1], how.width[1],
        how.kind[2], how.bits[2], how.width[2], how.is_large, how.top, how.visible_to,
    ) = recipe
    cdef int i
    for i in range(3):
        if how.kind[i] in (INLINE, PACKED) and how.bits[i] not in (8, 16, 32, 64):
            raise ValueError("no such words")
        if how.kind[i] == PACKED and not 1 <= how.width[i] < how.bits[i]:
            raise ValueError("no such width")
        if how.kind[i] == BYTES and (how.bits[i] < 8 or how.bits[i] % 8):
            raise ValueError("no whole bytes")
        if how.kind[i] == STRINGS and how.bits[i] not in (32, 64):
            raise ValueError("no such offsets")
        if not (NOTHING if i < 2 else BYTES) <= how.kind[i] <= STRINGS:
            raise ValueError("no such kind")
        if i < 2 and how.kind[i] and (how.bits[i] != 16 or how.kind[i] in (BITS, STRINGS)):
            raise ValueError("levels are numbers of 16 bits")
    if (how.top > 0) != (how.kind[0] != NOTHING):
        raise ValueError("lists have repetition levels, other rows have none")


cdef object _results(const Recipe* how, Picked* out):
    ends = None
    cdef int32_t[::1] narrow
    cdef int64_t[::1] wide
    cdef int64_t end
    cdef Py_ssize_t i, count = out.ends.size // 8
    if how.kind[2] == STRINGS:
        if out.values.size < 1 << 31:
            ends = np.empty(count + 1, np.int32)
            narrow = ends
            narrow[0] = 0
            for i in range(count):
                memcpy(&end, out.ends.data + 8 * i, 8)
                narrow[i + 1] = <int32_t>end
        else:
            ends = np.empty(count + 1, np.int64)
            wide = ends
            wide[0] = 0
            memcpy(&wide[1], out.ends.data, out.ends.size)
    rep = _array(&out.rep, np.uint16) if how.kind[0] else None
    definition = _array(&out.definition, np.uint16) if how.kind[1] else None
    return rep, definition, _array(&out.values, np.uint8), ends, out.items
