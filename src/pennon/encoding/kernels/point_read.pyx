# cython: language_level=3
"""A few rows of mini-block pages: pick their levels and values.  See point_read.pyi.

Nothing is unpacked that is not wanted, but for the levels of lists, which say where rows begin.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from time import perf_counter_ns

import numpy as np

from pennon.core.kernels.long_work cimport is_long
from pennon.encoding.kernels.chunk_lookup cimport ChunkTable
from pennon.encoding.kernels.chunk_rows cimport Page, Recipe, flat_rows, steps_of
from pennon.encoding.kernels.cold_files cimport is_cold, note_time
from pennon.encoding.kernels.list_rows cimport list_rows
from pennon.encoding.kernels.picked cimport (
    BAD_CODES, BAD_HEADER, BAD_LEVELS, BAD_VALUES, FINE, NO_ROOM, OTHER_ENDS, OTHER_ROWS,
    OTHER_VALUES, Picked, Symbols, Vector
)
from pennon.encoding.kernels.streams cimport BITS, BYTES, INLINE, NOTHING, PACKED, RUNS, STRINGS, ZEROS
from pennon.errors import FormatError

cdef enum:
    MOST_LEVELS = 65536
    COPIED = 65536  # from so many bytes on, a copy costs more than an owner of the memory

FAULTS = {
    BAD_HEADER: "the buffers of a chunk leave it",
    BAD_LEVELS: "the levels of a chunk are not as many as it says",
    BAD_VALUES: "the values of a chunk are not as many as it should have",
    OTHER_ROWS: "chunks in which other rows begin than the row index says",
    OTHER_VALUES: "chunks whose levels stand for more or fewer values than they have",
    OTHER_ENDS: "rows that do not end where the row index says",
    BAD_CODES: "an FSST code that is no symbol, or a string that ends in an escape",
}


cdef class _Owned:
    # Memory that a vector gave away.
    cdef uint8_t* data
    cdef int64_t size

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, self.size, 0, flags)

    def __dealloc__(self):
        free(self.data)


cdef object _array(Vector* v, dtype):
    """Return what a vector holds: few bytes are copied, others are taken from it."""
    cdef uint8_t[::1] out
    cdef void* shrunk
    cdef _Owned owned
    if v.size < COPIED:
        array = np.empty(v.size, np.uint8)
        out = array
        if v.size:
            memcpy(&out[0], v.data, v.size)
        return array.view(dtype)
    owned = _Owned.__new__(_Owned)
    shrunk = realloc(v.data, <size_t>v.size)
    owned.data, owned.size = v.data if shrunk == NULL else <uint8_t*>shrunk, v.size
    v.data, v.size, v.room = NULL, 0, 0
    return np.frombuffer(owned, dtype)


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
            fault = list_rows(
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
        if how.kind[i] == RUNS and how.width[i] not in (1, 2, 4):
            raise ValueError("no such run lengths")
        if not (NOTHING if i < 2 else BYTES) <= how.kind[i] <= (ZEROS if i < 2 else STRINGS):
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
