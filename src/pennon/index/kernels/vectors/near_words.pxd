# cython: language_level=3
"""The nearest rows by what tables say of their words, of which most are never added up: tables cut to bytes say how near a row may be.

A table's value becomes ``(value - least of the table) * scale``, less what is behind the point, and no more than 255; so
the sum of a row's bytes is no more than its own less that of the least values, in the same units.  The scale is such that
``FARTHEST`` is the farthest row that a heap has.  Rows that may be nearer are added up as they are, so that nothing else
is found, and no other distances.  Processors that look bytes up in tables of 128 (AVX-512 VBMI) do this for 64 rows at once;
on others it would gain nothing.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from pennon.index.kernels.vectors cimport vector_sums

cdef extern from *:
    """
    #include <math.h>
    enum { MOST_TABLES = 256, TABLE_BYTES = 256, SUMS = 1024, SUMS_AT_ONCE = 64 };

    typedef struct {
        double least, margin, scale; /* of distances; how far rounded ones may be off */
        uint8_t tables[MOST_TABLES * TABLE_BYTES], sums[SUMS];
    } cut_words;
    enum { UNCUT, CUT, NONE_NEAR };

    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    #define VBMI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi")))
    enum { FARTHEST = 250 };

    static int are_words_cut(void) {
        return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw")
               && __builtin_cpu_supports("avx512vl");
    }
    /* Cut tables for rows that are no farther than `worst`; UNCUT where their values are too large or too small. */
    VBMI static int cut_tables(cut_words *cut, const float *tables, int64_t many, float start, float worst) {
        float lows[MOST_TABLES];
        double least = start, size = fabs(start), room;
        if (many > MOST_TABLES) return UNCUT;
        for (int64_t m = 0; m < many; m++) {
            __m512 low = _mm512_set1_ps(INFINITY), high = _mm512_set1_ps(-INFINITY);
            for (int64_t at = 0; at < TABLE_BYTES; at += 16) {
                __m512 some = _mm512_loadu_ps(tables + m * TABLE_BYTES + at);
                low = _mm512_min_ps(some, low); /* what is no number is neither */
                high = _mm512_max_ps(some, high);
            }
            lows[m] = _mm512_reduce_min_ps(low);
            least += lows[m];
            size += fmax(fabs(lows[m]), fabs(_mm512_reduce_max_ps(high)));
        }
        if (!(size > 1e-20 && size < 1e20 && worst < 1e30f)) return UNCUT;
        cut->least = least;
        cut->margin = size * (double)(many + 8) * 0x1p-23;
        room = worst + cut->margin - least;
        if (room < 0) return NONE_NEAR;
        if (room < cut->margin / 16) room = cut->margin / 16;
        cut->scale = (float)(FARTHEST / room);
        for (int64_t m = 0; m < many; m++) {
            __m512 low = _mm512_set1_ps(lows[m]), scale = _mm512_set1_ps((float)cut->scale);
            for (int64_t at = 0; at < TABLE_BYTES; at += 16) {
                __m512 some = _mm512_loadu_ps(tables + m * TABLE_BYTES + at);
                __m512i whole = _mm512_cvttps_epi32(_mm512_mul_ps(_mm512_sub_ps(some, low), scale));
                /* what does not go into 32 bits, or is no number, is 2^31 of unsigned ones */
                _mm_storeu_si128((__m128i *)(cut->tables + m * TABLE_BYTES + at), _mm512_cvtusepi32_epi8(whole));
            }
        }
        return CUT;
    }
    /* Add up what the bytes of no more than SUMS rows say, 255 where it is more. */
    VBMI static void cut_sums(cut_words *cut, const uint8_t *codes, int64_t stride, int64_t many, int64_t count) {
        for (int64_t m = 0; m < many; m++) {
            const uint8_t *its = codes + m * stride;
            __m512i a = _mm512_loadu_si512(cut->tables + m * TABLE_BYTES);
            __m512i b = _mm512_loadu_si512(cut->tables + m * TABLE_BYTES + 64);
            __m512i c = _mm512_loadu_si512(cut->tables + m * TABLE_BYTES + 128);
            __m512i d = _mm512_loadu_si512(cut->tables + m * TABLE_BYTES + 192);
            for (int64_t at = 0; at < count; at += SUMS_AT_ONCE) {
                __m512i some = count - at >= SUMS_AT_ONCE
                    ? _mm512_loadu_si512(its + at)
                    : _mm512_maskz_loadu_epi8(((__mmask64)1 << (count - at)) - 1, its + at);
                __m512i said = _mm512_mask_blend_epi8(
                    _mm512_movepi8_mask(some), _mm512_permutex2var_epi8(a, some, b), _mm512_permutex2var_epi8(c, some, d));
                if (m) said = _mm512_adds_epu8(said, _mm512_loadu_si512(cut->sums + at));
                _mm512_storeu_si512(cut->sums + at, said);
            }
        }
    }
    /* Which of 64 rows have a sum that a row no farther than `worst` may have. */
    VBMI static uint64_t may_be_near(const cut_words *cut, int64_t at, int64_t count, float worst) {
        double most = (worst + cut->margin - cut->least) * cut->scale * 1.00001 + 1;
        uint64_t mask = count - at >= SUMS_AT_ONCE ? ~(uint64_t)0 : ((uint64_t)1 << (count - at)) - 1;
        if (!(most >= 0)) return 0;
        return mask & _mm512_cmple_epu8_mask(
            _mm512_loadu_si512(cut->sums + at), _mm512_set1_epi8((char)(most < 254 ? (uint8_t)most : 254)));
    }
    #else
    static int are_words_cut(void) { return 0; }
    static int cut_tables(cut_words *cut, const float *tables, int64_t many, float start, float worst) { return UNCUT; }
    static void cut_sums(cut_words *cut, const uint8_t *codes, int64_t stride, int64_t many, int64_t count) {}
    static uint64_t may_be_near(const cut_words *cut, int64_t at, int64_t count, float worst) { return 0; }
    #endif
    static int first_row(uint64_t rows) { return __builtin_ctzll(rows); }
    """
    enum:
        SUMS_AT_ONCE
        UNCUT
        CUT
        NONE_NEAR
    ctypedef struct cut_words:
        pass
    bint are_words_cut() noexcept nogil
    int cut_tables(cut_words *cut, const float *tables, int64_t many, float start, float worst) noexcept nogil
    void cut_sums(cut_words *cut, const uint8_t *codes, int64_t stride, int64_t many, int64_t count) noexcept nogil
    uint64_t may_be_near(const cut_words *cut, int64_t at, int64_t count, float worst) noexcept nogil
    int first_row(uint64_t rows) noexcept nogil
