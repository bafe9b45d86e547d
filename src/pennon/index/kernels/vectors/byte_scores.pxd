# cython: language_level=3
"""Centroids nearest to rows, of which bytes say that most are too far away: for processors that multiply bytes (VNNI).

A row and a centroid are whole numbers from -127 to 127 of a step of their own, and little is left over.  Their product
is that of the whole numbers, and differs by no more than what is left of one times the length of the other.  So each
score has a least and a greatest value.  Panels of which one centroid may have the least score of all are compared as
they are, by the steps of `clusters`, so that the same is found, to the last bit.
"""

from pennon.index.kernels.vectors cimport code_squares

cdef extern from *:
    """
    #include <math.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>

    #if defined(__GNUC__) && defined(__x86_64__)
    #define BYTE_SCORES __attribute__((target( \\
        "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,prefer-vector-width=512")))
    enum { SCORE_LANES = 16, SCORE_ROWS = 8, SCORE_STEPS = 127, SCORE_WIDTH = 4096 };

    /* Of each centroid: its bytes, from 1 to 255, four dimensions of 16 centroids in a row; its step, its length, what is
       left of it, and what its half is at least and at most.  Of eight rows: what their scores are at least, by panels; and
       their bytes. */
    typedef struct {
        int64_t fours;
        uint8_t *bytes;
        float *steps, *lengths, *rests, *least_halves, *most_halves, *least;
        int8_t *row_bytes;
        void *room;
    } ByteCentroids;

    /* Of a row: the same numbers, and the sum of its bytes. */
    typedef struct { float step, length, rest; int32_t sum; } ByteRow;

    /* Numbers are rounded, here and where scores are computed as they are: by so much of what was added. */
    static float score_rounding(int64_t dim) { return (float)(dim + 16) * 0x1p-22f; }

    /* Whether so many rows are worth it to cut centroids. */
    static int are_worth_bytes(int64_t count, int64_t dim, int64_t groups) {
        return count >= 64 && groups >= 8 && dim >= 32 && dim <= SCORE_WIDTH;
    }

    /* Make room; false if there is none. */
    static int room_of_scores(ByteCentroids *made, int64_t groups, int64_t dim) {
        int64_t many = groups * SCORE_LANES, fours = (dim + 3) / 4, bytes = groups * fours * 64;
        int64_t floats = (5 + SCORE_ROWS) * many, own = (SCORE_ROWS * fours * 4 + 63) / 64 * 64;
        char *room = aligned_alloc(64, (size_t)(bytes + floats * 4 + own));
        if (room == NULL) return 0;
        made->room = room, made->fours = fours, made->bytes = (uint8_t *)room;
        made->steps = (float *)(room + bytes);
        made->lengths = made->steps + many, made->rests = made->lengths + many;
        made->least_halves = made->rests + many, made->most_halves = made->least_halves + many;
        made->least = made->most_halves + many;
        made->row_bytes = (int8_t *)(made->least + SCORE_ROWS * many);
        memset(made->row_bytes, 0, SCORE_ROWS * fours * 4);
        return 1;
    }

    /* Cut the centroids of panels to bytes; false where numbers are too great or none at all. */
    BYTE_SCORES static int cut_centroids(
        ByteCentroids *made, const float *panels, const float *halves, int64_t groups, int64_t dim
    ) {
        const float rounding = score_rounding(dim);
        for (int64_t at = 0; at < groups * SCORE_LANES; at++) {
            const float *panel = panels + at / SCORE_LANES * dim * SCORE_LANES + at % SCORE_LANES;
            uint8_t *bytes = made->bytes + at / SCORE_LANES * made->fours * 64 + at % SCORE_LANES * 4;
            double square = 0, rest = 0;
            float most = 0, step;
            for (int64_t d = 0; d < dim; d++) {
                float size = fabsf(panel[d * SCORE_LANES]);
                most = size > most ? size : most;
                square += (double)size * size;
            }
            if (!(square < 1e30)) return 0;
            step = most / SCORE_STEPS;
            for (int64_t d = 0; d < made->fours * 4; d++) {
                float value = d < dim ? panel[d * SCORE_LANES] : 0;
                int whole = most > 1e-12f ? (int)lrintf(value / step) : 0;
                double left = value - (double)step * whole;
                rest += left * left;
                bytes[d / 4 * 64 + d % 4] = (uint8_t)(whole + 128);
            }
            made->steps[at] = step;
            made->lengths[at] = (float)sqrt(square) * 1.0001f, made->rests[at] = (float)sqrt(rest) * 1.0001f;
            made->least_halves[at] = made->most_halves[at] = halves[at];
            if (halves[at] != halves[at]) return 0;
            if (fabsf(halves[at]) < INFINITY) {
                made->least_halves[at] -= rounding * fabsf(halves[at]);
                made->most_halves[at] += rounding * fabsf(halves[at]);
            }
        }
        return 1;
    }

    BYTE_SCORES static __mmask16 lanes_of(int64_t left) { return left < SCORE_LANES ? (1 << left) - 1 : 0xffff; }

    /* Cut a row to bytes, four of which are followed by those of other rows; false where numbers are too great, too
       small, or none at all. */
    BYTE_SCORES static int cut_score_row(const float *row, int64_t dim, int8_t *bytes, ByteRow *made) {
        __m512 most = _mm512_setzero_ps(), square = most, rest = most, scale, step;
        __m512i sum = _mm512_setzero_si512();
        for (int64_t d = 0; d < dim; d += SCORE_LANES) {
            const __m512 some = _mm512_maskz_loadu_ps(lanes_of(dim - d), row + d);
            most = _mm512_max_ps(most, _mm512_abs_ps(some));
            square = _mm512_fmadd_ps(some, some, square);
        }
        made->step = _mm512_reduce_max_ps(most) / SCORE_STEPS;
        made->length = sqrtf(_mm512_reduce_add_ps(square)) * 1.001f;
        if (!(made->length < 1e15f && made->step > 1e-12f)) return 0;
        scale = _mm512_set1_ps(1 / made->step), step = _mm512_set1_ps(made->step);
        for (int64_t d = 0; d < dim; d += SCORE_LANES) {
            const __m512 some = _mm512_maskz_loadu_ps(lanes_of(dim - d), row + d);
            const __m512 whole = _mm512_roundscale_ps(_mm512_mul_ps(some, scale), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
            const __m512 left = _mm512_fnmadd_ps(step, whole, some);
            const __m512i wholes = _mm512_cvtps_epi32(whole);
            int8_t sixteen[SCORE_LANES];
            rest = _mm512_fmadd_ps(left, left, rest);
            sum = _mm512_add_epi32(sum, wholes);
            _mm_storeu_si128((__m128i *)sixteen, _mm512_cvtepi32_epi8(wholes));
            for (int64_t at = d; at < d + SCORE_LANES && at < dim; at += 4)
                memcpy(bytes + at * SCORE_ROWS, sixteen + (at - d), 4);
        }
        made->rest = sqrtf(_mm512_reduce_add_ps(rest)) * 1.001f + score_rounding(dim) * made->length;
        made->sum = _mm512_reduce_add_epi32(sum);
        return 1;
    }

    /* Compare eight rows with all centroids: what scores are at least goes to `made`, and to `most` what the least score
       of each row is at most. */
    BYTE_SCORES static void bound_scores(const ByteCentroids *made, int64_t groups, const ByteRow *rows, float *most) {
        __m512 best[SCORE_ROWS];
        #pragma GCC unroll 8
        for (int r = 0; r < SCORE_ROWS; r++) best[r] = _mm512_set1_ps(INFINITY);
        for (int64_t g = 0; g < groups; g++) {
            const uint8_t *panel = made->bytes + g * made->fours * 64;
            const __m512 steps = _mm512_loadu_ps(made->steps + g * 16), lengths = _mm512_loadu_ps(made->lengths + g * 16);
            const __m512 rests = _mm512_loadu_ps(made->rests + g * 16);
            const __m512 low = _mm512_loadu_ps(made->least_halves + g * 16), high = _mm512_loadu_ps(made->most_halves + g * 16);
            __m512i sums[SCORE_ROWS];
            #pragma GCC unroll 8
            for (int r = 0; r < SCORE_ROWS; r++) sums[r] = _mm512_set1_epi32(-128 * rows[r].sum);
            for (int64_t at = 0; at < made->fours; at++) {
                const __m512i some = _mm512_loadu_si512(panel + at * 64);
                #pragma GCC unroll 8
                for (int r = 0; r < SCORE_ROWS; r++) add_products_of_four(&sums[r], some, made->row_bytes + (at * SCORE_ROWS + r) * 4);
            }
            #pragma GCC unroll 8
            for (int r = 0; r < SCORE_ROWS; r++) {
                const __m512 step = _mm512_mul_ps(steps, _mm512_set1_ps(rows[r].step));
                const __m512 product = _mm512_mul_ps(step, _mm512_cvtepi32_ps(sums[r]));
                const __m512 apart = _mm512_fmadd_ps(
                    lengths, _mm512_set1_ps(rows[r].rest), _mm512_mul_ps(rests, _mm512_set1_ps(rows[r].length)));
                _mm512_storeu_ps(
                    made->least + (g * SCORE_ROWS + r) * 16, _mm512_sub_ps(_mm512_sub_ps(low, product), apart));
                best[r] = _mm512_min_ps(best[r], _mm512_add_ps(_mm512_sub_ps(high, product), apart));
            }
        }
        #pragma GCC unroll 8
        for (int r = 0; r < SCORE_ROWS; r++) most[r] = _mm512_reduce_min_ps(best[r]);
    }
    #endif
    """
