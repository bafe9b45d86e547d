"""Distances between vectors and queries."""

from libc.stdint cimport int64_t, uint8_t

from pennon.index.kernels.vectors cimport vector_sums

ctypedef fused Real:
    float
    double

cdef extern from *:
    """
    enum { L2 = 0, COSINE = 1, DOT = 2 };
    enum { ROWS = 32 }; /* in the nearest cache */

    #define L2_OF(SUM, M, N) SUM
    #define DOT_OF(SUM, M, N) (1 - SUM)
    #define COSINE_OF(SUM, M, N) (1 - SUM / (of_rows[M] * of_queries[N]))

    /* how far `count` rows are from queries, whose `norms` cosine needs */
    #define DISTANCES(EACH, TYPE, SUFFIX, ROOT)                                                          \
        ALL_OF(l2_##SUFFIX, squares_##SUFFIX, TYPE, TYPE, TYPE, L2_OF)                                   \
        ALL_OF(dot_##SUFFIX, products_##SUFFIX, TYPE, TYPE, TYPE, DOT_OF)                                \
        ALL_OF(cosine_##SUFFIX, products_##SUFFIX, TYPE, TYPE, TYPE, COSINE_OF)                          \
        CLONES static void lengths_##SUFFIX(const TYPE *x, int64_t rows, int64_t width, TYPE *lengths) { \
            for (int64_t i = 0; i < rows; i++)                                                           \
                lengths[i] = ROOT(one_products_##SUFFIX(x + i * width, x + i * width, width));           \
        }                                                                                                \
        /* `unusual`: room for a mark of each row whose length is above `most`, or below its inverse */  \
        static int64_t EACH(const TYPE *x, int64_t count, const TYPE *q, int64_t queries, int64_t width, \
                         int metric, const TYPE *norms, float *out, TYPE most, uint8_t *unusual) {       \
            TYPE lengths[ROWS];                                                                          \
            int64_t marked = 0;                                                                          \
            for (int64_t first = 0; first < count; first += ROWS) {                                      \
                int64_t rows = count - first < ROWS ? count - first : ROWS;                              \
                const TYPE *mine = x + first * width;                                                    \
                if (metric == COSINE) lengths_##SUFFIX(mine, rows, width, lengths);                      \
                if (metric == COSINE && unusual) {                                                       \
                    int some = 0;                                                                        \
                    for (int64_t i = 0; i < rows; i++)                                                   \
                        some += !(lengths[i] <= most) | !(lengths[i] * most >= 1);                       \
                    for (int64_t i = 0; i < rows; i++) unusual[first + i] = 0;                           \
                    for (int64_t i = 0; some && i < rows; i++)                                           \
                        unusual[first + i] = !(lengths[i] <= most) | !(lengths[i] * most >= 1);          \
                    marked += some;                                                                      \
                }                                                                                        \
                (metric == L2 ? l2_##SUFFIX : metric == DOT ? dot_##SUFFIX : cosine_##SUFFIX)(           \
                    mine, rows, q, queries, width, lengths, norms, out + first, count);                  \
            }                                                                                            \
            return marked;                                                                               \
        }

    DISTANCES(each_f, float, f32, __builtin_sqrtf)
    DISTANCES(each_d, double, f64, __builtin_sqrt)

    CLONES static void bits_of(const uint8_t *x, int64_t count, const uint8_t *q, int64_t queries,
                               int64_t size, float *out)
    {
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = 0; j < queries; j++) {
                const uint8_t *a = x + i * size, *b = q + j * size;
                int64_t at = 0, found = 0;
                for (; at + 8 <= size; at += 8) {
                    uint64_t v, w;
                    memcpy(&v, a + at, 8);
                    memcpy(&w, b + at, 8);
                    found += __builtin_popcountll(v ^ w);
                }
                for (; at < size; at++) found += __builtin_popcount(a[at] ^ b[at]);
                out[j * count + i] = (float)found;
            }
    }
    """
    int64_t each_f(const float *x, int64_t count, const float *q, int64_t queries, int64_t size,
                   int metric, const float *norms, float *out, float most, uint8_t *unusual) noexcept nogil
    int64_t each_d(const double *x, int64_t count, const double *q, int64_t queries, int64_t size,
                   int metric, const double *norms, float *out, double most, uint8_t *unusual) noexcept nogil
    void bits_of(const uint8_t *x, int64_t count, const uint8_t *q, int64_t queries, int64_t size,
                 float *out) noexcept nogil


def vector_distances(
    const Real[:, ::1] vectors, const Real[:, ::1] queries, int metric, const Real[::1] norms,
    float[:, ::1] out, double most=0, uint8_t[::1] unusual=None,
):
    """See distances.pyi."""
    cdef int64_t count = vectors.shape[0], size = vectors.shape[1], asked = queries.shape[0], marked
    cdef uint8_t *marks = NULL
    if queries.shape[1] != size:
        raise ValueError("vectors and queries are not of one length")
    if norms.shape[0] != asked or out.shape[0] != asked or out.shape[1] != count:
        raise ValueError("there is no room for each distance, or no norm for each query")
    if not 0 <= metric <= 2:
        raise ValueError("there is no such metric")
    if unusual is not None and unusual.shape[0] != count:
        raise ValueError("there is no room for a mark of each vector")
    if count == 0 or asked == 0:
        return 0
    if unusual is not None:
        marks = &unusual[0]
    cdef const Real *none = &norms[0]
    cdef const Real *x = &vectors[0, 0] if size else none
    cdef const Real *q = &queries[0, 0] if size else none
    with nogil:
        if Real is float:
            marked = each_f(x, count, q, asked, size, metric, &norms[0], &out[0, 0], <float> most, marks)
        else:
            marked = each_d(x, count, q, asked, size, metric, &norms[0], &out[0, 0], most, marks)
    return marked


def differing_bits(
    const uint8_t[:, ::1] vectors, const uint8_t[:, ::1] queries, float[:, ::1] out
):
    """See distances.pyi."""
    cdef int64_t count = vectors.shape[0], size = vectors.shape[1], asked = queries.shape[0]
    cdef uint8_t none = 0
    if queries.shape[1] != size:
        raise ValueError("vectors and queries are not of one length")
    if out.shape[0] != asked or out.shape[1] != count:
        raise ValueError("there is no room for each distance")
    if count == 0 or asked == 0:
        return
    cdef const uint8_t *x = &vectors[0, 0] if size else &none
    cdef const uint8_t *q = &queries[0, 0] if size else &none
    with nogil:
        bits_of(x, count, q, asked, size, &out[0, 0])
