"""Vectors turned, and the distances that codes of RQ (RaBitQ) say; see the stub."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from pennon.index.kernels.vectors.near_signs cimport (
    RowSigns, are_signs_words, bounds_of_rows, estimate_of_row, laid_bytes, lay_tables, near_rows,
)
from pennon.index.kernels.vectors.nearest_heaps cimport Heaps, check_numbers, heaps_of, keep_least, keep_one
from pennon.index.kernels.vectors.part_lists cimport common_width, mask_of, room_for
from pennon.index.kernels.vectors.rabit_codes cimport (
    BLOCK, GROUP, INFINITY, ROUNDS, EncodedQuery, Codes, Summing, ask_ahead, choose_summing, tables_of, turn_row,
)
from pennon.index.kernels.vectors.rabit_pairs cimport apart_of
from pennon.index.kernels.vectors.work_chunks cimport WorkChunks

cdef Summing SUMMING = choose_summing()

cdef enum:
    AHEAD = 8  # rows whose further bits are asked for before they are needed


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


def pairs_apart(
    const float[:, ::1] queries, const float[:, ::1] centroids, const int64_t[::1] numbers,
    const int64_t[::1] partitions, bint is_product, bint is_by_residual, float[:, ::1] apart,
):
    """Put what queries and centroids add to distances into an array; see the stub."""
    cdef int64_t pairs = numbers.shape[0], width = queries.shape[1], pair
    if (
        not width or width % 4 or centroids.shape[1] != width or partitions.shape[0] != pairs
        or apart.shape[0] != pairs or apart.shape[1] != 3
    ):
        raise ValueError("queries and centroids have as many values, in fours, and pairs one of each")
    for pair in range(pairs):
        if not (0 <= numbers[pair] < queries.shape[0] and 0 <= partitions[pair] < centroids.shape[0]):
            raise ValueError("each pair has a query and a centroid")
    with nogil:
        for pair in range(pairs):
            apart_of(
                &queries[numbers[pair], 0], &centroids[partitions[pair], 0], width, is_product, is_by_residual,
                &apart[pair, 0],
            )


cdef struct Room:
    int32_t *signs  # of a row
    RowSigns by_row  # of a group of rows
    float *steps
    float *lowest  # of all rows of a partition
    uint32_t *near  # the numbers of those that may be near enough
    float *nearest  # a heap of how far the nearest rows are at most
    uint8_t *laid  # the tables of a query


cdef class RabitRows:
    """The rows of a partition; see the stub."""

    cdef Codes codes
    cdef const uint64_t *ids
    cdef const uint8_t[:, ::1] signs
    cdef const uint8_t[:, ::1] rest
    cdef const float[:, ::1] factors
    cdef const uint64_t[::1] numbers

    def __init__(self, signs, rest, factors, numbers):
        """Take arrays.  Raises ValueError for some that do not fit."""
        self.signs, self.rest, self.factors, self.numbers = signs, rest, factors, numbers
        self.codes = _codes_of(self.signs, self.rest, self.factors)
        if self.numbers.shape[0] != self.codes.rows:
            raise ValueError("a partition has a number for each row")
        self.ids = &self.numbers[0] if self.codes.rows else NULL


cdef struct Part:
    const Codes *codes
    const uint64_t *ids
    const uint8_t *mask  # NULL: all rows may be found


cdef class RabitParts:
    """Partitions of codes; see the stub."""

    cdef Part *parts
    cdef int64_t count, width, most
    cdef tuple held  # what the parts point to

    def __cinit__(self, parts, passing):
        """Take partitions.  Raises ValueError for some that do not fit."""
        cdef int64_t at
        self.held = parts, passing = tuple(parts), tuple(passing)
        self.parts = <Part *> room_for(parts, passing, sizeof(Part))
        self.count = len(parts)
        for at in range(self.count):
            _open_part(&self.parts[at], parts[at], passing[at])
            self.width = common_width(at, self.width, self.parts[at].codes.width)
            self.most = max(self.most, self.parts[at].codes.rows)

    def __dealloc__(self):
        free(self.parts)


cdef int _open_part(Part *part, RabitRows rows, const uint8_t[::1] mask) except -1:
    """Take a partition; whoever calls holds it.  Raises ValueError for one that does not fit."""
    if rows is None:
        raise ValueError("a partition has rows")
    part.codes, part.ids, part.mask = &rows.codes, rows.ids, mask_of(mask, rows.codes.rows)
    return 0


cdef inline bint _any_passing(const uint8_t *mask, int64_t size) noexcept nogil:
    cdef int64_t at
    cdef uint8_t found = 0
    for at in range(size):
        found |= mask[at]
    return found != 0


cdef float _bound_rows(
    const Codes *codes, const EncodedQuery *asked, const uint8_t *mask, float bound, int64_t wanted, Room *room
) noexcept nogil:
    """Say how near each row may be; return how far the nearest of them are at most, no more than a bound."""
    cdef int64_t start = 0, size, n
    cdef float[GROUP] highest
    # errors may be larger than they are said to be: what further bits said of other rows is better known
    cdef bint has_all = wanted <= codes.rows and not (codes.bits and bound < INFINITY)
    if mask == NULL and not has_all:
        bounds_of_rows(codes, 0, codes.rows, asked, SUMMING, room.lowest, NULL)
        return bound
    for n in range(wanted if has_all else 0):
        room.nearest[n] = bound
    while start < codes.rows:
        size = min(codes.rows - start, <int64_t> GROUP)
        if mask != NULL and not _any_passing(mask + start, size):
            for n in range(size):
                room.lowest[start + n] = INFINITY
            start += size
            continue
        bounds_of_rows(codes, start, size, asked, SUMMING, room.lowest + start, highest if has_all else NULL)
        if has_all:
            keep_least(room.nearest, wanted, highest, size, mask + start if mask != NULL else NULL)
        start += size
    return room.nearest[0] if has_all else bound


cdef void _keep_rows(
    const Codes *codes, const EncodedQuery *asked, const uint64_t *ids, const uint8_t *mask, Heaps *heaps, int64_t heap, Room *room
) noexcept nogil:
    """Put the rows of a partition that are near enough into the heap of a query."""
    cdef float *top = heaps.distances + heap * heaps.most
    cdef bint is_bounded = (not codes.bits or codes.has_errors) and asked.range[1] < INFINITY
    cdef float bound = top[0] if heaps.counts[heap] == heaps.most else INFINITY
    cdef int64_t count, at
    if is_bounded:
        bound = _bound_rows(codes, asked, mask, bound, heaps.most, room)
        is_bounded = bound < INFINITY
    if is_bounded:
        count = near_rows(asked, room.lowest, codes.rows, bound, False, room.near)
        _keep_near(codes, asked, ids, mask, heaps, heap, True, count, room)
        if heaps.counts[heap] < heaps.most:
            # signs promised rows that further bits do not find: these are no numbers
            count = near_rows(asked, room.lowest, codes.rows, bound, True, room.near)
            _keep_near(codes, asked, ids, mask, heaps, heap, False, count, room)
        return
    for at in range(codes.rows):
        room.near[at] = <uint32_t> at
    _keep_near(codes, asked, ids, mask, heaps, heap, False, codes.rows, room)


cdef void _keep_near(
    const Codes *codes, const EncodedQuery *asked, const uint64_t *ids, const uint8_t *mask, Heaps *heaps, int64_t heap,
    bint is_bounded, int64_t count, Room *room
) noexcept nogil:
    """Put those of some rows that are near enough into the heap of a query."""
    cdef float *top = heaps.distances + heap * heaps.most
    cdef int64_t row, at
    for at in range(min(count, <int64_t> AHEAD) if codes.bits else 0):  # which are waited for together
        ask_ahead(codes, room.near[at])
    for at in range(count):
        if codes.bits and at + AHEAD < count:
            ask_ahead(codes, room.near[at + AHEAD])
        row = room.near[at]
        if mask != NULL and not mask[row]:
            continue
        if is_bounded and not codes.bits and heaps.counts[heap] == heaps.most and room.lowest[row] > top[0]:
            continue  # as near as signs say a row is, it is
        keep_one(heaps, heap, estimate_of_row(codes, asked, row, &room.by_row, room.signs, room.steps), ids[row])


def keep_estimates(
    RabitParts parts not None, const int64_t[::1] partitions, const int64_t[::1] numbers, const int64_t[::1] places,
    const float[:, ::1] turned, const uint8_t[:, :, ::1] tables, const float[:, ::1] ranges, const float[:, ::1] apart,
    float[:, ::1] best, uint64_t[:, ::1] best_rows, int64_t[::1] counts, WorkChunks chunks not None,
):
    """Put the nearest rows of partitions of codes into heaps; see the stub."""
    cdef Heaps heaps = heaps_of(best, best_rows, counts)
    cdef int64_t asked = turned.shape[0], width = turned.shape[1] // 8, pairs = numbers.shape[0]
    cdef int64_t pair = 0, last = 0, most = parts.most, made = -1
    cdef const Part *its
    cdef EncodedQuery one
    cdef Room room
    check_numbers(parts.count, pairs, asked, best.shape[0], partitions, numbers, places)
    if (
        not width or turned.shape[1] != 8 * width or tables.shape[0] != asked
        or tables.shape[1] != 2 * width or tables.shape[2] != 16
        or ranges.shape[0] != asked or ranges.shape[1] != 2
        or apart.shape[0] != pairs or apart.shape[1] != 3
    ):
        raise ValueError("queries have a table of 16 for each four values, and a range, and pairs what is added")
    if parts.count and parts.width != width:
        raise ValueError("rows are as wide as queries")
    if chunks.last() > pairs:
        raise ValueError("a chunk has some of the pairs")
    memset(&room, 0, sizeof(Room))
    try:
        room.signs = <int32_t *> malloc(width * sizeof(int32_t))
        room.by_row.signs = <uint8_t *> malloc(GROUP * width)
        room.steps = <float *> malloc(8 * width * sizeof(float))
        room.lowest = <float *> malloc((most + 1) * sizeof(float))
        room.near = <uint32_t *> malloc((most + 16) * sizeof(uint32_t))
        room.nearest = <float *> malloc(heaps.most * sizeof(float))
        room.laid = <uint8_t *> malloc(laid_bytes(width))
        if (
            room.signs == NULL or room.by_row.signs == NULL or room.steps == NULL or room.lowest == NULL or room.near == NULL
            or room.nearest == NULL or room.laid == NULL
        ):
            raise MemoryError
        with nogil:
            while chunks.take(&pair, &last):
                while pair < last:
                    its = parts.parts + partitions[pair]
                    if its.codes.rows:
                        one.turned, one.tables = &turned[places[pair], 0], &tables[places[pair], 0, 0]
                        one.range, one.apart = &ranges[places[pair], 0], &apart[pair, 0]
                        one.laid = room.laid if are_signs_words() else NULL
                        if one.laid != NULL and places[pair] != made:
                            made = places[pair]
                            lay_tables(one.tables, width, room.laid)
                        _keep_rows(its.codes, &one, its.ids, its.mask, &heaps, numbers[pair], &room)
                    pair += 1
    finally:
        free(room.signs)
        free(room.by_row.signs)
        free(room.steps)
        free(room.lowest)
        free(room.near)
        free(room.nearest)
        free(room.laid)


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
