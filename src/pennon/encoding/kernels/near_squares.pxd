# cython: language_level=3
"""The nearest rows by squared distances, of which most are never worked out: vectors cut to bytes say how near a row may be.

A value becomes ``(value - least) * scale``, from 0 to 255 in all of some rows, and is rounded to a byte.  In these units
row and query are no nearer than their bytes are, less how far each is from its own bytes: half a unit for each value of
a row, and of a query what is worked out.  Rows that may be near enough are compared as they are, so that nothing else is
found, and no other distances.
"""

from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc

from pennon.encoding.kernels cimport vector_sums
from pennon.encoding.kernels.nearest_heaps cimport Heaps, any_nearer, keep_one, keep_some
from pennon.encoding.kernels.vector_kinds cimport all_apart

cdef extern from *:
    """
    enum { CUT_LANES = 32, CUT_WIDTH = 4096, GREATEST = 255 };

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
    CLONES static void cut_rows(const float *restrict values, int64_t count, float least, float scale,
                                uint8_t *restrict out) {
        for (int64_t at = 0; at < count; at++) out[at] = rounded_to_byte((values[at] - least) * scale);
    }
    /* Cut a query; return how far it is from its bytes, and a little more: numbers are rounded. */
    CLONES static double cut_query(const float *restrict query, int64_t width, float least, float scale,
                                   uint8_t *restrict out) {
        float exact[CUT_WIDTH], nearest[CUT_WIDTH];
        int64_t at;
        for (at = 0; at < width; at++) exact[at] = (query[at] - least) * scale;
        for (at = 0; at < width; at++) {
            float value = exact[at] > 0 ? exact[at] : 0;
            nearest[at] = value < GREATEST ? value : GREATEST;
        }
        for (at = 0; at < width; at++) out[at] = rounded_to_byte(nearest[at]);
        for (at = 0; at < width; at++) nearest[at] = out[at];
        return 1.001 * sqrt(one_squares_f32(exact, nearest, width)) + 0.001 * sqrt((double)width);
    }
    /* How far bytes of a row may be from those of a query if the row is no farther from it than some distance.
       `query`: how far the query is from its bytes.  Both distances and bounds are rounded, so there is a little more. */
    static float cut_bound(float distance, int64_t width, float scale, double query) {
        double reach = sqrt(distance * (1 + (width + 8) * 0x1p-22)) * scale + 0.501 * sqrt((double)width) + query;
        return (float)(reach * reach * 1.000001);
    }
    """
    enum:
        CUT_WIDTH
    bint scale_of(const float *values, int64_t count, float *least, float *scale) noexcept nogil
    void cut_rows(const float *values, int64_t count, float least, float scale, uint8_t *out) noexcept nogil
    double cut_query(const float *query, int64_t width, float least, float scale, uint8_t *out) noexcept nogil
    float cut_bound(float distance, int64_t width, float scale, double query) noexcept nogil

cdef enum:
    LEAST_WIDTH = 16
    LEAST_PAIRS = 8  # fewer queries are not worth the bytes of the rows
    LEAST_ROWS = 64
    MOST_KEPT = 256  # of a query: until it has so many, nothing is left out
    CUT_BYTES = 131072  # of rows that are cut together
    CUT_ROWS = 1024
    CUT_TOGETHER = 16  # queries
    FIRST = 32  # rows that are compared as they are, until a heap is full
    CUT_RUN = 64


cdef struct Cut:
    int64_t most  # rows
    uint8_t *rows
    uint8_t *queries
    float *far


cdef inline int64_t cut_size(int64_t width) noexcept nogil:
    """Return how many rows are cut together."""
    return min(max(CUT_BYTES // width, <int64_t> LEAST_ROWS), <int64_t> CUT_ROWS)


cdef inline bint is_cut(int64_t rows, int64_t width, int64_t pairs, const Heaps *heaps) noexcept nogil:
    """Return whether rows of a partition are cut for its queries."""
    return (
        rows >= LEAST_ROWS and LEAST_WIDTH <= width <= CUT_WIDTH and pairs >= LEAST_PAIRS and heaps.most <= MOST_KEPT
    )


cdef inline int make_cut(Cut *cut, int64_t width) except -1:
    """Make room for rows and queries that are cut, unless there is some."""
    if cut.rows == NULL:
        cut.most = cut_size(width)
        cut.far = <float *> malloc(CUT_TOGETHER * cut.most * sizeof(float))
        cut.queries = <uint8_t *> malloc(CUT_TOGETHER * width)
        cut.rows = <uint8_t *> malloc(cut.most * width)
        if cut.far == NULL or cut.queries == NULL or cut.rows == NULL:
            raise MemoryError
    return 0


cdef inline void free_cut(Cut *cut) noexcept:
    free(cut.rows)
    free(cut.queries)
    free(cut.far)


cdef inline bint keep_squares(
    Cut *cut, const float *rows, int64_t count, int64_t width, const uint64_t *ids, const uint8_t *mask,
    const float *queries, const int64_t *numbers, const int64_t *places, int64_t pairs, Heaps *heaps,
) noexcept nogil:
    """Put the nearest of no more than `cut_size` rows into the heaps of the queries that ask them; false if they cannot be cut."""
    cdef double[CUT_TOGETHER] apart
    cdef int64_t first = 0, together, n
    cdef float least, scale
    if not scale_of(rows, count * width, &least, &scale):
        return False
    cut_rows(rows, count * width, least, scale, cut.rows)
    while first < pairs:
        together = min(pairs - first, <int64_t> CUT_TOGETHER)
        for n in range(together):
            apart[n] = cut_query(queries + places[first + n] * width, width, least, scale, cut.queries + n * width)
        all_apart(4, cut.rows, count, cut.queries, together, width, cut.far, count)
        for n in range(together):
            _keep_near(
                rows, count, width, ids, mask, queries + places[first + n] * width, numbers[first + n],
                cut.far + n * count, scale, apart[n], heaps,
            )
        first += together
    return True


cdef inline void _keep_near(
    const float *rows, int64_t count, int64_t width, const uint64_t *ids, const uint8_t *mask, const float *query,
    int64_t heap, const float *far, float scale, double apart, Heaps *heaps,
) noexcept nogil:
    """Put the nearest rows into a heap; ``far``: how far their bytes are from those of the query."""
    cdef int64_t at = 0, end, row
    cdef float[FIRST] exact
    cdef float worst, bound
    cdef const float *top = heaps.distances + heap * heaps.most
    while at < count and heaps.counts[heap] < heaps.most:
        end = min(at + FIRST, count)
        all_apart(0, rows + at * width, end - at, query, 1, width, exact, end - at)
        keep_some(heaps, heap, exact, ids + at, mask + at if mask != NULL else NULL, end - at)
        at = end
    if at == count:
        return
    worst = top[0]
    bound = cut_bound(worst, width, scale, apart)
    while at < count:
        end = min(at + CUT_RUN, count)
        if any_nearer(far + at, end - at, bound):
            for row in range(at, end):
                if far[row] <= bound and (mask == NULL or mask[row]):
                    all_apart(0, rows + row * width, 1, query, 1, width, exact, 1)
                    keep_one(heaps, heap, exact[0], ids[row])
                    if top[0] != worst:
                        worst = top[0]
                        bound = cut_bound(worst, width, scale, apart)
        at = end
