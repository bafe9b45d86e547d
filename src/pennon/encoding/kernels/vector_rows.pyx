"""Distances of vectors that lie row by row, and the nearest of them; see the stub."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from pennon.encoding.kernels.near_squares cimport Cut, cut_size, free_cut, is_cut, keep_squares, make_cut
from pennon.encoding.kernels.nearest_heaps cimport Heaps, are_few, check_pairs, heaps_of, keep_some
from pennon.encoding.kernels.vector_kinds cimport all_apart
from pennon.encoding.kernels.vector_spaces cimport Space, space_of

cdef enum:
    BLOCK_BYTES = 16384
    SQUARES = 0
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


def keep_rows(
    int kind, list parts, rows, passing, const int64_t[::1] ends, const int64_t[::1] numbers,
    const int64_t[::1] places, const uint8_t[:, ::1] queries, const float[::1] starts, float factor,
    float[:, ::1] best, uint64_t[:, ::1] best_rows, int64_t[::1] counts,
):
    """Put the nearest rows of partitions into heaps; see the stub."""
    cdef Heaps heaps = heaps_of(best, best_rows, counts)
    cdef int64_t count = len(parts), asked = queries.shape[0], query_bytes = queries.shape[1]
    cdef int64_t at, first = 0, block
    cdef const uint8_t[:, ::1] codes
    cdef const uint64_t[::1] ids
    cdef const uint8_t[::1] mask
    cdef Space space
    cdef Cut cut
    cdef bint has_cut, are_plain = kind == SQUARES and factor == 1
    cdef uint8_t *some
    cdef float *far
    check_pairs(count, numbers.shape[0], asked, best.shape[0], ends, numbers, places)
    if starts.shape[0] != asked or len(rows) != count or len(passing) != count:
        raise ValueError("a partition has numbers of rows, and a mask or None; and a query a start")
    if not numbers.shape[0]:
        return
    for at in range(asked if are_plain else 0):
        are_plain = are_plain and starts[at] == 0
    cut.rows, cut.queries, cut.far = NULL, NULL, NULL
    some = <uint8_t *> malloc(TOGETHER * query_bytes)
    far = <float *> malloc(TOGETHER * MOST_ROWS * sizeof(float))
    try:
        if some == NULL or far == NULL:
            raise MemoryError
        for at in range(count):
            codes, ids, mask = parts[at], rows[at], passing[at]
            space = space_of(kind, codes, queries[0])
            if ids.shape[0] != space.count or (mask is not None and mask.shape[0] != space.count):
                raise ValueError("a partition has a number for each row")
            if space.count:
                block = min(max(BLOCK_BYTES // space.row_bytes, <int64_t> 8), <int64_t> MOST_ROWS)
                has_cut = are_plain and is_cut(space.count, space.width, ends[at] - first, &heaps)
                if has_cut:
                    make_cut(&cut, space.width)
                with nogil:
                    _keep_part(
                        &space, &ids[0], &mask[0] if mask is not None else NULL, block, &queries[0, 0], query_bytes,
                        &starts[0], factor, &numbers[first], &places[first], ends[at] - first, &heaps, some, far,
                        &cut if has_cut else NULL,
                    )
            first = ends[at]
    finally:
        free_cut(&cut)
        free(some)
        free(far)


cdef void _keep_part(
    const Space *space, const uint64_t *ids, const uint8_t *mask, int64_t block, const uint8_t *queries,
    int64_t query_bytes, const float *starts, float factor, const int64_t *numbers, const int64_t *places,
    int64_t pairs, Heaps *heaps, uint8_t *some, float *far, Cut *cut,
) noexcept nogil:
    """Put the nearest rows of a partition into heaps; ``cut``: room for rows that are cut to bytes, NULL: none is."""
    cdef Space part = space[0]
    cdef const uint8_t *passing
    cdef int64_t done = 0
    while done < space.count:
        part.rows = space.rows + done * space.row_bytes
        part.count = min(cut.most, space.count - done) if cut != NULL else space.count
        passing = mask + done if mask != NULL else NULL
        if cut == NULL or (passing != NULL and are_few(passing, part.count)) or not keep_squares(
            cut, <const float *> part.rows, part.count, part.width, ids + done, passing, <const float *> queries,
            numbers, places, pairs, heaps,
        ):
            _keep_rows(
                &part, ids + done, passing, block, queries, query_bytes, starts, factor, numbers, places, pairs, heaps,
                some, far,
            )
        done += part.count


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
