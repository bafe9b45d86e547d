# cython: language_level=3
"""A few rows of mini-block pages: pick their levels and values.  See point_read.pyi.

Nothing is unpacked that is not wanted, but for the levels of lists, which say where rows begin.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from time import perf_counter_ns

import numpy as np

from pennon.core.kernels.long_work cimport is_long
from pennon.encoding.kernels.cold_files cimport is_cold, note_time
from pennon.encoding.kernels.chunk_rows cimport Page, Recipe, find_streams, flat_rows, steps_of
from pennon.encoding.kernels.picked cimport (
    BAD_CODES, BAD_HEADER, BAD_LEVELS, BAD_VALUES, FINE, NO_ROOM, OTHER_ENDS, OTHER_ROWS,
    OTHER_VALUES, Picked, Symbols, Vector, append, pick_values
)
from pennon.encoding.kernels.streams cimport BITS, BYTES, INLINE, NOTHING, PACKED, STRINGS, Stream, all_levels
from pennon.encoding.kernels.chunk_lookup cimport ChunkTable
from pennon.errors import FormatError

cdef enum:
    MOST_LEVELS = 65536
    STRIDE = 64  # levels that are counted before one is looked at

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


# --- rows of lists --------------------------------------------------------------------------------


cdef struct Chunk:
    Stream[3] streams
    int64_t levels
    const uint16_t* rep
    const uint16_t* definition  # NULL: all are 0


cdef struct Cursor:
    int64_t level
    int64_t row    # the one that begins next, at this level or behind it
    int64_t value  # how many there are in front of this level


cdef struct Walk:
    # How far the rows of a page are.
    Py_ssize_t wanted  # the range at hand
    bint inside        # whether it has begun; then chunks in front of this one had the rest of it
    int64_t row


cdef int _unpack_levels(
    const Recipe* recipe, const Page* page, Py_ssize_t i, uint16_t* rep, uint16_t* defs, Chunk* chunk
) noexcept nogil:
    """Find the buffers of a chunk, and unpack its levels to ``rep`` and ``defs``."""
    cdef int64_t number = page.chunks[i]
    cdef int fault = find_streams(
        recipe, page.data + (page.positions[i] - page.origin),
        page.offsets[number + 1] - page.offsets[number],
        page.first_values[number + 1] - page.first_values[number], &chunk.levels, chunk.streams,
    )
    if fault:
        return fault
    chunk.rep, chunk.definition = rep, defs if recipe.kind[1] else NULL
    if not all_levels(&chunk.streams[0], rep):
        return BAD_LEVELS
    if recipe.kind[1] and not all_levels(&chunk.streams[1], defs):
        return BAD_LEVELS
    return FINE


cdef int _end_range(const Page* page, Walk* walk) noexcept nogil:
    """End a range that reached to the end of a chunk, behind which none is looked at."""
    if walk.inside:
        if walk.row != page.ends[walk.wanted]:
            return OTHER_ENDS
        walk.wanted += 1
        walk.inside = False
    return FINE


cdef int _enter_chunk(const Page* page, Py_ssize_t i, Walk* walk) noexcept nogil:
    """Go on from the chunk in front of this one, or begin anew if there are others between them."""
    cdef int64_t number = page.chunks[i]
    cdef int fault = FINE
    if i == 0 or number != page.chunks[i - 1] + 1:
        fault = _end_range(page, walk)
        walk.row = page.first_rows[number]
    elif walk.row != page.first_rows[number]:
        fault = OTHER_ROWS
    return fault


cdef int64_t _next_start(const Page* page, Walk* walk) noexcept nogil:
    """Return where the next range that has rows begins; farther than any row if there is none."""
    while walk.wanted < page.ranges and page.ends[walk.wanted] == page.starts[walk.wanted]:
        walk.wanted += 1
    return page.starts[walk.wanted] if walk.wanted < page.ranges else <int64_t>1 << 62


cdef void _seek(
    const Chunk* chunk, int top, int visible_to, int64_t target, Cursor* at
) noexcept nogil:
    """Go to the level at which row ``target`` begins, or behind the last level."""
    cdef int64_t level = at.level, row = at.row, value = at.value, levels = chunk.levels
    cdef const uint16_t* rep = chunk.rep
    cdef const uint16_t* definition = chunk.definition
    cdef int i, tops, values
    while levels - level >= STRIDE:  # as long as the row cannot begin in the next few
        tops = 0
        for i in range(STRIDE):
            tops += rep[level + i] == top
        if row + tops > target:
            break
        values = STRIDE
        if definition != NULL:
            values = 0
            for i in range(STRIDE):
                values += definition[level + i] <= visible_to
        row += tops
        value += values
        level += STRIDE
    while level < levels:
        if rep[level] == top:
            if row == target:
                break
            row += 1
        if definition == NULL or definition[level] <= visible_to:
            value += 1
        level += 1
    at.level, at.row, at.value = level, row, value


cdef int _take(
    Chunk* chunk, const Cursor* first, const Cursor* last, Picked* out
) noexcept nogil:
    """Append the levels and values between two places of a chunk."""
    cdef int64_t size = 2 * (last.level - first.level)
    if size:
        if not append(&out.rep, chunk.rep + first.level, size):
            return NO_ROOM
        if chunk.definition != NULL:
            if not append(&out.definition, chunk.definition + first.level, size):
                return NO_ROOM
    return pick_values(&chunk.streams[2], first.value, last.value, out)


cdef int _take_rows(
    const Recipe* recipe, const Page* page, int64_t number, Chunk* chunk, Walk* walk, Picked* out
) noexcept nogil:
    """Append what a chunk has of the ranges; the last of them may go on in the next chunk."""
    cdef Cursor at, first
    cdef int fault
    at.level, at.row, at.value = 0, walk.row, 0
    first = at
    while True:
        if not walk.inside:
            _seek(chunk, recipe.top, recipe.visible_to, _next_start(page, walk), &at)
            if at.level == chunk.levels:
                break
            first, walk.inside = at, True
        _seek(chunk, recipe.top, recipe.visible_to, page.ends[walk.wanted], &at)
        fault = _take(chunk, &first, &at, out)
        if fault:
            return fault
        if at.level == chunk.levels:
            break
        walk.wanted += 1
        walk.inside = False
    walk.row = at.row
    if at.row != page.first_rows[number + 1]:
        return OTHER_ROWS
    return FINE if at.value == chunk.streams[2].count else OTHER_VALUES


cdef int _lists(
    const Recipe* recipe, const Page* page, uint16_t* rep, uint16_t* defs, Picked* out
) noexcept nogil:
    """Rows of lists; ``rep`` and ``defs`` have room for the levels of a chunk."""
    cdef Chunk chunk
    cdef Walk walk
    cdef Py_ssize_t i
    cdef int fault
    walk.wanted, walk.inside, walk.row = 0, False, 0
    for i in range(page.touched):
        fault = _unpack_levels(recipe, page, i, rep, defs, &chunk)
        if not fault:
            fault = _enter_chunk(page, i, &walk)
        if not fault:
            fault = _take_rows(recipe, page, page.chunks[i], &chunk, &walk, out)
        if fault:
            return fault
    fault = _end_range(page, &walk)
    if fault:
        return fault
    _next_start(page, &walk)
    return FINE if walk.wanted == page.ranges else OTHER_ENDS


# --- all pages ------------------------------------------------------------------------------------


cdef class PickCode:
    """See point_read.pyi."""

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


cdef struct Job:
    # A page, and how its values are encoded.
    Page page
    const Recipe* how
    const Symbols* symbols


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
    list data, list origins, lent=None,
):
    """See point_read.pyi."""
    cdef Py_ssize_t number, pages = len(tables), touched = chunks.shape[0], at = 0, first
    cdef Picked out
    cdef Job* jobs = NULL
    cdef Page* page
    cdef PickCode code, model
    cdef ChunkTable table
    cdef int fault = FINE
    cdef uint16_t* scratch = NULL
    cdef uint8_t none = 0
    cdef int64_t nothing = 0, file = -1, rows = 0, steps = 0, began
    cdef const uint8_t[::1] view
    cdef uint8_t[::1] target
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
    if lent is not None:
        if model.how.top or model.how.kind[2] in (BITS, STRINGS):
            raise ValueError("values whose bytes nobody knows the number of")
        target = lent
        for at in range(starts.shape[0]):
            rows += ends[at] - starts[at]
        if target.shape[0] != rows * (model.how.bits[2] // 8):
            raise ValueError("not the room that the values take")
        at = 0
        out.values.is_lent, out.values.room = True, target.shape[0]
        out.values.data = &target[0] if target.shape[0] else &none
    try:
        jobs = <Job*>realloc(NULL, pages * sizeof(Job))
        if jobs == NULL:
            raise MemoryError
        for number in range(pages):
            code, table = codes[number], tables[number]
            if not _alike(&model.how, &code.how) or cuts[number + 1] < cuts[number]:
                raise ValueError("pages that are not alike")
            page = &jobs[number].page
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
            _check(page, table, view.shape[0])
            jobs[number].how, jobs[number].symbols = &code.how, &code.symbols
            steps += steps_of(&code.how, page)
            if code.how.top and scratch == NULL:
                scratch = <uint16_t*>realloc(NULL, 4 * (MOST_LEVELS + 1024))
                if scratch == NULL:
                    raise MemoryError
        began = perf_counter_ns()
        if is_long(steps) or is_cold(began):
            with nogil:
                fault = _pick_all(jobs, pages, scratch, &out)
        else:
            fault = _pick_all(jobs, pages, scratch, &out)
            note_time(began, perf_counter_ns())
        if fault == NO_ROOM:
            raise MemoryError
        if fault:
            raise FormatError(FAULTS[fault])
        return _results(&model.how, &out, lent)
    finally:
        free(jobs)
        free(scratch)
        free(out.rep.data)
        free(out.definition.data)
        if not out.values.is_lent:
            free(out.values.data)
        free(out.ends.data)


cdef int _pick_all(
    const Job* jobs, Py_ssize_t pages, uint16_t* scratch, Picked* out
) noexcept nogil:
    """Append the rows of all pages; ``scratch`` has room for the levels of two chunks of lists."""
    cdef Py_ssize_t number
    cdef int fault
    for number in range(pages):
        out.symbols = jobs[number].symbols
        if jobs[number].how.top == 0:
            fault = flat_rows(jobs[number].how, &jobs[number].page, out)
        else:
            fault = _lists(
                jobs[number].how, &jobs[number].page, scratch, scratch + MOST_LEVELS + 1024, out
            )
        if fault:
            return fault
    return FINE


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


cdef object _results(const Recipe* how, Picked* out, lent):
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
    values = _array(&out.values, np.uint8) if lent is None else lent
    return rep, definition, values, ends, out.items
