# cython: language_level=3
"""Rows of lists in mini-block chunks: where they begin, and their levels and values.

The levels of a chunk say where rows begin, so they are unpacked; those in runs are counted run by run, and only the
levels that are wanted are written out.
"""

from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memset

from pennon.encoding.kernels.chunk_rows cimport Page, Recipe, find_streams
from pennon.encoding.kernels.picked cimport (
    BAD_LEVELS, FINE, NO_ROOM, OTHER_ENDS, OTHER_ROWS, OTHER_VALUES, Picked, Vector, append, pick_values, reserve
)
from pennon.encoding.kernels.run_lengths cimport Place, copy_levels, find_runs, go_to_level, hold
from pennon.encoding.kernels.streams cimport NOTHING, RUNS, ZEROS, Stream, all_levels

cdef enum:
    STRIDE = 64  # levels that are counted before one is looked at


cdef struct Chunk:
    Stream[3] streams
    int64_t levels
    const uint16_t* rep
    const uint16_t* definition  # NULL: all are 0
    bint in_runs                # then `rep` and `definition` are not set


cdef struct Cursor:
    int64_t level
    int64_t row    # the one that begins next, at this level or behind it
    int64_t value  # how many there are in front of this level
    # Of chunks in runs: the next level of each kind.
    Place rep
    Place definition


cdef struct Walk:
    # How far the rows of a page are.
    Py_ssize_t wanted  # the range at hand
    bint inside        # whether it has begun; then chunks in front of this one had the rest of it
    int64_t row


cdef inline bint _has_runs(Stream* s) noexcept nogil:
    """Find the runs of levels; tell whether they are there and have all levels."""
    return find_runs(s.data, s.size, 2, s.width, &s.runs) and hold(&s.runs, s.width, s.count)


cdef inline int _unpack_levels(
    const Recipe* recipe, const Page* page, Py_ssize_t i, uint16_t* rep, uint16_t* defs, Chunk* chunk
) noexcept nogil:
    """Find the buffers of a chunk, and unpack its levels to ``rep`` and ``defs``, unless they are runs."""
    cdef int64_t number = page.chunks[i]
    cdef int fault = find_streams(
        recipe, page.data + (page.positions[i] - page.origin),
        page.offsets[number + 1] - page.offsets[number],
        page.first_values[number + 1] - page.first_values[number], &chunk.levels, chunk.streams,
    )
    if fault:
        return fault
    chunk.in_runs = recipe.kind[0] == RUNS and recipe.kind[1] in (NOTHING, RUNS, ZEROS)
    if chunk.in_runs:
        return FINE if _has_runs(&chunk.streams[0]) and (
            recipe.kind[1] != RUNS or _has_runs(&chunk.streams[1])
        ) else BAD_LEVELS
    chunk.rep, chunk.definition = rep, defs if recipe.kind[1] else NULL
    if not all_levels(&chunk.streams[0], rep):
        return BAD_LEVELS
    if recipe.kind[1] and not all_levels(&chunk.streams[1], defs):
        return BAD_LEVELS
    return FINE


cdef inline int _end_range(const Page* page, Walk* walk) noexcept nogil:
    """End a range that reached to the end of a chunk, behind which none is looked at."""
    if walk.inside:
        if walk.row != page.ends[walk.wanted]:
            return OTHER_ENDS
        walk.wanted += 1
        walk.inside = False
    return FINE


cdef inline int _enter_chunk(const Page* page, Py_ssize_t i, Walk* walk) noexcept nogil:
    """Go on from the chunk in front of this one, or begin anew if there are others between them."""
    cdef int64_t number = page.chunks[i]
    cdef int fault = FINE
    if i == 0 or number != page.chunks[i - 1] + 1:
        fault = _end_range(page, walk)
        walk.row = page.first_rows[number]
    elif walk.row != page.first_rows[number]:
        fault = OTHER_ROWS
    return fault


cdef inline int64_t _next_start(const Page* page, Walk* walk) noexcept nogil:
    """Return where the next range that has rows begins; farther than any row if there is none."""
    while walk.wanted < page.ranges and page.ends[walk.wanted] == page.starts[walk.wanted]:
        walk.wanted += 1
    return page.starts[walk.wanted] if walk.wanted < page.ranges else <int64_t>1 << 62


cdef inline void _go_to_start(Chunk* chunk, const Recipe* recipe, int64_t row, Cursor* at) noexcept nogil:
    """Go to the first level of a chunk, at which or behind which ``row`` begins."""
    memset(at, 0, sizeof(Cursor))
    at.row = row
    if not chunk.in_runs:
        return
    _begin(&chunk.streams[0], &at.rep)
    if recipe.kind[1] == RUNS:
        _begin(&chunk.streams[1], &at.definition)
    else:  # all are 0
        at.definition.left = <int64_t>1 << 62


cdef inline void _begin(Stream* s, Place* at) noexcept nogil:
    """Go in front of the first run."""
    at.runs, at.length_width, at.run, at.left = &s.runs, s.width, -1, 0


cdef inline void _seek_runs(
    const Chunk* chunk, int top, int visible_to, int64_t target, Cursor* at
) noexcept nogil:
    """See `_seek`: run by run."""
    cdef int64_t size
    while at.level < chunk.levels:
        go_to_level(&at.rep)
        go_to_level(&at.definition)
        size = min(min(at.rep.left, at.definition.left), chunk.levels - at.level)
        if at.rep.level == top:
            if at.row == target:
                break
            if target > at.row:
                size = min(size, target - at.row)
            at.row += size
        if at.definition.level <= visible_to:
            at.value += size
        at.level += size
        at.rep.left -= size
        at.definition.left -= size


cdef inline void _seek(
    const Chunk* chunk, int top, int visible_to, int64_t target, Cursor* at
) noexcept nogil:
    """Go to the level at which row ``target`` begins, or behind the last level."""
    if chunk.in_runs:
        _seek_runs(chunk, top, visible_to, target, at)
        return
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


cdef inline bint _append_levels(Place at, int64_t count, Vector* out) noexcept nogil:
    """Append levels in runs."""
    if not reserve(out, 2 * count):
        return False
    copy_levels(at, count, <uint16_t*>(out.data + out.size))
    out.size += 2 * count
    return True


cdef inline int _take(
    const Recipe* recipe, Chunk* chunk, const Cursor* first, const Cursor* last, Picked* out
) noexcept nogil:
    """Append the levels and values between two places of a chunk."""
    cdef int64_t count = last.level - first.level, size = 2 * count
    if count and chunk.in_runs:
        if not _append_levels(first.rep, count, &out.rep):
            return NO_ROOM
        if recipe.kind[1] and not _append_levels(first.definition, count, &out.definition):
            return NO_ROOM
    elif count:
        if not append(&out.rep, chunk.rep + first.level, size):
            return NO_ROOM
        if chunk.definition != NULL:
            if not append(&out.definition, chunk.definition + first.level, size):
                return NO_ROOM
    return pick_values(&chunk.streams[2], first.value, last.value, out)


cdef inline int _take_rows(
    const Recipe* recipe, const Page* page, int64_t number, Chunk* chunk, Walk* walk, Picked* out
) noexcept nogil:
    """Append what a chunk has of the ranges; the last of them may go on in the next chunk."""
    cdef Cursor at, first
    cdef int fault
    _go_to_start(chunk, recipe, walk.row, &at)
    first = at
    while True:
        if not walk.inside:
            _seek(chunk, recipe.top, recipe.visible_to, _next_start(page, walk), &at)
            if at.level == chunk.levels:
                break
            first, walk.inside = at, True
        _seek(chunk, recipe.top, recipe.visible_to, page.ends[walk.wanted], &at)
        fault = _take(recipe, chunk, &first, &at, out)
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


cdef inline int list_rows(
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
