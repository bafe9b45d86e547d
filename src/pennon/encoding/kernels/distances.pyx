"""Distances between vectors and queries.

Of one query the vectors are read once, as fast as memory gives them; of several, four queries and two vectors
are in registers at a time.  A product of matrices (BLAS) is hardly faster at that, takes longer for one query, and would have l2
worked out as |a|² - 2ab + |b|², of which little is left where vectors are near.
"""

from libc.stdint cimport int64_t, uint8_t

import numpy as np

ctypedef fused Real:
    float
    double

# Plain C, in vectors of 32 bytes: gcc and clang make of it what the processor has.  Where the system can choose
# a function as it loads a module (glibc on x86-64), each stands there twice.
cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) \\
        && !defined(__SANITIZE_ADDRESS__)
    #define VERSIONS __attribute__((target_clones("arch=x86-64-v3", "default")))
    #else
    #define VERSIONS
    #endif
    #define WITHIN static inline __attribute__((always_inline))

    enum { L2 = 0, COSINE = 1, DOT = 2 };
    enum { ROWS = 16, SIDE = 2, QUERIES = 4 };  /* rows in the nearest cache; rows and queries in registers */

    /* TILE sets sums[i * queries + j] of row i and query j; EACH all distances, by TILE and, of a last query, one by one */
    #define TILES(T, V, LANES, TILE, EACH)                                                          \\
    typedef T V __attribute__((vector_size(LANES * sizeof(T))));                                    \\
    typedef T half_##T __attribute__((vector_size(LANES / 2 * sizeof(T))));                         \\
    WITHIN T sum_##T(const V *v)                                                                    \\
    {                                                                                               \\
        half_##T low, high;                                                                         \\
        memcpy(&low, v, sizeof(low));                                                               \\
        memcpy(&high, (const char *)v + sizeof(low), sizeof(high));                                 \\
        low += high;                                                                                \\
        T sum = 0;                                                                                  \\
        for (int i = 0; i < LANES / 4; i++) sum += low[i] + low[i + LANES / 4];                     \\
        return sum;                                                                                 \\
    }                                                                                               \\
    WITHIN void TILE(const T *x, const T *q, int64_t size, const int rows, const int queries,       \\
                     const int is_l2, T *sums)                                                      \\
    {                                                                                               \\
        V total[8] = {{0}};                                                                         \\
        int64_t at = 0;                                                                             \\
        for (; at + LANES <= size; at += LANES) {                                                   \\
            _Pragma("GCC unroll 8")                                                                 \\
            for (int i = 0; i < rows; i++) {                                                        \\
                V a;                                                                                \\
                memcpy(&a, x + i * size + at, sizeof(a));                                           \\
                _Pragma("GCC unroll 8")                                                             \\
                for (int j = 0; j < queries; j++) {                                                 \\
                    V b;                                                                            \\
                    memcpy(&b, q + j * size + at, sizeof(b));                                       \\
                    if (is_l2) { b = a - b; total[i * queries + j] += b * b; }                      \\
                    else total[i * queries + j] += a * b;                                           \\
                }                                                                                   \\
            }                                                                                       \\
        }                                                                                           \\
        for (int i = 0; i < rows; i++)                                                              \\
            for (int j = 0; j < queries; j++) {                                                     \\
                T s = sum_##T(&total[i * queries + j]);                                             \\
                for (int64_t k = at; k < size; k++) {                                               \\
                    T a = x[i * size + k], b = q[j * size + k];                                     \\
                    s += is_l2 ? (a - b) * (a - b) : a * b;                                         \\
                }                                                                                   \\
                sums[i * queries + j] = s;                                                          \\
            }                                                                                       \\
    }                                                                                               \\
    WITHIN T EACH##_one(const T *x, const T *q, int64_t size, const int is_l2)                      \\
    {                                                                                               \\
        V total[4] = {{0}};                                                                         \\
        int64_t at = 0;                                                                             \\
        for (; at + 4 * LANES <= size; at += 4 * LANES) {                                           \\
            _Pragma("GCC unroll 4")                                                                 \\
            for (int i = 0; i < 4; i++) {                                                           \\
                V a, b;                                                                             \\
                memcpy(&a, x + at + i * LANES, sizeof(a));                                          \\
                memcpy(&b, q + at + i * LANES, sizeof(b));                                          \\
                if (is_l2) { b = a - b; total[i] += b * b; }                                        \\
                else total[i] += a * b;                                                             \\
            }                                                                                       \\
        }                                                                                           \\
        for (; at + LANES <= size; at += LANES) {                                                   \\
            V a, b;                                                                                 \\
            memcpy(&a, x + at, sizeof(a));                                                          \\
            memcpy(&b, q + at, sizeof(b));                                                          \\
            if (is_l2) { b = a - b; total[0] += b * b; }                                            \\
            else total[0] += a * b;                                                                 \\
        }                                                                                           \\
        total[0] += total[1] + (total[2] + total[3]);                                               \\
        T sum = sum_##T(&total[0]);                                                                 \\
        for (; at < size; at++) {                                                                   \\
            T a = x[at], b = q[at];                                                                 \\
            sum += is_l2 ? (a - b) * (a - b) : a * b;                                               \\
        }                                                                                           \\
        return sum;                                                                                 \\
    }                                                                                               \\
    WITHIN float EACH##_finish(T sum, int metric, T row, T query)                                   \\
    {                                                                                               \\
        if (metric == L2) return (float)sum;                                                        \\
        if (metric == DOT) return (float)(1 - sum);                                                 \\
        return (float)(1 - sum / (row * query));                                                    \\
    }                                                                                               \\
    WITHIN void EACH##_of(const T *x, int64_t count, const T *q, int64_t queries, int64_t size,     \\
                          const int metric, const T *norms, float *out)                             \\
    {                                                                                               \\
        T sums[8], lengths[ROWS] = {0};                                                             \\
        for (int64_t first = 0; first < count; first += ROWS) {                                     \\
            int64_t rows = count - first < ROWS ? count - first : ROWS;                             \\
            const T *mine = x + first * size;                                                       \\
            if (metric == COSINE)                                                                   \\
                for (int64_t i = 0; i < rows; i++)                                                  \\
                    lengths[i] = ROOT(EACH##_one(mine + i * size, mine + i * size, size, 0));       \\
            int64_t j = 0;                                                                          \\
            for (; j + QUERIES <= queries; j += QUERIES) {                                          \\
                int64_t i = 0;                                                                      \\
                for (; i + SIDE <= rows; i += SIDE) {                                               \\
                    TILE(mine + i * size, q + j * size, size, SIDE, QUERIES, metric == L2, sums);   \\
                    for (int s = 0; s < SIDE; s++)                                                  \\
                        for (int t = 0; t < QUERIES; t++)                                           \\
                            out[(j + t) * count + first + i + s] = EACH##_finish(                   \\
                                sums[s * QUERIES + t], metric, lengths[i + s], norms[j + t]);       \\
                }                                                                                   \\
                for (; i < rows; i++) {                                                             \\
                    TILE(mine + i * size, q + j * size, size, 1, QUERIES, metric == L2, sums);      \\
                    for (int t = 0; t < QUERIES; t++)                                               \\
                        out[(j + t) * count + first + i] =                                          \\
                            EACH##_finish(sums[t], metric, lengths[i], norms[j + t]);               \\
                }                                                                                   \\
            }                                                                                       \\
            for (; j < queries; j++)                                                                \\
                for (int64_t i = 0; i < rows; i++) {                                                \\
                    T sum = EACH##_one(mine + i * size, q + j * size, size, metric == L2);          \\
                    out[j * count + first + i] = EACH##_finish(sum, metric, lengths[i], norms[j]);  \\
                }                                                                                   \\
        }                                                                                           \\
    }                                                                                               \\
    VERSIONS static void EACH(const T *x, int64_t count, const T *q, int64_t queries, int64_t size, \\
                              int metric, const T *norms, float *out)                               \\
    {                                                                                               \\
        if (metric == L2) EACH##_of(x, count, q, queries, size, L2, norms, out);                    \\
        else if (metric == DOT) EACH##_of(x, count, q, queries, size, DOT, norms, out);             \\
        else EACH##_of(x, count, q, queries, size, COSINE, norms, out);                             \\
    }

    #define ROOT __builtin_sqrtf
    TILES(float, floats8, 8, tile_f, each_f)
    #undef ROOT
    #define ROOT __builtin_sqrt
    TILES(double, doubles4, 4, tile_d, each_d)
    #undef ROOT

    VERSIONS static void bits_of(const uint8_t *x, int64_t count, const uint8_t *q, int64_t queries,
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
    void each_f(const float *x, int64_t count, const float *q, int64_t queries, int64_t size,
                int metric, const float *norms, float *out) noexcept nogil
    void each_d(const double *x, int64_t count, const double *q, int64_t queries, int64_t size,
                int metric, const double *norms, float *out) noexcept nogil
    void bits_of(const uint8_t *x, int64_t count, const uint8_t *q, int64_t queries, int64_t size,
                 float *out) noexcept nogil


def vector_distances(
    const Real[:, ::1] vectors, const Real[:, ::1] queries, int metric, const Real[::1] norms,
    float[:, ::1] out,
):
    """See distances.pyi."""
    cdef int64_t count = vectors.shape[0], size = vectors.shape[1], asked = queries.shape[0]
    if queries.shape[1] != size:
        raise ValueError("vectors and queries are not of one length")
    if norms.shape[0] != asked or out.shape[0] != asked or out.shape[1] != count:
        raise ValueError("there is no room for each distance, or no norm for each query")
    if not 0 <= metric <= 2:
        raise ValueError("there is no such metric")
    if count == 0 or asked == 0:
        return
    cdef const Real *none = &norms[0]
    cdef const Real *x = &vectors[0, 0] if size else none
    cdef const Real *q = &queries[0, 0] if size else none
    with nogil:
        if Real is float:
            each_f(x, count, q, asked, size, metric, &norms[0], &out[0, 0])
        else:
            each_d(x, count, q, asked, size, metric, &norms[0], &out[0, 0])


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
