# cython: language_level=3
"""The nearest rows, of which most are never compared: vectors cut to bytes say how near a row may be.

A value becomes ``(value - least) * scale``, from 0 to 255 in all of some rows, and is rounded to a byte.  In these
units row and query are no nearer than their bytes are, less how far each is from its own bytes.  Rows that may be near
enough are compared as they are, so that nothing else is found, and no other distances.  The greater a product of row
and query, the less is |row - query|² - |row|² = |query|² - 2 row query.

Rows that are cut are an array of bytes: what is true of all of them (`CutScale`), their bytes, turned where the processor
takes them so (`code_squares`), what each adds to squares of bytes (`own_part`), and the squares of their lengths in the
units of bytes.
"""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from pennon.index.kernels.vectors cimport vector_sums
from pennon.index.kernels.vectors.code_squares cimport ROWS_TURNED, may_turn, squares_of_turned
from pennon.index.kernels.vectors.nearest_heaps cimport RUN, Heaps, keep_least, keep_one, lowest_bit, nearer_of
from pennon.index.kernels.vectors.vector_kinds cimport all_apart, all_cut_apart, ask_ahead

cdef extern from *:
    """
    #include <math.h>

    enum { CUT_LANES = 32, CUT_WIDTH = 4096, CUT_HEAD = 64, GREATEST = 255, LEAST = 64 };

    /* `apart`: how far a row is from its bytes at most; `longest`: the greatest square of a row's length. */
    typedef struct { float least, scale; double apart, longest; } CutScale;

    /* Say how values become 0 to 255; false where they are too near to each other for that, too far apart, or infinite.
       A value that is no number is no matter: what it is in is at no distance. */
    CLONES static int scale_of(const float *values, int64_t count, float *least, float *scale) {
        float low[CUT_LANES], high[CUT_LANES];
        int64_t at = 0, k;
        for (k = 0; k < CUT_LANES; k++) low[k] = INFINITY, high[k] = -INFINITY;
        for (; at + CUT_LANES <= count; at += CUT_LANES)
            for (k = 0; k < CUT_LANES; k++) {
                float value = values[at + k];
                low[k] = value < low[k] ? value : low[k];
                high[k] = value > high[k] ? value : high[k];
            }
        for (; at < count; at++) {
            low[0] = values[at] < low[0] ? values[at] : low[0];
            high[0] = values[at] > high[0] ? values[at] : high[0];
        }
        for (k = 1; k < CUT_LANES; k++) {
            low[0] = low[k] < low[0] ? low[k] : low[0];
            high[0] = high[k] > high[0] ? high[k] : high[0];
        }
        *least = low[0];
        *scale = GREATEST / (high[0] - low[0]);
        return high[0] - low[0] > 1e-12f && high[0] - low[0] < 1e12f;
    }
    /* The lowest bits of a float of this size and more are a whole number: adding it rounds. */
    INLINED uint8_t rounded_to_byte(float value) {
        uint32_t bits;
        value += 12582912.0f;
        memcpy(&bits, &value, sizeof(bits));
        return (uint8_t)bits;
    }
    /* Cut a vector; return how far it is from its bytes, and a little more: numbers are rounded. */
    INLINED double cut_one(const float *vector, int64_t width, float least, float scale, uint8_t *restrict out) {
        float exact[CUT_WIDTH], nearest[CUT_WIDTH];
        int64_t at;
        for (at = 0; at < width; at++) exact[at] = (vector[at] - least) * scale;
        for (at = 0; at < width; at++) {
            float value = exact[at] > 0 ? exact[at] : 0;
            nearest[at] = value < GREATEST ? value : GREATEST;
        }
        for (at = 0; at < width; at++) out[at] = rounded_to_byte(nearest[at]);
        for (at = 0; at < width; at++) nearest[at] = out[at];
        return 1.001 * sqrt(one_squares_f32(exact, nearest, width)) + 0.001 * sqrt((double)width);
    }
    CLONES static double cut_query(
        const float *query, int64_t width, float least, float scale, uint8_t *out
    ) {
        return cut_one(query, width, least, scale, out);
    }
    /* Cut rows, whose own parts are put to `own`; false where they cannot be. */
    CLONES static int cut_all(
        const float *rows, int64_t count, int64_t width, CutScale *scale, uint8_t *own, uint8_t *lengths, uint8_t *out
    ) {
        uint8_t some[ROWS_TURNED * MOST_TURNED] __attribute__((aligned(64)));
        const int is_turned = may_turn(width);
        scale->apart = scale->longest = 0;
        if (!scale_of(rows, count * width, &scale->least, &scale->scale)) return 0;
        for (int64_t at = 0; at < count; at++, rows += width) {
            int64_t place = is_turned ? at % ROWS_TURNED : at;
            uint8_t *its = (is_turned ? some : out) + place * width;
            double apart = cut_one(rows, width, scale->least, scale->scale, its);
            double length = one_products_f32(rows, rows, width) * (1 + (width + 8) * 0x1p-22);
            int part = own_part(its, width);
            float squared = (float)(length * scale->scale * scale->scale);
            memcpy(own + at * sizeof(part), &part, sizeof(part));
            memcpy(lengths + at * sizeof(squared), &squared, sizeof(squared));
            scale->apart = apart > scale->apart ? apart : scale->apart; /* what is no number is no matter */
            scale->longest = length > scale->longest ? length : scale->longest;
            if (is_turned && (place == ROWS_TURNED - 1 || at == count - 1)) {
                keep_turned(some, place + 1, width, out);
                out += (width + 3) / 4 * 4 * ROWS_TURNED;
            }
        }
        return 1;
    }
    /* What a query adds to squares of bytes that bound products: its square and that of the longest row.  Where floats
       may not hold their product all rows are compared. */
    CLONES static double both_lengths(const float *query, int64_t width, double longest) {
        double length = one_products_f32(query, query, width) * (1 + (width + 8) * 0x1p-22);
        return length + longest < 1e37 ? length + longest : INFINITY;
    }
    /* How far bytes of a row may be from those of a query if the row is no farther from it than some distance, which is
       `start` more than the squares or less the products.  `apart`: how far both are from their bytes; `lengths`: of
       products, see `both_lengths`; then the bound is of what is left without the row's own length.  Distances and
       bounds are rounded, so there is a little more. */
    static float cut_bound(
        float distance, float start, double lengths, int64_t width, const CutScale *scale, double apart
    ) {
        double raw = (double)distance - start + (fabs(distance) + fabs(start)) * 0x1p-22;
        double rounding = (width + 8) * 0x1p-22;
        double most = lengths > 0 ? lengths * (1 + rounding) + 2 * raw : raw * (1 + rounding);
        double reach, bound;
        if (lengths == INFINITY || most != most) return INFINITY;
        if (most < 0) return -INFINITY;
        reach = sqrt(most) * scale->scale + apart;
        bound = reach * reach * 1.000001;
        if (lengths > 0) bound -= scale->longest * scale->scale * scale->scale * (1 - 0x1p-20);
        return (float)bound;
    }
    /* Take the lengths of rows off squares of bytes. */
    CLONES static void less_lengths(float *restrict far, const uint8_t *restrict lengths, int64_t count) {
        for (int64_t at = 0; at < count; at++) {
            float length;
            memcpy(&length, lengths + at * sizeof(length), sizeof(length));
            far[at] -= length;
        }
    }
    /* The least of each so many distances, 64 of them: what is behind the last whole 64 is left out. */
    CLONES static void least_of(const float *far, int64_t count, float *least) {
        for (int64_t k = 0; k < LEAST; k++) least[k] = INFINITY;
        for (int64_t at = 0; at + LEAST <= count; at += LEAST)
            for (int64_t k = 0; k < LEAST; k++) least[k] = far[at + k] < least[k] ? far[at + k] : least[k];
    }
    """
    enum:
        LEAST
        CUT_WIDTH
        CUT_HEAD
    ctypedef struct CutScale:
        float least
        float scale
        double apart
        double longest
    double cut_query(const float *query, int64_t width, float least, float scale, uint8_t *out) noexcept nogil
    bint cut_all(
        const float *rows, int64_t count, int64_t width, CutScale *scale, uint8_t *own, uint8_t *lengths, uint8_t *out
    ) noexcept nogil
    double both_lengths(const float *query, int64_t width, double longest) noexcept nogil
    float cut_bound(
        float distance, float start, double lengths, int64_t width, const CutScale *scale, double apart
    ) noexcept nogil
    void less_lengths(float *far, const uint8_t *lengths, int64_t count) noexcept nogil
    void least_of(const float *far, int64_t count, float *least) noexcept nogil

cdef enum:
    LEAST_WIDTH = 16
    LEAST_ROWS = 64
    MOST_KEPT = 256  # of a query: until it has so many, nothing is left out
    CUT_ROWS = 1024  # that are compared together
    CUT_TOGETHER = 16  # queries
    ASKED_AHEAD = 8  # rows that are on their way while others are compared
    OWN_BYTES = 4
    LENGTH_BYTES = 4


cdef struct Cut:
    CutScale scale
    const uint8_t *own
    const uint8_t *lengths
    const uint8_t *rows


cdef struct CutRoom:
    uint8_t *queries
    float *far


cdef inline int64_t bytes_of_cut(int64_t count, int64_t width) noexcept nogil:
    """Return how many bytes rows take that are cut, 0 where they are not worth it."""
    if count < LEAST_ROWS or not LEAST_WIDTH <= width <= CUT_WIDTH:
        return 0
    return CUT_HEAD + cut_row_bytes(count, width) + (OWN_BYTES + LENGTH_BYTES) * count


cdef inline int64_t cut_row_bytes(int64_t count, int64_t width) noexcept nogil:
    """Return how many bytes the bytes of rows take: where they are turned, all of some times 16 rows."""
    if may_turn(width):
        return (count + ROWS_TURNED - 1) // ROWS_TURNED * ROWS_TURNED * ((width + 3) // 4 * 4)
    return count * width


cdef inline Cut cut_of(const uint8_t[::1] cut, int64_t count, int64_t width) except *:
    """Return rows that are cut as an array has them.  Raises ValueError for one that does not fit."""
    cdef Cut made
    if not cut.shape[0] or cut.shape[0] != bytes_of_cut(count, width):
        raise ValueError("rows that are cut have as many bytes as values")
    memcpy(&made.scale, &cut[0], sizeof(CutScale))
    made.rows = &cut[CUT_HEAD]
    made.own = made.rows + cut_row_bytes(count, width)
    made.lengths = made.own + OWN_BYTES * count
    return made


cdef inline int make_room(CutRoom *room, int64_t width) except -1:
    """Make room for queries that are cut, and for how far they are, unless there is some."""
    if room.queries == NULL:
        room.far = <float *> malloc(CUT_TOGETHER * CUT_ROWS * sizeof(float))
        room.queries = <uint8_t *> malloc(CUT_TOGETHER * width)
        if room.far == NULL or room.queries == NULL:
            raise MemoryError
    return 0


cdef inline void free_room(CutRoom *room) noexcept:
    free(room.queries)
    free(room.far)


cdef inline void keep_cut(
    const Cut *cut, int kind, const float *rows, int64_t count, int64_t width, const uint64_t *ids, const uint8_t *mask,
    const float *queries, const float *starts, const int64_t *numbers, const int64_t *places, int64_t pairs,
    Heaps *heaps, CutRoom *room,
) noexcept nogil:
    """Put the nearest rows into the heaps of the queries that ask them, by squares or products of 32 bits."""
    cdef double[CUT_TOGETHER] apart
    cdef int64_t done = 0, first, together, size, n, place
    cdef double lengths
    while done < count:
        size = min(count - done, <int64_t> CUT_ROWS)
        first = 0
        while first < pairs:
            together = min(pairs - first, <int64_t> CUT_TOGETHER)
            for n in range(together):
                apart[n] = cut.scale.apart + cut_query(
                    queries + places[first + n] * width, width, cut.scale.least, cut.scale.scale,
                    room.queries + n * width,
                )
            if may_turn(width):
                squares_of_turned(
                    cut.rows + done * ((width + 3) // 4 * 4), cut.own + done * OWN_BYTES, size, room.queries, together,
                    width, room.far, size,
                )
            else:
                all_cut_apart(
                    cut.rows + done * width, cut.own + done * OWN_BYTES, size, room.queries, together, width, room.far, size
                )
            for n in range(together):
                place = places[first + n]
                lengths = both_lengths(queries + place * width, width, cut.scale.longest) if kind else 0
                if kind:
                    less_lengths(room.far + n * size, cut.lengths + done * LENGTH_BYTES, size)
                _keep_near(
                    kind, rows + done * width, size, width, ids + done, mask + done if mask != NULL else NULL,
                    queries + place * width, starts[place], numbers[first + n], room.far + n * size, &cut.scale,
                    apart[n], lengths, heaps,
                )
            first += together
        done += size


cdef inline void _keep_near(
    int kind, const float *rows, int64_t count, int64_t width, const uint64_t *ids, const uint8_t *mask,
    const float *query, float start, int64_t heap, const float *far, const CutScale *scale, double apart,
    double lengths, Heaps *heaps,
) noexcept nogil:
    """Put the nearest rows into a heap; ``far``: how far their bytes are from those of the query."""
    cdef float nearest = NAN  # none of them
    cdef int64_t missing = heaps.most - heaps.counts[heap]
    if missing > 0:  # those nearest by their bytes come first: few others may be as near as they are
        nearest = _nearest_bytes(far, count, mask, missing)
        _keep_between(
            kind, rows, count, width, ids, mask, query, start, heap, far, NAN, nearest, scale, apart, lengths, heaps
        )
    _keep_between(
        kind, rows, count, width, ids, mask, query, start, heap, far, nearest, INFINITY, scale, apart, lengths, heaps
    )


cdef inline float _nearest_bytes(const float *far, int64_t count, const uint8_t *mask, int64_t wanted) noexcept nogil:
    """Return how far the bytes of so many rows are, or of a few more; infinity if there are no more rows than that."""
    cdef float[MOST_KEPT] nearest
    cdef float[LEAST] least
    cdef int64_t n
    if count <= wanted:
        return INFINITY
    if mask == NULL and count >= 4 * LEAST and 3 * wanted <= LEAST:  # the nearest are hardly any of them together
        least_of(far, count, least)
        far, count = least, LEAST
    for n in range(wanted):
        nearest[n] = INFINITY
    keep_least(nearest, wanted, far, count, mask)
    return nearest[0]


cdef inline int64_t _rows_between(
    const float *far, int64_t count, float beyond, float most, uint32_t *found
) noexcept nogil:
    """Put the numbers of the rows between two distances, the greater one among them, into ``found``; return how many they are.

    The lower one may be NaN, then nothing is too near.
    """
    cdef int64_t at = 0, size = 0, row
    cdef uint64_t near
    while at < count:
        near = nearer_of(far + at, min(count - at, <int64_t> RUN), most)
        while near:
            row = at + lowest_bit(near)
            near &= near - 1
            if not far[row] <= beyond:
                found[size] = <uint32_t> row
                size += 1
        at += RUN
    return size


cdef inline void _keep_between(
    int kind, const float *rows, int64_t count, int64_t width, const uint64_t *ids, const uint8_t *mask,
    const float *query, float start, int64_t heap, const float *far, float beyond, float most, const CutScale *scale,
    double apart, double lengths, Heaps *heaps,
) noexcept nogil:
    """Put the nearest of some rows into a heap: of those whose bytes are farther than ``beyond``, which may be NaN for
    all of them, and no farther than ``most``.
    """
    cdef int64_t near, n, row
    cdef uint32_t[CUT_ROWS] maybe
    cdef float exact, worst = INFINITY, bound = most
    cdef const float *top = heaps.distances + heap * heaps.most
    if heaps.counts[heap] == heaps.most:
        worst = top[0]
        bound = min(cut_bound(worst, start, lengths, width, scale, apart), most)
    near = _rows_between(far, count, beyond, bound, maybe)
    for n in range(min(near, <int64_t> ASKED_AHEAD)):
        ask_ahead(<const uint8_t *> (rows + maybe[n] * width), width * sizeof(float))
    for n in range(near):
        if n + ASKED_AHEAD < near:
            ask_ahead(<const uint8_t *> (rows + maybe[n + ASKED_AHEAD] * width), width * sizeof(float))
        row = maybe[n]
        if far[row] <= bound and (mask == NULL or mask[row]):
            all_apart(kind, rows + row * width, 1, query, 1, width, &exact, 1)
            keep_one(heaps, heap, start + exact if start != 0 else exact, ids[row])
            if top[0] != worst and heaps.counts[heap] == heaps.most:
                worst = top[0]
                bound = min(cut_bound(worst, start, lengths, width, scale, apart), most)
