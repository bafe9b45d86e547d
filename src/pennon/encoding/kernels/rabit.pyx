"""Vectors turned, and the distances that codes of RQ (RaBitQ) say; see the stub."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from pennon.encoding.kernels.nearest_heaps cimport Heaps, any_nearer, check_pairs, heaps_of, keep_one
from pennon.encoding.kernels.rabit_codes cimport (
    BLOCK, GROUP, INFINITY, ROUNDS, Asked, Codes, Summing, ask_ahead, bounds_of, choose_summing, estimate_of,
    lowest_bit, near_rows, tables_of, turn_row,
)

cdef Summing SUMMING = choose_summing()


def turn(float[:, ::1] vectors, const float[:, ::1] flips):
    """Turn vectors in place; see the stub."""
    cdef int64_t count = vectors.shape[0], width = vectors.shape[1], size = 1, at
    while 2 * size <= width:
        size *= 2
    if flips.shape[0] != ROUNDS or flips.shape[1] != width or not width or (width % 2 and width > 1):
        raise ValueError("vectors of an even number of values are turned by four signs for each of them")
    with nogil:
        for at in range(count):
            turn_row(&vectors[at, 0], &flips[0, 0], width, size)


def sign_tables(const float[:, ::1] turned, uint8_t[:, :, ::1] tables, float[:, ::1] ranges):
    """Put what four signs at a time make of queries into tables; see the stub."""
    cdef int64_t count = turned.shape[0], width = turned.shape[1], at
    if (
        tables.shape[0] != count or 4 * tables.shape[1] != width or tables.shape[2] != 16
        or ranges.shape[0] != count or ranges.shape[1] != 2 or not width
    ):
        raise ValueError("a query has a table of 16 for each four of its values, and a range")
    with nogil:
        for at in range(count):
            tables_of(&turned[at, 0], width, &tables[at, 0, 0], &ranges[at, 0])


cdef struct Room:
    int32_t *signs  # of a row
    float *steps
    float *lowest  # of all rows of a partition
    float *nearest  # a heap of how far the nearest rows are at most


cdef inline bint _any_passing(const uint8_t *mask, int64_t size) noexcept nogil:
    cdef int64_t at
    cdef uint8_t found = 0
    for at in range(size):
        found |= mask[at]
    return found != 0


cdef void _drop_farthest(float *heap, int64_t count, float value) noexcept nogil:
    """Put a value into a heap, in place of the top."""
    cdef int64_t at = 0, child = 1
    while child < count:
        if child + 1 < count and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= value:
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = value


cdef float _bound_rows(
    const Codes *codes, const Asked *asked, const uint8_t *mask, float bound, int64_t wanted, Room *room
) noexcept nogil:
    """Say how near each row may be; return how far the nearest of them are at most, no more than a bound."""
    cdef int64_t start = 0, size, n
    cdef float[GROUP] highest
    # errors may be larger than they are said to be: what further bits said of other rows is better known
    cdef bint has_all = wanted <= codes.rows and not (codes.bits and bound < INFINITY)
    for n in range(wanted if has_all else 0):
        room.nearest[n] = bound
    while start < codes.rows:
        size = min(codes.rows - start, <int64_t> GROUP)
        if mask != NULL and not _any_passing(mask + start, size):
            for n in range(size):
                room.lowest[start + n] = INFINITY
            start += size
            continue
        bounds_of(codes, start, size, asked, SUMMING, room.lowest + start, highest if has_all else NULL)
        if has_all and any_nearer(highest, size, room.nearest[0]):
            for n in range(size):
                if highest[n] < room.nearest[0] and (mask == NULL or mask[start + n]):
                    _drop_farthest(room.nearest, wanted, highest[n])
        start += size
    return room.nearest[0] if has_all else bound


cdef void _keep_rows(
    const Codes *codes, const Asked *asked, const uint64_t *ids, const uint8_t *mask, Heaps *heaps, int64_t heap, Room *room
) noexcept nogil:
    """Put the rows of a partition that are near enough into the heap of a query."""
    cdef float *top = heaps.distances + heap * heaps.most
    cdef bint is_bounded = (not codes.bits or codes.has_errors) and asked.range[1] < INFINITY
    cdef float bound = top[0] if heaps.counts[heap] == heaps.most else INFINITY
    if is_bounded:
        bound = _bound_rows(codes, asked, mask, bound, heaps.most, room)
        is_bounded = bound < INFINITY
    _keep_near(codes, asked, ids, mask, heaps, heap, bound, is_bounded, False, room)
    if is_bounded and heaps.counts[heap] < heaps.most:
        # signs promised rows that further bits do not find: these are no numbers
        _keep_near(codes, asked, ids, mask, heaps, heap, bound, is_bounded, True, room)


cdef void _keep_near(
    const Codes *codes, const Asked *asked, const uint64_t *ids, const uint8_t *mask, Heaps *heaps, int64_t heap,
    float bound, bint is_bounded, bint others, Room *room
) noexcept nogil:
    """Put the rows that may be within a bound into the heap of a query, or the ``others``."""
    cdef float *top = heaps.distances + heap * heaps.most
    cdef int64_t row, start = 0, size
    cdef uint32_t near, left, every
    while start < codes.rows:
        size = min(codes.rows - start, <int64_t> GROUP)
        every = 0xFFFFFFFFu >> (GROUP - size)
        near = near_rows(room.lowest + start, size, bound) if is_bounded else every
        if others:
            near = every & ~near
        left = near if codes.bits else 0
        while left:  # which are waited for together
            ask_ahead(codes, start + lowest_bit(left))
            left &= left - 1
        while near:
            row = start + lowest_bit(near)
            near &= near - 1
            if mask == NULL or mask[row]:
                keep_one(heaps, heap, estimate_of(codes, asked, row, room.signs, room.steps), ids[row])
        if not (codes.bits or others) and heaps.counts[heap] == heaps.most and top[0] < bound:
            bound = top[0]  # as near as signs say a row is, it is
        start += size


def keep_estimates(
    list parts, rows, passing, const int64_t[::1] ends, const int64_t[::1] numbers,
    const int64_t[::1] places, const float[:, ::1] turned, const uint8_t[:, :, ::1] tables,
    const float[:, ::1] ranges, const float[:, ::1] apart,
    float[:, ::1] best, uint64_t[:, ::1] best_rows, int64_t[::1] counts,
):
    """Put the nearest rows of partitions of codes into heaps; see the stub."""
    cdef Heaps heaps = heaps_of(best, best_rows, counts)
    cdef int64_t count = len(parts), asked = turned.shape[0], width = turned.shape[1] // 8, at, first = 0, pair, most = 0
    cdef const uint8_t[:, ::1] signs
    cdef const uint8_t[:, ::1] rest
    cdef const float[:, ::1] factors
    cdef const uint64_t[::1] ids
    cdef const uint8_t[::1] mask
    cdef const uint8_t *masked
    cdef Codes codes
    cdef Asked one
    cdef Room room
    check_pairs(count, numbers.shape[0], asked, best.shape[0], ends, numbers, places)
    if (
        not width or turned.shape[1] != 8 * width or tables.shape[0] != asked
        or tables.shape[1] != 2 * width or tables.shape[2] != 16
        or ranges.shape[0] != asked or ranges.shape[1] != 2
        or apart.shape[0] != numbers.shape[0] or apart.shape[1] != 3
    ):
        raise ValueError("queries have a table of 16 for each four values, and a range, and pairs what is added")
    if len(rows) != count or len(passing) != count:
        raise ValueError("a partition has numbers of rows, and a mask or None")
    for at in range(count):
        most = max(most, <int64_t> len(rows[at]))
    room.signs = <int32_t *> malloc(width * sizeof(int32_t))
    room.steps = <float *> malloc(8 * width * sizeof(float))
    room.lowest = <float *> malloc((most + 1) * sizeof(float))
    room.nearest = <float *> malloc(heaps.most * sizeof(float))
    try:
        if room.signs == NULL or room.steps == NULL or room.lowest == NULL or room.nearest == NULL:
            raise MemoryError
        for at in range(count):
            signs, rest, factors = parts[at]
            ids, mask = rows[at], passing[at]
            codes = _codes_of(signs, rest, factors)
            if codes.width != width or ids.shape[0] != codes.rows or (
                mask is not None and mask.shape[0] != codes.rows
            ):
                raise ValueError("rows are as wide as queries, and a partition has a number for each")
            if codes.rows:
                masked = &mask[0] if mask is not None else NULL
                with nogil:
                    for pair in range(first, ends[at]):
                        one.turned, one.tables = &turned[places[pair], 0], &tables[places[pair], 0, 0]
                        one.range, one.apart = &ranges[places[pair], 0], &apart[pair, 0]
                        _keep_rows(&codes, &one, &ids[0], masked, &heaps, numbers[pair], &room)
            first = ends[at]
    finally:
        free(room.signs)
        free(room.steps)
        free(room.lowest)
        free(room.nearest)


cdef Codes _codes_of(
    const uint8_t[:, ::1] signs, const uint8_t[:, ::1] rest, const float[:, ::1] factors
) except *:
    """Return codes as arrays have them.  Raises ValueError for arrays that do not fit."""
    cdef Codes codes
    cdef int64_t blocks = (8 * signs.shape[1] + BLOCK - 1) // BLOCK
    codes.rows, codes.width = signs.shape[0], signs.shape[1]
    codes.rest_width, codes.has_errors = rest.shape[1], factors.shape[0] == 5
    codes.bits = <int> (rest.shape[1] // (8 * blocks)) if blocks else 0
    if (
        not codes.width or rest.shape[0] != codes.rows or codes.rest_width != 8 * blocks * codes.bits
        or codes.rest_width > 64 * blocks or factors.shape[1] != codes.rows
        or (factors.shape[0] not in (4, 5) if codes.bits else factors.shape[0] != 2)
    ):
        raise ValueError("rows have signs, no more than 8 further bits of each number, and 2, 4 or 5 factors")
    codes.signs = &signs[0, 0] if codes.rows else NULL
    codes.factors = &factors[0, 0] if codes.rows else NULL
    codes.rest = &rest[0, 0] if codes.rows and codes.bits else NULL
    return codes
