# cython: language_level=3
"""How far rows are from queries, by the kinds of `pennon.index.kernels.vectors.vector_rows`."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from pennon.index.kernels.vectors cimport code_squares
from pennon.index.kernels.vectors cimport vector_sums

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    #endif
    #define SUM_ITSELF(SUM, M, N) SUM
    #define LESS_SUM(SUM, M, N) -SUM

    ALL_OF(all_squares_f32, squares_f32, float, float, float, SUM_ITSELF)
    ALL_OF(all_squares_f64, squares_f64, double, double, double, SUM_ITSELF)
    ALL_OF(all_products_f32, products_f32, float, float, float, LESS_SUM)
    ALL_OF(all_products_f64, products_f64, double, double, double, LESS_SUM)

    SUMS_OF(products_codes, uint8_t, float, float, 8, a * b)
    ALL_OF(all_products_codes, products_codes, uint8_t, float, float, LESS_SUM)

    enum { FLOATS = 4096 };

    /* Compilers make little of codes that become floats one at a time, so those of some rows do at once. */
    CLONES static void floats_of(const uint8_t *codes, int64_t count, float *out) {
        for (int64_t at = 0; at < count; at++) out[at] = codes[at];
    }
    INLINED float one_products_u8(const void *row, const void *query, int64_t width) {
        float some[FLOATS];
        if (width > FLOATS) return one_products_codes(row, query, width);
        floats_of((const uint8_t *)row, width, some);
        return one_products_f32(some, query, width);
    }
    static void all_products_u8(const void *all_rows, int64_t count, const void *asked, int64_t queries,
                                int64_t width, float *out, int64_t stride) {
        const uint8_t *rows = (const uint8_t *)all_rows;
        float some[FLOATS];
        int64_t most = FLOATS / width;
        if (!most) {
            all_products_codes(rows, count, asked, queries, width, NULL, NULL, out, stride);
            return;
        }
        for (int64_t at = 0; at < count; at += most) {
            int64_t size = count - at < most ? count - at : most;
            floats_of(rows + at * width, size * width, some);
            all_products_f32(some, size, asked, queries, width, NULL, NULL, out + at, stride);
        }
    }

    enum { MOST_SQUARES = 32768 }; /* so many go into 32 bits */

    INLINED float one_squares_u8(const void *row, const void *query, int64_t width) {
        int64_t sum = 0;
        for (int64_t at = 0; at < width; at += MOST_SQUARES) {
            int64_t count = width - at < MOST_SQUARES ? width - at : MOST_SQUARES;
            const uint8_t *x = (const uint8_t *)row + at, *a = (const uint8_t *)query + at;
            int some = 0;
            for (int64_t k = 0; k < count; k++) {
                short e = (short)(x[k] - a[k]);
                some += e * e;
            }
            sum += some;
        }
        return (float)sum;
    }

    CLONES static void squares_plain(const uint8_t *rows, int64_t count, const uint8_t *query, int64_t queries,
                                     int64_t width, float *out, int64_t stride) {
        for (int64_t j = 0; j < queries; j++)
            for (int64_t i = 0; i < count; i++)
                out[j * stride + i] = one_squares_u8(rows + i * width, query + j * width, width);
    }

    /* What a row adds to its squares, all but its products with a query: below. */
    INLINED int own_part(const uint8_t *row, int64_t width) {
        int sum = 0;
        for (int64_t k = 0; k < width; k++) sum += row[k] * (row[k] - 256);
        return sum;
    }

    enum { SHORTS = 4096, TOGETHER_U8 = 4 }; /* values of a query that are widened, and queries or rows together */

    #if defined(__x86_64__) && defined(__GNUC__)
    #define AVX2 __attribute__((target("avx2")))

    AVX2 static inline __m256i squared(__m256i sum, __m256i row, const short *query) {
        __m256i apart = _mm256_sub_epi16(row, _mm256_loadu_si256((const __m256i *)query));
        return _mm256_add_epi32(sum, _mm256_madd_epi16(apart, apart));
    }
    AVX2 static inline __m256i widened(const uint8_t *codes) {
        return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)codes));
    }
    AVX2 static inline __m128i four_sums(const __m256i *sums) {
        __m256i pairs = _mm256_hadd_epi32(
            _mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
        return _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    }
    /* The rest of a row and a query, what does not fill sixteen. */
    INLINED int rest_squared(const uint8_t *row, const short *query, int64_t width) {
        int sum = 0;
        for (int64_t k = width / 16 * 16; k < width; k++) sum += (row[k] - query[k]) * (row[k] - query[k]);
        return sum;
    }
    /* Four queries beside each row, or four rows beside one query. */
    AVX2 static void squares_v3(const uint8_t *rows, int64_t count, const uint8_t *query, int64_t queries,
                                int64_t width, float *out, int64_t stride) {
        short wide[TOGETHER_U8 * SHORTS];
        int four[TOGETHER_U8];
        int64_t i, j, k;
        int n;
        for (j = 0; j + TOGETHER_U8 <= queries; j += TOGETHER_U8) {
            for (k = 0; k < TOGETHER_U8 * width; k++) wide[k] = query[j * width + k];
            for (i = 0; i < count; i++) {
                const uint8_t *row = rows + i * width;
                __m256i sums[TOGETHER_U8] = {_mm256_setzero_si256()}; /* the others, too */
                for (k = 0; k + 16 <= width; k += 16) {
                    __m256i values = widened(row + k);
                    for (n = 0; n < TOGETHER_U8; n++) sums[n] = squared(sums[n], values, wide + n * width + k);
                }
                _mm_storeu_si128((__m128i *)four, four_sums(sums));
                for (n = 0; width % 16 && n < TOGETHER_U8; n++) four[n] += rest_squared(row, wide + n * width, width);
                for (n = 0; n < TOGETHER_U8; n++) out[(j + n) * stride + i] = (float)four[n];
            }
        }
        for (; j < queries; j++) {
            for (k = 0; k < width; k++) wide[k] = query[j * width + k];
            for (i = 0; i + TOGETHER_U8 <= count; i += TOGETHER_U8) {
                const uint8_t *row = rows + i * width;
                __m256i sums[TOGETHER_U8] = {_mm256_setzero_si256()}; /* the others, too */
                for (k = 0; k + 16 <= width; k += 16)
                    for (n = 0; n < TOGETHER_U8; n++)
                        sums[n] = squared(sums[n], widened(row + n * width + k), wide + k);
                _mm_storeu_si128((__m128i *)four, four_sums(sums));
                for (n = 0; width % 16 && n < TOGETHER_U8; n++) four[n] += rest_squared(row + n * width, wide, width);
                for (n = 0; n < TOGETHER_U8; n++) out[j * stride + i + n] = (float)four[n];
            }
            for (; i < count; i++) out[j * stride + i] = one_squares_u8(rows + i * width, query + j * width, width);
        }
    }

    /* A square is row * row - 2 row * query + query * query.  The processor multiplies bytes with signed ones, so 128 is
       taken off each value of a query: a row's own part is the sum of row * row - 256 row. */
    #define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni,avx2")))
    enum { ROWS_VNNI = 4, QUERIES_VNNI = 2 };

    VNNI INLINED __m256i some_codes(const uint8_t *codes, int64_t count) {
        return count >= 32 ? _mm256_loadu_si256((const __m256i *)codes)
                           : _mm256_maskz_loadu_epi8(((__mmask32)1 << count) - 1, codes);
    }
    /* Multiply some values of rows with those of queries; `own`: and sum what rows add by themselves. */
    VNNI INLINED void add_products(__m256i sums[][ROWS_VNNI], __m256i *own, const uint8_t *rows, const int count,
                                   int64_t width, const int8_t *query, const int queries, int64_t padded, int64_t some) {
        const __m256i sign = _mm256_set1_epi8((char)-128);
        __m256i asked[QUERIES_VNNI];
        for (int n = 0; n < queries; n++) asked[n] = _mm256_loadu_si256((const __m256i *)(query + n * padded));
        _Pragma("GCC unroll 4")
        for (int i = 0; i < count; i++) {
            __m256i codes = some_codes(rows + i * width, some);
            if (own) {
                own[i] = _mm256_dpbusd_epi32(own[i], codes, _mm256_xor_si256(codes, sign));
                own[i] = _mm256_dpbusd_epi32(own[i], codes, sign);
            }
            _Pragma("GCC unroll 2")
            for (int n = 0; n < queries; n++) sums[n][i] = _mm256_dpbusd_epi32(sums[n][i], codes, asked[n]);
        }
    }
    /* Squares of one row or four and some queries; `known`: room for four own parts, NULL: they are worked out with
       the products.  Queries are `padded` apart, 0 behind their values. */
    VNNI INLINED void some_squares(const uint8_t *rows, const int count, const uint8_t *known, const int8_t *query,
                                   const int *squares, const int queries, int64_t padded, int64_t width, float *out,
                                   int64_t stride) {
        __m256i sums[QUERIES_VNNI][ROWS_VNNI], own[ROWS_VNNI];
        for (int i = 0; i < ROWS_VNNI; i++) own[i] = _mm256_setzero_si256();
        for (int n = 0; n < QUERIES_VNNI; n++)
            for (int i = 0; i < ROWS_VNNI; i++) sums[n][i] = _mm256_setzero_si256();
        int64_t k = 0;
        for (; k + 32 <= width; k += 32)
            add_products(sums, known ? NULL : own, rows + k, count, width, query + k, queries, padded, 32);
        if (k < width)
            add_products(sums, known ? NULL : own, rows + k, count, width, query + k, queries, padded, width - k);
        _Pragma("GCC unroll 2")
        for (int n = 0; n < queries; n++) {
            __m128i its = _mm_set1_epi32(squares[n]), products;
            if (known) {
                int parts[ROWS_VNNI] = {0};
                memcpy(parts, known, count * sizeof(int));
                its = _mm_add_epi32(its, _mm_loadu_si128((const __m128i *)parts));
                products = _mm_slli_epi32(four_sums(sums[n]), 1);
                its = _mm_sub_epi32(its, products);
            } else {
                _Pragma("GCC unroll 4")
                for (int i = 0; i < ROWS_VNNI; i++)
                    sums[n][i] = _mm256_sub_epi32(own[i], _mm256_slli_epi32(sums[n][i], 1));
                its = _mm_add_epi32(its, four_sums(sums[n]));
            }
            if (count == ROWS_VNNI) _mm_storeu_ps(out + n * stride, _mm_cvtepi32_ps(its));
            else _mm_store_ss(out + n * stride, _mm_cvtepi32_ps(its));
        }
    }
    VNNI INLINED void squares_of_rows(const uint8_t *rows, const uint8_t *known, int64_t count, const int8_t *query,
                                      const int *squares, const int queries, int64_t padded, int64_t width, float *out,
                                      int64_t stride) {
        int64_t i = 0;
        for (; i + ROWS_VNNI <= count; i += ROWS_VNNI)
            some_squares(rows + i * width, ROWS_VNNI, known ? known + i * sizeof(int) : NULL, query, squares, queries,
                         padded, width, out + i, stride);
        for (; i < count; i++)
            some_squares(rows + i * width, 1, known ? known + i * sizeof(int) : NULL, query, squares, queries,
                         padded, width, out + i, stride);
    }
    /* `known`: the own parts of rows, NULL: they are worked out, for each two queries anew. */
    VNNI static void squares_vnni(const uint8_t *rows, const uint8_t *known, int64_t count, const uint8_t *query,
                                  int64_t queries, int64_t width, float *out, int64_t stride) {
        /* Aligned: gcc 12 makes aligned stores of the loop below, and -fstack-protector lays the array out otherwise. */
        int8_t signed_codes[QUERIES_VNNI * SHORTS] __attribute__((aligned(64)));
        int squares[QUERIES_VNNI];
        int64_t padded = (width + 31) / 32 * 32, j, k;
        for (j = 0; j < queries; j += QUERIES_VNNI) {
            int both = j + QUERIES_VNNI <= queries;
            memset(signed_codes, 0, QUERIES_VNNI * padded);
            for (int n = 0; n <= both; n++) {
                const uint8_t *asked = query + (j + n) * width;
                squares[n] = 0;
                for (k = 0; k < width; k++) {
                    signed_codes[n * padded + k] = (int8_t)(asked[k] - 128);
                    squares[n] += asked[k] * asked[k];
                }
            }
            if (both && known) squares_of_rows(rows, known, count, signed_codes, squares, 2, padded, width, out + j * stride, stride);
            else if (both) squares_of_rows(rows, NULL, count, signed_codes, squares, 2, padded, width, out + j * stride, stride);
            else if (known) squares_of_rows(rows, known, count, signed_codes, squares, 1, padded, width, out + j * stride, stride);
            else squares_of_rows(rows, NULL, count, signed_codes, squares, 1, padded, width, out + j * stride, stride);
        }
    }
    #endif

    /* Squares of codes; `own`: the own parts of rows, 4 bytes each, or NULL. */
    static void all_cut_apart(const uint8_t *rows, const uint8_t *own, int64_t count, const uint8_t *query,
                              int64_t queries, int64_t width, float *out, int64_t stride) {
        #if defined(__x86_64__) && defined(__GNUC__)
        if (are_rows_turned(queries, width)) {
            squares_turned(rows, count, query, queries, width, out, stride);
            return;
        }
        if (width <= SHORTS && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl")
            && __builtin_cpu_supports("avx512bw")) {
            squares_vnni(rows, own, count, query, queries, width, out, stride);
            return;
        }
        if (width <= SHORTS && __builtin_cpu_supports("avx2")) {
            squares_v3(rows, count, query, queries, width, out, stride);
            return;
        }
        #endif
        squares_plain(rows, count, query, queries, width, out, stride);
    }

    /* kinds of which queries have nothing in common: one row and one query at a time */
    #define EACH_OF(NAME, ONE, QUERY_BYTES)                                                    \
        CLONES static void all_##NAME(const void *all_rows, int64_t count, const void *asked,  \
                                      int64_t queries, int64_t width, float *out,              \
                                      int64_t stride) {                                        \
            const uint8_t *rows = (const uint8_t *)all_rows, *query = (const uint8_t *)asked;  \
            for (int64_t j = 0; j < queries; j++)                                              \
                for (int64_t i = 0; i < count; i++)                                            \
                    out[j * stride + i] = ONE(rows + i * width, query + j * QUERY_BYTES * width, width); \
        }

    INLINED float one_bits(const void *row, const void *query, int64_t width) {
        const uint8_t *x = (const uint8_t *)row, *q = (const uint8_t *)query;
        int64_t sum = 0, at = 0;
        for (; at + 8 <= width; at += 8) {
            uint64_t a, b;
            memcpy(&a, x + at, 8);
            memcpy(&b, q + at, 8);
            sum += __builtin_popcountll(a ^ b);
        }
        for (; at < width; at++) sum += __builtin_popcount(x[at] ^ q[at]);
        return (float)sum;
    }
    INLINED float one_looked_up(const void *codes, const void *query, int64_t width) {
        const uint8_t *row = (const uint8_t *)codes;
        const float *tables = (const float *)query;
        float sum = 0;
        for (int64_t at = 0; at < width; at++) sum += tables[at * 256 + row[at]];
        return sum;
    }
    EACH_OF(bits, one_bits, 1)
    EACH_OF(looked_up, one_looked_up, 1024)

    INLINED float apart(int kind, const uint8_t *row, const void *query, int64_t width) {
        switch (kind) {
        case 0: return one_squares_f32(row, query, width);
        case 1: return -one_products_f32(row, query, width);
        case 2: return (float)one_squares_f64(row, query, width);
        case 3: return (float)-one_products_f64(row, query, width);
        case 4: return one_squares_u8(row, query, width);
        case 5: return -one_products_u8(row, query, width);
        case 6: return one_bits(row, query, width);
        default: return one_looked_up(row, query, width);
        }
    }

    __attribute__((unused)) CLONES static float apart_of(int kind, const uint8_t *row, const void *query, int64_t width) {
        return apart(kind, row, query, width);
    }

    __attribute__((unused)) static void all_apart(int kind, const void *rows, int64_t count, const void *queries, int64_t asked,
                          int64_t width, float *out, int64_t stride) {
        switch (kind) {
        case 0: all_squares_f32(rows, count, queries, asked, width, NULL, NULL, out, stride); break;
        case 1: all_products_f32(rows, count, queries, asked, width, NULL, NULL, out, stride); break;
        case 2: all_squares_f64(rows, count, queries, asked, width, NULL, NULL, out, stride); break;
        case 3: all_products_f64(rows, count, queries, asked, width, NULL, NULL, out, stride); break;
        case 4: all_cut_apart((const uint8_t *)rows, NULL, count, (const uint8_t *)queries, asked, width, out, stride); break;
        case 5: all_products_u8(rows, count, queries, asked, width, out, stride); break;
        case 6: all_bits(rows, count, queries, asked, width, out, stride); break;
        default: all_looked_up(rows, count, queries, asked, width, out, stride);
        }
    }

    #define AHEAD 4  /* rows that are asked for before they are compared */
    #define LINE 64

    INLINED void ask_ahead(const uint8_t *row, int64_t row_bytes) {
        for (int64_t at = 0; at < row_bytes && at < 16 * LINE; at += LINE) __builtin_prefetch(row + at);
    }

    #define SOME(KIND)                                                                         \
        case KIND:                                                                             \
            for (int64_t at = 0; at < count; at++) {                                           \
                if (at + AHEAD < count) ask_ahead(rows + numbers[at + AHEAD] * row_bytes, row_bytes); \
                out[at] = apart(KIND, rows + numbers[at] * row_bytes, query, width);           \
            }                                                                                  \
            break;

    __attribute__((unused)) CLONES static void some_apart(
        int kind, const uint8_t *rows, int64_t row_bytes, const uint32_t *numbers, int64_t count,
        const void *query, int64_t width, float *out
    ) {
        for (int64_t at = 0; at < count && at < AHEAD; at++) ask_ahead(rows + numbers[at] * row_bytes, row_bytes);
        switch (kind) { SOME(0) SOME(1) SOME(2) SOME(3) SOME(4) SOME(5) SOME(6) default: SOME(7) }
    }
    """
    float apart_of(int kind, const uint8_t *row, const void *query, int64_t width) noexcept nogil
    void all_apart(
        int kind, const void *rows, int64_t count, const void *queries, int64_t asked, int64_t width,
        float *out, int64_t stride
    ) noexcept nogil
    void all_cut_apart(
        const uint8_t *rows, const uint8_t *own, int64_t count, const uint8_t *queries, int64_t asked, int64_t width,
        float *out, int64_t stride
    ) noexcept nogil
    void some_apart(
        int kind, const uint8_t *rows, int64_t row_bytes, const uint32_t *numbers, int64_t count,
        const void *query, int64_t width, float *out
    ) noexcept nogil
    void ask_ahead(const uint8_t *row, int64_t row_bytes) noexcept nogil
