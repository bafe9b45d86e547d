# cython: language_level=3
"""How near rows may be by the signs of their codes of RQ, and how far they are, by the widest registers: see `pennon.index.kernels.vectors.rabit_codes`.

Processors that look bytes up in tables of 64 and add up four neighbours (AVX-512 VBMI and VNNI) do so for four bytes of
the signs of 16 rows at once: their halves are looked up in four tables of 16.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from pennon.index.kernels.vectors.rabit_codes cimport EncodedQuery, Codes, Summing

cdef extern from *:
    """
    enum { WORD = 4, LAID = 128 }; /* bytes of signs that are looked up together, and how long their tables are */

    static int64_t laid_bytes(int64_t width) { return (width + WORD - 1) / WORD * LAID; }

    /* The signs of a group of rows, row by row; `group`: where they lie as they are stored. */
    typedef struct {
        const uint8_t *group;
        uint8_t *signs;
    } RowSigns;

    /* Lay tables out by four bytes of signs: those of the lower halves of the four, then those of the upper ones. */
    static void lay_tables(const uint8_t *tables, int64_t width, uint8_t *laid) {
        memset(laid, 0, laid_bytes(width));
        for (int64_t at = 0; at < width; at++)
            for (int half = 0; half < 2; half++)
                memcpy(laid + at / WORD * LAID + half * 64 + at % WORD * 16, tables + at * 32 + half * 16, 16);
    }

    CLONES static int64_t near_plain(const float *lowest, int64_t count, float bound, int others, uint32_t *found) {
        int64_t size = 0;
        for (int64_t at = 0; at < count; at++) {
            found[size] = (uint32_t)at;
            size += (lowest[at] <= bound) != others;
        }
        return size;
    }

    #if defined(__x86_64__) && defined(__GNUC__)
    #define WIDEST __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni,fma")))

    static int are_signs_words(void) {
        return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni")
               && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
               && __builtin_cpu_supports("avx512vl");
    }
    WIDEST static inline __m512i add_halves(__m512i sums, __m512i codes, const uint8_t *tables) {
        const __m512i low = _mm512_set1_epi8(15), apart = _mm512_set1_epi32(0x30201000);
        __m512i places = _mm512_ternarylogic_epi32(codes, low, apart, 0xea); /* (codes & low) | apart */
        __m512i said = _mm512_permutexvar_epi8(places, _mm512_loadu_si512(tables));
        /* compilers copy sums before they add to them */
        __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(said), "v"(_mm512_set1_epi8(1)));
        return sums;
    }
    WIDEST static inline __m512i some_bytes(const uint8_t *bytes, int64_t count) {
        if (count >= 64) return _mm512_loadu_si512(bytes);
        return _mm512_maskz_loadu_epi8(count > 0 ? ((__mmask64)1 << count) - 1 : 0, bytes);
    }
    /* Add up what tables say of whole groups: row n and row n + 16 have halves of the same bytes. */
    WIDEST static inline void add_words(
        __m512i a, __m512i b, const uint8_t *laid, __m512i first, __m512i second, __m512i *one, __m512i *other
    ) {
        __m512i x = _mm512_permutex2var_epi8(a, first, b), y = _mm512_permutex2var_epi8(a, second, b);
        *one = add_halves(add_halves(*one, x, laid), y, laid + 64);
        *other = add_halves(
            add_halves(*other, _mm512_srli_epi16(x, 4), laid), _mm512_srli_epi16(y, 4), laid + 64);
    }
    /* The same of the last rows, which fill no group, and lie byte by byte. */
    WIDEST static inline void add_last_words(
        __m512i a, __m512i b, const uint8_t *laid, __m512i first, __m512i second, __m512i *one, __m512i *other
    ) {
        __m512i x = _mm512_permutex2var_epi8(a, first, b), y = _mm512_permutex2var_epi8(a, second, b);
        *one = add_halves(add_halves(*one, x, laid), _mm512_srli_epi16(x, 4), laid + 64);
        *other = add_halves(add_halves(*other, y, laid), _mm512_srli_epi16(y, 4), laid + 64);
    }
    typedef struct {
        __m512 least, step, share, begin, away, blur, spread;
    } wide_asked;

    /* Between what a row's distance is, as far as signs say: `bounds` of 16 rows. */
    WIDEST static inline void half_bounds(
        const Codes *codes, int64_t start, __mmask16 some, const wide_asked *asked, __m512i sums, float *lowest, float *highest
    ) {
        const float *add = codes->factors + start, *scale = add + codes->rows, *error = add + 4 * codes->rows;
        __m512 by = _mm512_maskz_loadu_ps(some, scale), rough, addend, slack, middle;
        addend = _mm512_mul_ps(asked->share, _mm512_maskz_loadu_ps(some, add));
        rough = _mm512_fmadd_ps(asked->step, _mm512_cvtepi32_ps(sums), asked->least);
        middle = _mm512_add_ps(_mm512_fmadd_ps(rough, by, addend), asked->begin);
        slack = _mm512_fmadd_ps(_mm512_set1_ps(2e-6f), _mm512_abs_ps(addend), asked->away);
        slack = _mm512_fmadd_ps(asked->blur, _mm512_abs_ps(by), slack);
        if (codes->has_errors) slack = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(some, error), asked->spread, slack);
        _mm512_mask_storeu_ps(lowest, some, _mm512_sub_ps(middle, slack));
        if (highest) _mm512_mask_storeu_ps(highest, some, _mm512_add_ps(middle, slack));
    }
    WIDEST static void bounds_by_words(
        const Codes *codes, int64_t start, int64_t count, const EncodedQuery *asked, float *lowest, float *highest
    ) {
        /* where four bytes of each of 16 rows begin, among those of a group */
        const __m512i places = _mm512_mullo_epi32(
            _mm512_set_epi32(15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4, 2, 0), _mm512_set1_epi32(0x01010101));
        const __m512i rows = _mm512_mullo_epi32(
            _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi32(0x01010101));
        const int64_t width = codes->width, words = width / WORD, rest = width % WORD;
        __m512i first = _mm512_add_epi8(places, _mm512_set1_epi32(0x60402000));
        __m512i second = _mm512_add_epi8(first, _mm512_set1_epi8(16));
        const wide_asked wide = {
            _mm512_set1_ps(asked->range[0]), _mm512_set1_ps(asked->range[1]), _mm512_set1_ps(asked->apart[0]),
            _mm512_set1_ps(asked->apart[1]), _mm512_set1_ps(2e-6f * fabsf(asked->apart[1])),
            _mm512_set1_ps(blur_of(codes, asked)), _mm512_set1_ps(asked->apart[2]),
        };
        const uint8_t *group = codes->signs + start * width;
        int64_t at = 0, size = count % GROUP, word;
        for (; at + GROUP <= count; at += GROUP) {
            __m512i one = _mm512_setzero_si512(), other = one;
            for (word = 0; word < words; word++, group += WORD * GROUP)
                add_words(_mm512_loadu_si512(group), _mm512_loadu_si512(group + 64), asked->laid + word * LAID,
                          first, second, &one, &other);
            if (rest)
                add_words(some_bytes(group, rest * GROUP), some_bytes(group + 64, rest * GROUP - 64),
                          asked->laid + words * LAID, first, second, &one, &other);
            group += rest * GROUP;
            half_bounds(codes, start + at, 0xffff, &wide, one, lowest + at, highest ? highest + at : NULL);
            half_bounds(codes, start + at + 16, 0xffff, &wide, other, lowest + at + 16,
                        highest ? highest + at + 16 : NULL);
        }
        if (!size) return;
        __m512i one = _mm512_setzero_si512(), other = one;
        first = _mm512_add_epi8(rows, _mm512_set1_epi32((int)(size << 8 | size << 17 | (3 * size) << 24)));
        second = _mm512_add_epi8(first, _mm512_set1_epi8(16));
        for (word = 0; WORD * word < width; word++, group += WORD * size) {
            int64_t bytes = (word < words ? WORD : rest) * size;
            add_last_words(some_bytes(group, bytes), some_bytes(group + 64, bytes - 64), asked->laid + word * LAID,
                           first, second, &one, &other);
        }
        half_bounds(codes, start + at, (__mmask16)(size < 16 ? (1 << size) - 1 : 0xffff), &wide, one, lowest + at,
                    highest ? highest + at : NULL);
        if (size > 16)
            half_bounds(codes, start + at + 16, (__mmask16)((1 << (size - 16)) - 1), &wide, other, lowest + at + 16,
                        highest ? highest + at + 16 : NULL);
    }
    /* Halves of the signs of 16 rows, eight bytes of each row: `some` has one byte of all rows in each register. */
    WIDEST static inline void turn_eight(const __m128i *some, int64_t width, uint8_t *out) {
        __m128i a[8], b[8];
        _Pragma("GCC unroll 4")
        for (int n = 0; n < 4; n++) {
            a[n] = _mm_unpacklo_epi8(some[2 * n], some[2 * n + 1]);
            a[n + 4] = _mm_unpackhi_epi8(some[2 * n], some[2 * n + 1]);
        }
        _Pragma("GCC unroll 4")
        for (int n = 0; n < 4; n++) { /* of places 0 to 3, 4 to 7, 8 to 11 and 12 to 15 */
            const __m128i *half = a + n / 2 * 4;
            b[2 * n] = n % 2 ? _mm_unpackhi_epi16(half[0], half[1]) : _mm_unpacklo_epi16(half[0], half[1]);
            b[2 * n + 1] = n % 2 ? _mm_unpackhi_epi16(half[2], half[3]) : _mm_unpacklo_epi16(half[2], half[3]);
        }
        _Pragma("GCC unroll 8")
        for (int n = 0; n < 8; n++) { /* places 2 n and 2 n + 1, of rows n and n + 8 */
            __m128i both = n % 2 ? _mm_unpackhi_epi32(b[n - 1], b[n]) : _mm_unpacklo_epi32(b[n], b[n + 1]);
            _mm_storel_epi64((__m128i *)(out + n * width), both);
            _mm_storel_epi64((__m128i *)(out + (n + 8) * width), _mm_unpackhi_epi64(both, both));
        }
    }
    /* Put the signs of a whole group row by row. */
    WIDEST static void signs_by_row(const uint8_t *group, int64_t width, uint8_t *out) {
        const __m128i half = _mm_set1_epi8(15);
        for (int64_t at = 0; at < width; at += 8) {
            __m128i low[8], high[8];
            _Pragma("GCC unroll 8")
            for (int n = 0; n < 8; n++, group += GROUP) {
                __m128i first = _mm_loadu_si128((const __m128i *)group);
                __m128i second = _mm_loadu_si128((const __m128i *)(group + 16));
                __m128i first_up = _mm_andnot_si128(half, first), second_low = _mm_and_si128(second, half);
                low[n] = _mm_or_si128(_mm_and_si128(first, half), _mm_slli_epi16(second_low, 4));
                high[n] = _mm_or_si128(_mm_srli_epi16(first_up, 4), _mm_andnot_si128(half, second));
            }
            turn_eight(low, width, out + at);
            turn_eight(high, width, out + 16 * width + at);
        }
    }
    static const uint8_t *signs_of_row(const Codes *codes, int64_t row, RowSigns *known) {
        const int64_t start = row / GROUP * GROUP, rest = codes->rows - start, width = codes->width;
        const uint8_t *group = codes->signs + start * width;
        if (known->group != group) {
            known->group = group;
            if (rest >= GROUP) signs_by_row(group, width, known->signs);
            else
                for (int64_t n = 0; n < rest; n++)
                    for (int64_t at = 0; at < width; at++) known->signs[n * width + at] = group[at * rest + n];
        }
        return known->signs + (row - start) * width;
    }
    /* What `estimate_of` says of a row of four further bits: the same terms in the same order. */
    WIDEST static float estimate_by_fours(const Codes *codes, const EncodedQuery *asked, int64_t row, const uint8_t *signs) {
        const float *add = codes->factors + 2 * codes->rows, *scale = add + codes->rows, *turned = asked->turned;
        const uint8_t *stored = codes->rest + row * codes->rest_width;
        const __m512 below = _mm512_setr_ps(-15.5f, -14.5f, -13.5f, -12.5f, -11.5f, -10.5f, -9.5f, -8.5f,
                                            -7.5f, -6.5f, -5.5f, -4.5f, -3.5f, -2.5f, -1.5f, -0.5f);
        const __m512 above = _mm512_setr_ps(0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f, 6.5f, 7.5f,
                                            8.5f, 9.5f, 10.5f, 11.5f, 12.5f, 13.5f, 14.5f, 15.5f);
        const __m256i low = _mm256_set1_epi8(15), set = _mm256_set1_epi8(16);
        __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
        for (int64_t at = 0; at < codes->width; at += 8, stored += 32, turned += 64) { /* 64 values */
            uint64_t eight;
            __m256i both = _mm256_loadu_si256((const __m256i *)stored);
            __m256i lower = _mm256_and_si256(both, low), upper = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
            __m256i even = _mm256_unpacklo_epi64(lower, upper), odd = _mm256_unpackhi_epi64(lower, upper);
            memcpy(&eight, signs + at, 8);
            /* values 0 to 15 and 32 to 47 are even, others odd */
            even = _mm256_mask_add_epi8(
                even, (__mmask32)((eight & 0xffff) | (eight >> 16 & 0xffff0000)), even, set);
            odd = _mm256_mask_add_epi8(
                odd, (__mmask32)((eight >> 16 & 0xffff) | (eight >> 32 & 0xffff0000)), odd, set);
            #define ADD_STEPS(CODES, PART)                                                                      \
                sums[PART % 2] = _mm512_fmadd_ps(                                                               \
                    _mm512_permutex2var_ps(below, _mm512_cvtepu8_epi32(CODES), above),                          \
                    _mm512_loadu_ps(turned + 16 * PART), sums[PART % 2])
            ADD_STEPS(_mm256_castsi256_si128(even), 0);
            ADD_STEPS(_mm256_castsi256_si128(odd), 1);
            ADD_STEPS(_mm256_extracti128_si256(even, 1), 2);
            ADD_STEPS(_mm256_extracti128_si256(odd, 1), 3);
        }
        __m256 a = _mm256_add_ps(_mm512_castps512_ps256(sums[0]), _mm512_extractf32x8_ps(sums[0], 1));
        __m256 b = _mm256_add_ps(_mm512_castps512_ps256(sums[1]), _mm512_extractf32x8_ps(sums[1], 1));
        Lanes sum = (Lanes)_mm256_add_ps(a, b);
        Four low_four, high_four;
        memcpy(&low_four, &sum, 16);
        memcpy(&high_four, (const char *)&sum + 16, 16);
        low_four += high_four;
        return ((low_four[0] + low_four[2]) + (low_four[1] + low_four[3])) * scale[row] + asked->apart[0] * add[row]
               + asked->apart[1];
    }
    WIDEST static int64_t near_by_words(const float *lowest, int64_t count, float bound, int others, uint32_t *found) {
        __m512i places = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
        int64_t size = 0;
        for (int64_t at = 0; at < count; at += 16) {
            __mmask16 some = count - at >= 16 ? 0xffff : (__mmask16)((1 << (count - at)) - 1);
            __mmask16 near = _mm512_mask_cmp_ps_mask(
                some, _mm512_maskz_loadu_ps(some, lowest + at), _mm512_set1_ps(bound), _CMP_LE_OQ);
            if (others) near = some & ~near;
            /* in a register: processors of AMD take a hundred steps to put some of one into memory */
            if (near) _mm512_storeu_si512(found + size, _mm512_maskz_compress_epi32(near, places));
            size += __builtin_popcount(near);
            places = _mm512_add_epi32(places, _mm512_set1_epi32(16));
        }
        return size;
    }
    #else
    static int are_signs_words(void) { return 0; }
    static void bounds_by_words(
        const Codes *codes, int64_t start, int64_t count, const EncodedQuery *asked, float *lowest, float *highest
    ) {}
    static const uint8_t *signs_of_row(const Codes *codes, int64_t row, RowSigns *known) { return known->signs; }
    static float estimate_by_fours(const Codes *codes, const EncodedQuery *asked, int64_t row, const uint8_t *signs) { return 0; }
    static int64_t near_by_words(const float *lowest, int64_t count, float bound, int others, uint32_t *found) { return 0; }
    #endif

    static float estimate_of_row(
        const Codes *codes, const EncodedQuery *asked, int64_t row, RowSigns *known, int32_t *signs, float *steps
    ) {
        if (asked->laid && codes->bits == 4 && codes->width % 8 == 0)
            return estimate_by_fours(codes, asked, row, signs_of_row(codes, row, known));
        return estimate_of(codes, asked, row, signs, steps);
    }

    /* How near some rows may be, from the first of a group on, and how far at most, unless it is NULL: as far as signs say. */
    static void bounds_of_rows(
        const Codes *codes, int64_t start, int64_t count, const EncodedQuery *asked, Summing summing, float *lowest, float *highest
    ) {
        if (asked->laid) {
            bounds_by_words(codes, start, count, asked, lowest, highest);
            return;
        }
        for (int64_t at = 0; at < count; at += GROUP)
            bounds_of(codes, start + at, count - at < GROUP ? count - at : GROUP, asked, summing, lowest + at,
                      highest ? highest + at : NULL);
    }
    /* Put the numbers of the rows that are not beyond a bound, or of the others, into `found`, where there is room for 16 more; return how
       many they are. */
    static int64_t near_rows(const EncodedQuery *asked, const float *lowest, int64_t count, float bound, int others, uint32_t *found) {
        return asked->laid ? near_by_words(lowest, count, bound, others, found)
                           : near_plain(lowest, count, bound, others, found);
    }
    """
    bint are_signs_words() noexcept nogil
    int64_t laid_bytes(int64_t width) noexcept nogil
    void lay_tables(const uint8_t *tables, int64_t width, uint8_t *laid) noexcept nogil
    void bounds_of_rows(
        const Codes *codes, int64_t start, int64_t count, const EncodedQuery *asked, Summing summing, float *lowest, float *highest
    ) noexcept nogil
    ctypedef struct RowSigns:
        const uint8_t *group
        uint8_t *signs
    float estimate_of_row(
        const Codes *codes, const EncodedQuery *asked, int64_t row, RowSigns *known, int32_t *signs, float *steps
    ) noexcept nogil
    int64_t near_rows(
        const EncodedQuery *asked, const float *lowest, int64_t count, float bound, bint others, uint32_t *found
    ) noexcept nogil
