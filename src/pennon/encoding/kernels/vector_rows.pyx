"""Distances of vectors that lie row by row, and the nearest of them; see the stub."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from pennon.encoding.kernels.cut_vectors cimport (
    CUT_HEAD, MOST_KEPT, OWN_BYTES, Cut, CutRoom, CutScale, bytes_of_cut, cut_all, cut_of, cut_row_bytes, free_room,
    keep_cut, make_room,
)
from pennon.encoding.kernels.nearest_heaps cimport Heaps, are_few, check_numbers, heaps_of, keep_some
from pennon.encoding.kernels.vector_kinds cimport all_apart
from pennon.encoding.kernels.vector_spaces cimport Space, space_of

cdef enum:
    BLOCK_BYTES = 16384
    SQUARES = 0
    PRODUCTS = 1
    TOGETHER = 16  # queries that are compared with the same rows
    MOST_ROWS = 1024


def row_distances(
    int kind, const uint8_t[:, ::1] rows, const uint8_t[:, ::1] queries, float[:, ::1] out
):
    """Put how far each row is from each query into ``out``; see the stub."""
    cdef Space space
    cdef int64_t asked = queries.shape[0], start = 0, block, size
    if out.shape[0] != asked or out.shape[1] != rows.shape[0]:
        raise ValueError("each row has a distance from each query")
    if not asked:
        return
    space = space_of(kind, rows, queries[0])
    if not space.count:
        return
    block = max(BLOCK_BYTES // space.row_bytes, <int64_t> 8)
    with nogil:
        while start < space.count:
            size = min(block, space.count - start)
            all_apart(  # of all queries, which read the same rows
                kind, space.rows + start * space.row_bytes, size, &queries[0, 0], asked, space.width,
                &out[0, start], space.count,
            )
            start += size


def cut_bytes(int64_t count, int64_t width):
    """Return how many bytes rows take that are cut; see the stub."""
    return bytes_of_cut(count, width)


def cut_rows(const uint8_t[:, ::1] rows, uint8_t[::1] out):
    """Cut rows to bytes; see the stub."""
    cdef int64_t count = rows.shape[0], width = rows.shape[1] // sizeof(float)
    cdef CutScale scale
    cdef int64_t behind = CUT_HEAD + cut_row_bytes(count, width)
    cdef bint is_cut
    if rows.shape[1] % sizeof(float) or not out.shape[0] or out.shape[0] != bytes_of_cut(count, width):
        raise ValueError("rows that are cut have as many bytes as values")
    with nogil:
        is_cut = cut_all(
            <const float *> &rows[0, 0], count, width, &scale, &out[behind], &out[behind + OWN_BYTES * count],
            &out[CUT_HEAD],
        )
        memcpy(&out[0], &scale, sizeof(scale))
    return is_cut


cdef struct Part:
    Space space
    Cut cut
    bint is_known, is_cut
    const uint64_t *ids
    const uint8_t *mask


def keep_rows(
    int kind, parts, cuts, rows, passing, const int64_t[::1] partitions, const int64_t[::1] numbers,
    const int64_t[::1] places, const uint8_t[:, ::1] queries, const float[::1] starts, float factor,
    float[:, ::1] best, uint64_t[:, ::1] best_rows, int64_t[::1] counts,
):
    """Put the nearest rows of partitions into heaps; see the stub."""
    cdef Heaps heaps = heaps_of(best, best_rows, counts)
    cdef int64_t count = len(parts), asked = queries.shape[0], query_bytes = queries.shape[1], pairs = numbers.shape[0]
    cdef int64_t at, first = 0, end, block
    cdef Part *held = NULL
    cdef Part *its
    cdef CutRoom room
    cdef bint may_cut = (kind == SQUARES or kind == PRODUCTS) and factor == 1 and heaps.most <= MOST_KEPT
    cdef uint8_t *some
    cdef float *far
    check_numbers(count, pairs, asked, best.shape[0], partitions, numbers, places)
    if starts.shape[0] != asked or len(rows) != count or len(passing) != count or len(cuts) != count:
        raise ValueError("a partition has numbers of rows, and a mask or None; and a query a start")
    if not pairs:
        return
    # which nobody changes while they are read
    parts, cuts, rows, passing = tuple(parts), tuple(cuts), tuple(rows), tuple(passing)
    room.queries, room.far = NULL, NULL
    some = <uint8_t *> malloc(TOGETHER * query_bytes)
    far = <float *> malloc(TOGETHER * MOST_ROWS * sizeof(float))
    held = <Part *> calloc(count, sizeof(Part))
    try:
        if some == NULL or far == NULL or held == NULL:
            raise MemoryError
        for first in range(pairs):
            at = partitions[first]
            its = held + at
            if not its.is_known:
                its.space = space_of(kind, parts[at], queries[0])
                _open_part(its, cuts[at] if may_cut else None, rows[at], passing[at])
                if its.is_cut:
                    make_room(&room, its.space.width)
        first = 0
        with nogil:  # threads that take turns at the interpreter wait for each other
            while first < pairs:
                end = first + 1
                while end < pairs and partitions[end] == partitions[first]:
                    end += 1
                its = held + partitions[first]
                if its.is_cut:
                    keep_cut(
                        &its.cut, kind, <const float *> its.space.rows, its.space.count, its.space.width, its.ids,
                        its.mask, <const float *> &queries[0, 0], &starts[0], &numbers[first], &places[first],
                        end - first, &heaps, &room,
                    )
                elif its.space.count:
                    block = min(max(BLOCK_BYTES // its.space.row_bytes, <int64_t> 8), <int64_t> MOST_ROWS)
                    _keep_rows(
                        &its.space, its.ids, its.mask, block, &queries[0, 0], query_bytes, &starts[0], factor,
                        &numbers[first], &places[first], end - first, &heaps, some, far,
                    )
                first = end
    finally:
        free_room(&room)
        free(some)
        free(far)
        free(held)


cdef int _open_part(Part *part, const uint8_t[::1] cut, const uint64_t[::1] ids, const uint8_t[::1] mask) except -1:
    """Take a partition as arrays have it; whoever calls holds these.  Raises ValueError for arrays that do not fit."""
    cdef int64_t count = part.space.count
    if ids.shape[0] != count or (mask is not None and mask.shape[0] != count):
        raise ValueError("a partition has a number for each row")
    part.ids = &ids[0] if count else NULL
    part.mask = &mask[0] if mask is not None and count else NULL
    if cut is not None:
        part.cut = cut_of(cut, count, part.space.width)
        part.is_cut = not (part.mask != NULL and are_few(part.mask, count))
    part.is_known = True
    return 0


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
