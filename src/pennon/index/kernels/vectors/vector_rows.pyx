"""Distances of vectors that lie row by row, and the nearest of them; see the stub."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from pennon.core.kernels.long_work cimport is_long
from pennon.index.kernels.vectors.uint8_bounds cimport (
    CUT_HEAD, MOST_KEPT, OWN_BYTES, Cut, CutRoom, CutScale, bytes_of_cut, cut_all, cut_of, cut_row_bytes, free_room,
    keep_cut, make_room,
)
from pennon.index.kernels.vectors.nearest_heaps cimport Heaps, are_few, check_numbers, heaps_of, keep_some
from pennon.index.kernels.vectors.part_lists cimport common_width, mask_of, room_for
from pennon.index.kernels.vectors.work_chunks cimport WorkChunks
from pennon.index.kernels.vectors.vector_kinds cimport all_apart
from pennon.index.kernels.vectors.vector_spaces cimport QUERY_BYTES, Space, space_of, space_of_rows

cdef enum:
    BLOCK_BYTES = 16384
    SQUARES = 0
    PRODUCTS = 1
    TOGETHER = 16  # queries that are compared with the same rows
    MOST_ROWS = 1024
    BYTES_AT_ONCE = 32  # of a row, that are compared in about a nanosecond


def row_distances(
    int kind, const uint8_t[:, ::1] rows, const uint8_t[:, ::1] queries, float[:, ::1] out
):
    """Put how far each row is from each query into ``out``; see the stub."""
    cdef Space space
    cdef int64_t asked = queries.shape[0]
    if out.shape[0] != asked or out.shape[1] != rows.shape[0]:
        raise ValueError("each row has a distance from each query")
    if not asked:
        return
    space = space_of(kind, rows, queries[0])
    if not space.count:
        return
    if is_long(asked * space.count * (1 + space.row_bytes // BYTES_AT_ONCE)):
        with nogil:
            _all_distances(kind, &space, queries, out)
    else:
        _all_distances(kind, &space, queries, out)


cdef void _all_distances(int kind, const Space *space, const uint8_t[:, ::1] queries, float[:, ::1] out) noexcept nogil:
    cdef int64_t start = 0, size, block = max(BLOCK_BYTES // space.row_bytes, <int64_t> 8)
    while start < space.count:
        size = min(block, space.count - start)
        all_apart(  # of all queries, which read the same rows
            kind, space.rows + start * space.row_bytes, size, &queries[0, 0], queries.shape[0], space.width,
            &out[0, start], space.count,
        )
        start += size


def bounds_bytes(int64_t count, int64_t width):
    """Return how many bytes rows take that are cut; see the stub."""
    return bytes_of_cut(count, width)


def quantise_rows(const uint8_t[:, ::1] rows, uint8_t[::1] out):
    """Cut rows to bytes; see the stub."""
    cdef int64_t count = rows.shape[0], width = rows.shape[1] // sizeof(float)
    cdef CutScale scale
    cdef int64_t behind = CUT_HEAD + cut_row_bytes(count, width)
    cdef bint is_made
    if rows.shape[1] % sizeof(float) or not out.shape[0] or out.shape[0] != bytes_of_cut(count, width):
        raise ValueError("rows that are cut have as many bytes as values")
    with nogil:
        is_made = cut_all(
            <const float *> &rows[0, 0], count, width, &scale, &out[behind], &out[behind + OWN_BYTES * count],
            &out[CUT_HEAD],
        )
        memcpy(&out[0], &scale, sizeof(scale))
    return is_made


cdef class CodeRows:
    """The rows of a partition; see the stub."""

    cdef const uint8_t[:, ::1] codes
    cdef const uint64_t[::1] numbers
    cdef const uint8_t[::1] bound_bytes
    cdef const uint8_t *rows
    cdef const uint64_t *ids
    cdef int64_t count, row_bytes
    cdef Cut cut
    cdef readonly bint has_bounds

    def __cinit__(self, const uint8_t[:, ::1] codes not None, const uint64_t[::1] numbers not None):
        """Take rows and their numbers.  Raises ValueError for some that do not fit."""
        self.codes, self.numbers = codes, numbers
        self.count, self.row_bytes = codes.shape[0], codes.shape[1]
        if numbers.shape[0] != self.count:
            raise ValueError("a partition has a number for each row")
        self.rows = &codes[0, 0] if self.count else NULL
        self.ids = &numbers[0] if self.count else NULL

    def take_bounds(self, const uint8_t[::1] made not None):
        """Take the rows cut to bytes; see the stub."""
        self.cut = cut_of(made, self.count, self.row_bytes // sizeof(float))
        self.bound_bytes, self.has_bounds = made, True


cdef struct Part:
    Space space
    Cut cut
    bint has_bounds
    const uint64_t *ids
    const uint8_t *mask


cdef class RowParts:
    """Partitions of rows; see the stub."""

    cdef Part *parts
    cdef int64_t count, width
    cdef int kind
    cdef bint any_cut
    cdef tuple held  # what the parts point to

    def __cinit__(self, int kind, parts, passing):
        """Take partitions.  Raises ValueError for some that do not fit."""
        cdef int64_t at
        self.held = parts, passing = tuple(parts), tuple(passing)
        self.parts = <Part *> room_for(parts, passing, sizeof(Part))
        self.count, self.kind = len(parts), kind
        for at in range(self.count):
            _open_part(&self.parts[at], kind, parts[at], passing[at])
            self.width = common_width(at, self.width, self.parts[at].space.width)
            self.any_cut = self.any_cut or self.parts[at].has_bounds

    def __dealloc__(self):
        free(self.parts)


cdef int _open_part(Part *part, int kind, CodeRows rows, const uint8_t[::1] mask) except -1:
    """Take a partition; whoever calls holds it.  Raises ValueError for one that does not fit."""
    if rows is None:
        raise ValueError("a partition has rows")
    part.space = space_of_rows(kind, rows.rows, rows.count, rows.row_bytes)
    part.ids, part.mask = rows.ids, mask_of(mask, rows.count)
    if rows.has_bounds and (kind == SQUARES or kind == PRODUCTS):
        part.cut = rows.cut
        part.has_bounds = not (part.mask != NULL and are_few(part.mask, rows.count))
    return 0


def keep_rows(
    RowParts parts not None, const int64_t[::1] partitions, const int64_t[::1] numbers, const int64_t[::1] places,
    const uint8_t[:, ::1] queries, const float[::1] starts, float factor,
    float[:, ::1] best, uint64_t[:, ::1] best_rows, int64_t[::1] counts, WorkChunks chunks not None,
):
    """Put the nearest rows of partitions into heaps; see the stub."""
    cdef Heaps heaps = heaps_of(best, best_rows, counts)
    cdef int64_t asked = queries.shape[0], query_bytes = queries.shape[1], pairs = numbers.shape[0]
    cdef int64_t first = 0, last = 0
    cdef CutRoom room
    cdef bint may_cut = parts.any_cut and factor == 1 and heaps.most <= MOST_KEPT
    cdef uint8_t *some
    cdef float *far
    check_numbers(parts.count, pairs, asked, best.shape[0], partitions, numbers, places)
    if starts.shape[0] != asked or chunks.last() > pairs:
        raise ValueError("a query has a start, and a chunk some of the pairs")
    if not pairs:
        return
    if not parts.width or query_bytes != parts.width * QUERY_BYTES[parts.kind]:
        raise ValueError("a query has as many values as the vectors")
    room.queries, room.far = NULL, NULL
    some = <uint8_t *> malloc(TOGETHER * query_bytes)
    far = <float *> malloc(TOGETHER * MOST_ROWS * sizeof(float))
    try:
        if some == NULL or far == NULL:
            raise MemoryError
        if may_cut:
            make_room(&room, parts.width)
        with nogil:  # threads that take turns at the interpreter wait for each other
            while chunks.take(&first, &last):
                while first < last:
                    first = _keep_run(
                        parts.parts + partitions[first], may_cut, &partitions[0], first, last, &queries[0, 0],
                        query_bytes, &starts[0], factor, &numbers[0], &places[0], &heaps, &room, some, far,
                    )
    finally:
        free_room(&room)
        free(some)
        free(far)


cdef int64_t _keep_run(
    const Part *part, bint may_cut, const int64_t *partitions, int64_t first, int64_t last, const uint8_t *queries,
    int64_t query_bytes, const float *starts, float factor, const int64_t *numbers, const int64_t *places,
    Heaps *heaps, CutRoom *room, uint8_t *some, float *far,
) noexcept nogil:
    """Put the nearest rows of a partition into the heaps of those pairs of it that follow the first one; return where these end."""
    cdef int64_t end = first + 1, block
    while end < last and partitions[end] == partitions[first]:
        end += 1
    if part.has_bounds and may_cut:
        keep_cut(
            &part.cut, part.space.kind, <const float *> part.space.rows, part.space.count, part.space.width, part.ids,
            part.mask, <const float *> queries, starts, numbers + first, places + first, end - first, heaps, room,
        )
    elif part.space.count:
        block = min(max(BLOCK_BYTES // part.space.row_bytes, <int64_t> 8), <int64_t> MOST_ROWS)
        _keep_rows(
            &part.space, part.ids, part.mask, block, queries, query_bytes, starts, factor, numbers + first,
            places + first, end - first, heaps, some, far,
        )
    return end


cdef void _keep_rows(
    const Space *space, const uint64_t *ids, const uint8_t *mask, int64_t block, const uint8_t *queries,
    int64_t query_bytes, const float *starts, float factor, const int64_t *numbers, const int64_t *places,
    int64_t pairs, Heaps *heaps, uint8_t *some, float *far,
) noexcept nogil:
    """Put the nearest rows of a partition into the heaps of the queries that ask it."""
    cdef int64_t first = 0, together, start, size, n, row
    cdef float begin
    cdef const uint8_t *asked
    while first < pairs:
        together = min(pairs - first, <int64_t> TOGETHER)
        asked = queries + places[first] * query_bytes
        if together > 1:
            for n in range(together):
                memcpy(some + n * query_bytes, queries + places[first + n] * query_bytes, query_bytes)
            asked = some
        start = 0
        while start < space.count:
            size = min(block, space.count - start)
            if mask != NULL and are_few(mask + start, size):
                for row in range(together * size):
                    far[row] = INFINITY
                for row in range(size):
                    if mask[start + row]:
                        all_apart(
                            space.kind, space.rows + (start + row) * space.row_bytes, 1, asked, together, space.width,
                            far + row, size,
                        )
            else:
                all_apart(  # of all queries, which read the same rows
                    space.kind, space.rows + start * space.row_bytes, size, asked, together, space.width, far, size
                )
            for n in range(together):
                begin = starts[places[first + n]]
                if factor != 1 or begin != 0:
                    for row in range(n * size, (n + 1) * size):
                        far[row] = begin + factor * far[row]
                keep_some(
                    heaps, numbers[first + n], far + n * size, ids + start,
                    mask + start if mask != NULL else NULL, size,
                )
            start += size
        first += together
