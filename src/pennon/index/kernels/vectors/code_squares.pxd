# cython: language_level=3
"""Squared distances of codes of bytes from several queries: 16 rows at a time, four values of each in a register.

Rows are turned so that what a register has of them is multiplied with four values of a query, and added up, by one
instruction (AVX-512 VNNI): no sum is taken across a register.  This pays where a few queries are compared with the same rows.
A square is row * row - 2 row * query + query * query.  The processor multiplies bytes with signed ones, so 128 is taken off
each value of a query: a row's own part is the sum of row * row - 256 row.
"""

from libc.stdint cimport int64_t, uint8_t

from pennon.index.kernels.vectors cimport vector_sums

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    #define TURNED __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2")))
    enum { ROWS_TURNED = 16, MOST_TURNED = 1024, QUERIES_TURNED = 16, LEAST_TURNED = 3 }; /* values of a row; queries */

    static int may_turn(int64_t width) {
        return width <= MOST_TURNED && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw")
               && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    }
    static int are_rows_turned(int64_t queries, int64_t width) { return queries >= LEAST_TURNED && may_turn(width); }
    /* Compilers copy sums before they add to them, and back: that takes longer than to add. */
    TURNED INLINED void add_products_of(__m512i *sum, __m512i codes, __m512i values) {
        __asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(codes), "v"(values));
    }
    TURNED INLINED void add_products_of_four(__m512i *sum, __m512i codes, const int8_t *values) {
        __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(*sum) : "v"(codes), "m"(*(const int8_t(*)[4])values));
    }
    /* Turn 64 values of 16 rows: register n gets values 4 n to 4 n + 3 of each. */
    TURNED INLINED void turn_rows(const uint8_t *rows, const int64_t count, int64_t width, const int64_t left, __m512i *out) {
        const __mmask64 some = left >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << left) - 1;
        __m512i a[16], b[16];
        _Pragma("GCC unroll 16")
        for (int n = 0; n < 16; n++) a[n] = _mm512_maskz_loadu_epi8(n < count ? some : 0, n < count ? rows + n * width : rows);
        _Pragma("GCC unroll 8")
        for (int n = 0; n < 16; n += 2) {
            b[n] = _mm512_unpacklo_epi32(a[n], a[n + 1]);
            b[n + 1] = _mm512_unpackhi_epi32(a[n], a[n + 1]);
        }
        _Pragma("GCC unroll 4")
        for (int n = 0; n < 16; n += 4) {
            a[n] = _mm512_unpacklo_epi64(b[n], b[n + 2]);
            a[n + 1] = _mm512_unpackhi_epi64(b[n], b[n + 2]);
            a[n + 2] = _mm512_unpacklo_epi64(b[n + 1], b[n + 3]);
            a[n + 3] = _mm512_unpackhi_epi64(b[n + 1], b[n + 3]);
        }
        _Pragma("GCC unroll 4")
        for (int n = 0; n < 4; n++) {
            __m512i x = _mm512_shuffle_i32x4(a[n], a[n + 4], 0x88), y = _mm512_shuffle_i32x4(a[n], a[n + 4], 0xdd);
            __m512i v = _mm512_shuffle_i32x4(a[n + 8], a[n + 12], 0x88), w = _mm512_shuffle_i32x4(a[n + 8], a[n + 12], 0xdd);
            out[n] = _mm512_shuffle_i32x4(x, v, 0x88);
            out[n + 8] = _mm512_shuffle_i32x4(x, v, 0xdd);
            out[n + 4] = _mm512_shuffle_i32x4(y, w, 0x88);
            out[n + 12] = _mm512_shuffle_i32x4(y, w, 0xdd);
        }
    }
    /* Squares of 16 rows, `words` registers, and some queries, which are `padded` apart. */
    TURNED INLINED void turned_squares(
        const __m512i *turned, int64_t words, const int *own, const int8_t *query, const int *squares, const int queries,
        int64_t padded, __mmask16 some, float *out, int64_t stride
    ) {
        __m512i sums[4], its = _mm512_maskz_loadu_epi32(some, own);
        _Pragma("GCC unroll 4")
        for (int n = 0; n < queries; n++) sums[n] = _mm512_setzero_si512();
        for (int64_t word = 0; word < words; word++) {
            __m512i codes = _mm512_loadu_si512(turned + word);
            _Pragma("GCC unroll 4")
            for (int n = 0; n < queries; n++) add_products_of_four(sums + n, codes, query + n * padded + 4 * word);
        }
        _Pragma("GCC unroll 4")
        for (int n = 0; n < queries; n++) {
            __m512i found = _mm512_sub_epi32(
                _mm512_add_epi32(its, _mm512_set1_epi32(squares[n])), _mm512_slli_epi32(sums[n], 1));
            _mm512_mask_storeu_ps(out + n * stride, some, _mm512_cvtepi32_ps(found));
        }
    }
    /* The same of all 16 rows and one query or two: several sums, which do not wait for each other.  Memory is read from
       its start to its end: where this turned to several rows at once, it was waited for. */
    TURNED INLINED void squares_of_few(
        const __m512i *turned, int64_t words, const int *own, const int8_t *query, const int *squares, const int queries,
        int64_t padded, float *out, int64_t stride
    ) {
        const __m512i its = _mm512_loadu_si512(own);
        __m512i sums[8];
        int64_t word = 0;
        _Pragma("GCC unroll 8")
        for (int n = 0; n < 4 * queries; n++) sums[n] = _mm512_setzero_si512();
        for (; word + 4 <= words; word += 4)
            _Pragma("GCC unroll 4")
            for (int part = 0; part < 4; part++) {
                __builtin_prefetch(turned + word + part + 2 * words);
                __m512i codes = _mm512_loadu_si512(turned + word + part);
                _Pragma("GCC unroll 2")
                for (int n = 0; n < queries; n++)
                    add_products_of_four(sums + 4 * n + part, codes, query + n * padded + 4 * (word + part));
            }
        for (; word < words; word++)
            _Pragma("GCC unroll 2")
            for (int n = 0; n < queries; n++)
                add_products_of_four(sums + 4 * n, _mm512_loadu_si512(turned + word), query + n * padded + 4 * word);
        _Pragma("GCC unroll 2")
        for (int n = 0; n < queries; n++) {
            __m512i sum = _mm512_add_epi32(
                _mm512_add_epi32(sums[4 * n], sums[4 * n + 1]), _mm512_add_epi32(sums[4 * n + 2], sums[4 * n + 3]));
            __m512i found = _mm512_sub_epi32(
                _mm512_add_epi32(its, _mm512_set1_epi32(squares[n])), _mm512_slli_epi32(sum, 1));
            _mm512_storeu_ps(out + n * stride, _mm512_cvtepi32_ps(found));
        }
    }
    /* Queries of bytes as they are multiplied, 0 behind their values, and the sums of their squares. */
    TURNED static void signed_queries(const uint8_t *query, int64_t queries, int64_t width, int8_t *asked, int *squares) {
        const int64_t padded = (width + 63) / 64 * 64;
        for (int64_t n = 0; n < queries; n++, asked += padded) {
            int sum = 0;
            for (int64_t k = 0; k < width; k++) {
                asked[k] = (int8_t)(query[n * width + k] - 128);
                sum += query[n * width + k] * query[n * width + k];
            }
            memset(asked + width, 0, padded - width);
            squares[n] = sum;
        }
    }
    /* Squares of up to 16 rows and all of some queries. */
    TURNED INLINED void squares_of_block(
        const __m512i *turned, int64_t words, const int *own, int64_t size, const int8_t *asked, const int *squares,
        int64_t queries, int64_t padded, float *out, int64_t stride
    ) {
        const __mmask16 some = (__mmask16)((1 << size) - 1);
        int64_t n = 0;
        for (; n + 4 <= queries; n += 4)
            turned_squares(turned, words, own, asked + n * padded, squares + n, 4, padded, some, out + n * stride, stride);
        if (n + 2 <= queries) {
            turned_squares(turned, words, own, asked + n * padded, squares + n, 2, padded, some, out + n * stride, stride);
            n += 2;
        }
        if (n < queries)
            turned_squares(turned, words, own, asked + n * padded, squares + n, 1, padded, some, out + n * stride, stride);
    }
    TURNED static void turn_block(const uint8_t *rows, int64_t size, int64_t width, __m512i *turned) {
        for (int64_t k = 0; k < width; k += 64)
            if (size == ROWS_TURNED && width - k >= 64) turn_rows(rows + k, ROWS_TURNED, width, 64, turned + k / 4);
            else turn_rows(rows + k, size, width, width - k, turned + k / 4);
    }
    TURNED static void squares_turned(
        const uint8_t *rows, int64_t count, const uint8_t *all_queries, int64_t all, int64_t width, float *all_out,
        int64_t stride
    ) {
        const __m512i sign = _mm512_set1_epi8((char)-128);
        const int64_t padded = (width + 63) / 64 * 64, words = (width + 3) / 4;
        int8_t asked[QUERIES_TURNED * MOST_TURNED] __attribute__((aligned(64)));
        int squares[QUERIES_TURNED], owns[ROWS_TURNED];
        __m512i turned[MOST_TURNED / 4];
        for (int64_t first = 0; first < all; first += QUERIES_TURNED) {
            const int64_t queries = all - first < QUERIES_TURNED ? all - first : QUERIES_TURNED;
            signed_queries(all_queries + first * width, queries, width, asked, squares);
            for (int64_t at = 0; at < count; at += ROWS_TURNED) {
                const int64_t size = count - at < ROWS_TURNED ? count - at : ROWS_TURNED;
                __m512i own = _mm512_setzero_si512(), other = own;
                turn_block(rows + at * width, size, width, turned);
                for (int64_t word = 0; word < words; word++) {
                    add_products_of(&own, turned[word], _mm512_xor_si512(turned[word], sign));
                    add_products_of(&other, turned[word], sign);
                }
                _mm512_storeu_si512(owns, _mm512_add_epi32(own, other));
                squares_of_block(turned, words, owns, size, asked, squares, queries, padded, all_out + first * stride + at, stride);
            }
        }
    }
    /* Squares of rows that were turned before, `own`: their own parts, and up to 16 queries. */
    TURNED static void squares_of_turned(
        const uint8_t *rows, const uint8_t *own_parts, int64_t count, const uint8_t *query, int64_t queries, int64_t width,
        float *out, int64_t stride
    ) {
        const int64_t padded = (width + 63) / 64 * 64, words = (width + 3) / 4;
        const __m512i *turned = (const __m512i *)rows;
        const int *own = (const int *)own_parts;
        int8_t asked[QUERIES_TURNED * MOST_TURNED] __attribute__((aligned(64)));
        int squares[QUERIES_TURNED];
        int64_t at = 0;
        signed_queries(query, queries, width, asked, squares);
        for (; queries < 3 && at + ROWS_TURNED <= count; at += ROWS_TURNED)
            if (queries == 1) squares_of_few(turned + at / ROWS_TURNED * words, words, own + at, asked, squares, 1, padded, out + at, stride);
            else squares_of_few(turned + at / ROWS_TURNED * words, words, own + at, asked, squares, 2, padded, out + at, stride);
        for (; at < count; at += ROWS_TURNED)
            squares_of_block(turned + at / ROWS_TURNED * words, words, own + at,
                             count - at < ROWS_TURNED ? count - at : ROWS_TURNED, asked, squares, queries, padded,
                             out + at, stride);
    }
    /* Turn up to 16 rows for good. */
    TURNED static void keep_turned(const uint8_t *rows, int64_t size, int64_t width, uint8_t *out) {
        __m512i turned[MOST_TURNED / 4];
        turn_block(rows, size, width, turned);
        memcpy(out, turned, (width + 3) / 4 * sizeof(__m512i));
    }
    #else
    enum { ROWS_TURNED = 16, MOST_TURNED = 1024 };
    static int may_turn(int64_t width) { return 0; }
    static void squares_of_turned(
        const uint8_t *rows, const uint8_t *own_parts, int64_t count, const uint8_t *query, int64_t queries, int64_t width,
        float *out, int64_t stride
    ) {}
    static void keep_turned(const uint8_t *rows, int64_t size, int64_t width, uint8_t *out) {}
    #endif
    """
    enum:
        ROWS_TURNED
    bint may_turn(int64_t width) noexcept nogil
    void squares_of_turned(
        const uint8_t *rows, const uint8_t *own_parts, int64_t count, const uint8_t *query, int64_t queries,
        int64_t width, float *out, int64_t stride
    ) noexcept nogil
