# cython: language_level=3
"""Sums over the values of rows and queries, in plain C that gcc and clang make the processor's vectors of.

Where the system can choose a function as it loads a module (glibc on x86-64), each stands there twice.  A product of
matrices (BLAS) is hardly faster for many queries, takes longer for one, and would have l2 worked out as
|a|² - 2ab + |b|², of which little is left where vectors are near.
"""

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) \
        && __GNUC__ >= 12 && !defined(__SANITIZE_ADDRESS__)
    #define CLONES __attribute__((target_clones("default", "arch=x86-64-v3")))
    #else
    #define CLONES
    #endif
    #define INLINED static inline __attribute__((always_inline))

    enum { PAIRS = 4 }; /* of a row and a query: their sums are in registers */

    /* NAME sums a TERM of values a and b over rows and queries, 1 or 2 of each: row i and query j to
       sums[i * queries + j].  A pair's sum has the same terms in the same order whatever is with it. */
    #define SUMS_OF(NAME, VALUE, QUERY, SUM, LANES, TERM)                                        \
        typedef VALUE values_##NAME __attribute__((vector_size(LANES * sizeof(VALUE))));         \
        typedef QUERY queries_##NAME __attribute__((vector_size(LANES * sizeof(QUERY))));        \
        typedef SUM sums_##NAME __attribute__((vector_size(LANES * sizeof(SUM))));               \
        typedef SUM half_##NAME __attribute__((vector_size(LANES / 2 * sizeof(SUM))));           \
        INLINED void NAME(const VALUE *row, const int rows, const QUERY *query, const int queries,\
                          int64_t width, SUM *sums) {                                            \
            sums_##NAME total[2 * PAIRS] = {{0}};                                                \
            int64_t at = 0;                                                                      \
            for (; at + 2 * LANES <= width; at += 2 * LANES)                                     \
                _Pragma("GCC unroll 2")                                                          \
                for (int i = 0; i < rows; i++) {                                                 \
                    _Pragma("GCC unroll 2")                                                      \
                    for (int part = 0; part < 2; part++) {                                       \
                        values_##NAME value;                                                     \
                        memcpy(&value, row + i * width + at + part * LANES, sizeof(value));      \
                        sums_##NAME a = __builtin_convertvector(value, sums_##NAME);             \
                        _Pragma("GCC unroll 2")                                                  \
                        for (int j = 0; j < queries; j++) {                                      \
                            queries_##NAME asked;                                                \
                            memcpy(&asked, query + j * width + at + part * LANES, sizeof(asked));\
                            sums_##NAME b = __builtin_convertvector(asked, sums_##NAME);         \
                            total[2 * (i * queries + j) + part] += TERM;                         \
                        }                                                                        \
                    }                                                                            \
                }                                                                                \
            _Pragma("GCC unroll 2")                                                              \
            for (int i = 0; i < rows; i++)                                                       \
                _Pragma("GCC unroll 2")                                                          \
                for (int j = 0; j < queries; j++) {                                              \
                    sums_##NAME lanes = total[2 * (i * queries + j)];                            \
                    lanes += total[2 * (i * queries + j) + 1];                                   \
                    half_##NAME low, high;                                                       \
                    memcpy(&low, &lanes, sizeof(low));                                           \
                    memcpy(&high, (char *)&lanes + sizeof(low), sizeof(high));                   \
                    low += high;                                                                 \
                    SUM sum = 0;                                                                 \
                    _Pragma("GCC unroll 2")                                                      \
                    for (int lane = 0; lane < LANES / 4; lane++)                                 \
                        sum += low[lane] + low[lane + LANES / 4];                                \
                    for (int64_t k = at; k < width; k++) {                                       \
                        SUM a = row[i * width + k], b = query[j * width + k];                    \
                        sum += TERM;                                                             \
                    }                                                                            \
                    sums[i * queries + j] = sum;                                                 \
                }                                                                                \
        }                                                                                        \
        INLINED SUM one_##NAME(const void *row, const void *query, int64_t width) {              \
            SUM sum;                                                                             \
            NAME((const VALUE *)row, 1, (const QUERY *)query, 1, width, &sum);                   \
            return sum;                                                                          \
        }

    /* ALL puts FINISH(sum, m, n) of row m and query n to out[n * stride + m]; it may use of_rows[m] and of_queries[n]. */
    #define ALL_OF(ALL, NAME, VALUE, QUERY, SUM, FINISH)                                         \
        CLONES static void ALL(const void *all_rows, int64_t count, const void *asked, int64_t queries,\
                               int64_t width, const SUM *of_rows, const SUM *of_queries, float *out,\
                               int64_t stride) {                                                 \
            const VALUE *rows = (const VALUE *)all_rows;                                         \
            const QUERY *query = (const QUERY *)asked;                                           \
            SUM sums[PAIRS];                                                                     \
            int64_t n = 0, m;                                                                    \
            for (; n + 2 <= queries; n += 2, query += 2 * width) {                               \
                float *first = out + n * stride, *second = first + stride;                       \
                for (m = 0; m + 2 <= count; m += 2) {                                            \
                    NAME(rows + m * width, 2, query, 2, width, sums);                            \
                    first[m] = (float)FINISH(sums[0], m, n);                                     \
                    second[m] = (float)FINISH(sums[1], m, n + 1);                                \
                    first[m + 1] = (float)FINISH(sums[2], m + 1, n);                             \
                    second[m + 1] = (float)FINISH(sums[3], m + 1, n + 1);                        \
                }                                                                                \
                for (; m < count; m++) {                                                         \
                    NAME(rows + m * width, 1, query, 2, width, sums);                            \
                    first[m] = (float)FINISH(sums[0], m, n);                                     \
                    second[m] = (float)FINISH(sums[1], m, n + 1);                                \
                }                                                                                \
            }                                                                                    \
            if (n == queries) return;                                                            \
            for (m = 0; m < count; m++) {                                                        \
                NAME(rows + m * width, 1, query, 1, width, sums);                                \
                out[n * stride + m] = (float)FINISH(sums[0], m, n);                              \
            }                                                                                    \
        }

    SUMS_OF(squares_f32, float, float, float, 8, (a - b) * (a - b))
    SUMS_OF(squares_f64, double, double, double, 4, (a - b) * (a - b))
    SUMS_OF(products_f32, float, float, float, 8, a * b)
    SUMS_OF(products_f64, double, double, double, 4, a * b)
    """
