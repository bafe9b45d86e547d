# cython: language_level=3
"""A few rows of mini-block pages: pick their levels and values.  See picks.pyi.

Nothing is unpacked that is not wanted, but for the levels of lists, which say where rows begin.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

import numpy as np

from pennon.encoding.kernels.picked cimport (
    BAD_CODES, BAD_HEADER, BAD_LEVELS, BAD_VALUES, FINE, NO_ROOM, OTHER_ENDS, OTHER_ROWS,
    OTHER_VALUES, Picked, Symbols, Vector, append, pick_values, reserve
)
from pennon.encoding.kernels.streams cimport (
    BITS, BYTES, INLINE, NOTHING, PACKED, STRINGS, Stream, all_levels, load, value_at
)
from pennon.encoding.kernels.touched cimport ChunkTable
from pennon.errors import FormatError

cdef enum:
    MOST_LEVELS = 65536
    STRIDE = 64

FAULTS = {
    BAD_HEADER: "the buffers of a chunk leave it",
    BAD_LEVELS: "the levels of a chunk are not as many as it says",
    BAD_VALUES: "the values of a chunk are not as many as it should have",
    OTHER_ROWS: "chunks in which other rows begin than the row index says",
    OTHER_VALUES: "chunks whose levels stand for more or fewer values than they have",
    OTHER_ENDS: "rows that do not end where the row index says",
    BAD_CODES: "an FSST code that is no symbol, or a string that ends in an escape",
}


cdef object _array(const Vector* v, dtype):
    array = np.empty(v.size, np.uint8)
    cdef uint8_t[::1] out = array
    if v.size:
        memcpy(&out[0], v.data, v.size)
    return array.view(dtype)


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
    levels[0] = <int64_t>load(chunk, 16)
    for i in range(3):
        if not recipe.kind[i]:
            continue
        width = 32 if i == 2 and recipe.is_large else 16
        length = <int64_t>load(chunk + at, width)
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
    int64_t origin  # positions count from here
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
            recipe, page.data + (page.positions[i] - page.origin), page.offsets[chunk + 1] - page.offsets[chunk],
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
                if not reserve(&out.definition, 2 * (last - first)):
                    return NO_ROOM
                for row in range(first - before, last - before):
                    if not value_at(&streams[1], row, &level):
                        return BAD_LEVELS
                    narrow = <uint16_t>level
                    memcpy(out.definition.data + out.definition.size, &narrow, 2)
                    out.definition.size += 2
            fault = pick_values(&streams[2], first - before, last - before, out)
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
    if not append(&out.rep, rep + first, 2 * (last - first)):
        return NO_ROOM
    if definition != NULL and not append(&out.definition, definition + first, 2 * (last - first)):
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
            recipe, page.data + (page.positions[i] - page.origin), page.offsets[chunk + 1] - page.offsets[chunk],
            page.first_values[chunk + 1] - page.first_values[chunk], &levels, streams,
        )
        if fault:
            return fault
        if not all_levels(&streams[0], rep):
            return BAD_LEVELS
        if definition != NULL and not all_levels(&streams[1], defs):
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
                    fault = pick_values(&streams[2], first_value, value, out)
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
                fault = pick_values(&streams[2], first_value, value, out)
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


cdef class PickCode:
    """See picks.pyi."""

    cdef Recipe how
    cdef Symbols symbols

    def __init__(
        self, recipe, const uint64_t[::1] symbols=None, const uint8_t[::1] lengths=None
    ):
        cdef int i
        _read_recipe(recipe, &self.how)
        self.symbols.in_use = symbols is not None
        if symbols is None or lengths is None:
            return
        if self.how.kind[2] != STRINGS or symbols.shape[0] != 256 or lengths.shape[0] != 256:
            raise ValueError("256 symbols and lengths, of strings")
        for i in range(256):
            if lengths[i] > 8:
                raise FormatError(f"FSST symbol {i} is {lengths[i]} bytes long, more than 8")
            self.symbols.symbols[i], self.symbols.lengths[i] = symbols[i], lengths[i]


cdef int _check(
    const Page* page, ChunkTable table, int64_t data_bytes
) except -1:
    """Raise unless all chunks of a page are there, and its rows rise."""
    cdef Py_ssize_t i
    cdef int64_t chunk, before = 0, at
    for i in range(page.touched):
        chunk, at = page.chunks[i], page.positions[i] - page.origin
        if not before <= chunk < table.count:
            raise ValueError("the chunks are not sorted and distinct")
        before = chunk + 1
        if (
            at < 0 or at > data_bytes or page.offsets[before] < page.offsets[chunk]
            or page.first_values[before] < page.first_values[chunk]
            or page.offsets[before] - page.offsets[chunk] > data_bytes - at
        ):
            raise FormatError("a chunk leaves its buffer")
    before = 0
    for i in range(page.ranges):
        if page.starts[i] < before or page.ends[i] < page.starts[i]:
            raise ValueError("the rows are not sorted and disjoint")
        before = page.ends[i]
    return 0


def pick_pieces(
    list tables, list codes, const int64_t[::1] files,
    const int64_t[::1] cuts, const int64_t[::1] starts, const int64_t[::1] ends,
    const int64_t[::1] page_of, const int64_t[::1] chunks, const int64_t[::1] positions,
    list data, list origins,
):
    """See picks.pyi."""
    cdef Py_ssize_t number, pages = len(tables), touched = chunks.shape[0], at = 0, first
    cdef Picked out
    cdef Page page
    cdef PickCode code, model
    cdef ChunkTable table
    cdef int fault = FINE
    cdef uint16_t* scratch = NULL
    cdef uint8_t none = 0
    cdef int64_t nothing = 0, file = -1
    cdef const uint8_t[::1] view
    if len(data) != len(origins) or files.shape[0] != pages:
        raise ValueError("files differ in number")
    if pages < 1 or len(codes) != pages or cuts.shape[0] != pages + 1:
        raise ValueError("pages, codes and cuts differ in length")
    if page_of.shape[0] != touched or positions.shape[0] != touched:
        raise ValueError("chunks and positions differ in length")
    if cuts[0] != 0 or cuts[pages] != starts.shape[0] or ends.shape[0] != starts.shape[0]:
        raise ValueError("starts and ends of the rows differ in length")
    model = codes[0]
    memset(&out, 0, sizeof(Picked))
    try:
        for number in range(pages):
            code, table = codes[number], tables[number]
            if not _alike(&model.how, &code.how) or cuts[number + 1] < cuts[number]:
                raise ValueError("pages that are not alike")
            if file != files[number]:
                file = files[number]
                if not 0 <= file < len(data):
                    raise ValueError("a page of no file")
                view = data[file]
                page.data = &view[0] if view.shape[0] else &none
                page.origin = origins[file]
            first = at
            while at < touched and page_of[at] == number:
                at += 1
            page.touched, page.ranges = at - first, cuts[number + 1] - cuts[number]
            page.chunks = &chunks[first] if page.touched else &nothing
            page.positions = &positions[first] if page.touched else &nothing
            page.starts = &starts[cuts[number]] if page.ranges else &nothing
            page.ends = &ends[cuts[number]] if page.ranges else &nothing
            page.offsets, page.first_values = table.offsets, table.first_values
            page.first_rows = table.first_rows
            _check(&page, table, view.shape[0])
            out.symbols = &code.symbols
            if code.how.top and scratch == NULL:
                scratch = <uint16_t*>realloc(NULL, 4 * (MOST_LEVELS + 1024))
                if scratch == NULL:
                    raise MemoryError
            with nogil:
                if code.how.top == 0:
                    fault = _flat(&code.how, &page, &out)
                else:
                    fault = _lists(&code.how, &page, scratch, scratch + MOST_LEVELS + 1024, &out)
            if fault == NO_ROOM:
                raise MemoryError
            if fault:
                raise FormatError(FAULTS[fault])
        return _results(&model.how, &out)
    finally:
        free(scratch)
        free(out.rep.data)
        free(out.definition.data)
        free(out.values.data)
        free(out.ends.data)


cdef bint _alike(const Recipe* one, const Recipe* other) noexcept nogil:
    """Tell whether levels and values of two pages may stand one after the other."""
    return (
        one.top == other.top and one.visible_to == other.visible_to
        and (one.kind[1] != 0) == (other.kind[1] != 0)
        and (one.kind[2] == STRINGS) == (other.kind[2] == STRINGS)
        and (one.bits[2] == other.bits[2] or one.kind[2] == STRINGS)
    )


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
