# cython: language_level=3
"""Vectors and the centroids nearest to them; see clusters.pyi."""

from libc.stdint cimport int32_t, int64_t

from pennon.index.kernels.vectors cimport byte_scores

# Eight rows meet sixteen centroids at a time: their products stay in registers.  The same text is
# compiled for the CPUs of today and for any; which one is used is decided at import.
cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    #if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
    #define PENNON_CHOOSES 1
    #else
    #define PENNON_CHOOSES 0
    #endif
    #if defined(__GNUC__)
    #define PENNON_ALWAYS static inline __attribute__((always_inline))
    typedef float lanes __attribute__((vector_size(64), aligned(4), may_alias));
    typedef int32_t marks __attribute__((vector_size(64), aligned(4), may_alias));
    #else
    #error "the kernels take a compiler with vector types: gcc or clang"
    #endif

    /* A panel holds 16 centroids, dimension by dimension; halves are half their squared lengths. */
    #define PENNON_ROWS 8

    /* Put the least score where it belongs, and the first centroid that has it. */
    PENNON_ALWAYS void put_least(lanes best, marks where, int32_t *found, float *score) {
        float least = __builtin_inff();
        int32_t at = INT32_MAX;
        int k;
        for (k = 0; k < 16; k++) least = best[k] < least ? best[k] : least;
        for (k = 0; k < 16; k++) at = best[k] == least && where[k] < at ? where[k] : at;
        *found = at, *score = least;
    }

    PENNON_ALWAYS void meet(
        const float *rows, int64_t stride, int64_t many, int64_t dim, const float *panels,
        const float *halves, int64_t groups, int32_t *found, int64_t found_stride, float *scores,
        int64_t scores_stride
    ) {
        #define PENNON_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
        marks counting = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
        lanes infinite = {0};
        int64_t g, d;
        infinite += __builtin_inff();
        #define PENNON_BEGIN(r) \\
            lanes best##r = infinite; marks where##r = {0}; \\
            const float *row##r = rows + (r < many ? r : many - 1) * stride;
        PENNON_EACH(PENNON_BEGIN)
        for (g = 0; g < groups; g++) {
            const float *panel = panels + g * dim * 16;
            const marks here = counting + (int32_t)(g * 16);
            lanes half = *(const lanes *)(halves + g * 16);
            #define PENNON_HALF(r) lanes a##r = half;
            PENNON_EACH(PENNON_HALF)
            for (d = 0; d < dim; d++) {
                const lanes c = *(const lanes *)(panel + d * 16);
                #define PENNON_LESS(r) a##r -= row##r[d] * c;
                PENNON_EACH(PENNON_LESS)
            }
            #define PENNON_KEEP(r) { \\
                const marks less = (marks)(a##r < best##r); \\
                best##r = (lanes)((less & (marks)a##r) | (~less & (marks)best##r)); \\
                where##r = (less & here) | (~less & where##r); }
            PENNON_EACH(PENNON_KEEP)
        }
        #define PENNON_LEAST(r) if (r < many) \
            put_least(best##r, where##r, found + r * found_stride, scores + r * scores_stride);
        PENNON_EACH(PENNON_LEAST)
    }

    PENNON_ALWAYS void meet_all(
        const float *rows, int64_t count, int64_t parts, int64_t dim, const float *panels,
        const float *halves, int64_t groups, int32_t *found, float *scores
    ) {
        int64_t start, part;
        for (start = 0; start < count; start += PENNON_ROWS) {
            int64_t many = count - start < PENNON_ROWS ? count - start : PENNON_ROWS;
            for (part = 0; part < parts; part++)
                meet(rows + start * parts * dim + part * dim, parts * dim, many, dim,
                     panels + part * groups * 16 * dim, halves + part * groups * 16, groups,
                     found + start * parts + part, parts, scores + start * parts + part, parts);
        }
    }

    #define PENNON_ARGUMENTS \\
        const float *rows, int64_t count, int64_t parts, int64_t dim, const float *panels, \\
        const float *halves, int64_t groups, int32_t *found, float *scores
    #define PENNON_PASSED rows, count, parts, dim, panels, halves, groups, found, scores

    static void meet_plain(PENNON_ARGUMENTS) { meet_all(PENNON_PASSED); }
    #if PENNON_CHOOSES
    __attribute__((target("avx2,fma"))) static void meet_v3(PENNON_ARGUMENTS) { meet_all(PENNON_PASSED); }
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,prefer-vector-width=512")))
    static void meet_v4(PENNON_ARGUMENTS) { meet_all(PENNON_PASSED); }
    #endif

    typedef void (*meet_kind)(PENNON_ARGUMENTS);

    #ifdef BYTE_SCORES
    /* Rows, each with a panel of which one centroid may be the nearest. */
    enum { PENNON_PAIRS = 4 };
    typedef struct { const float *row, *panel; int32_t r, g; } maybe_near;

    /* Compare pairs as `meet` does, whose order they have. */
    BYTE_SCORES static inline void meet_pairs(
        const maybe_near *pairs, int count, int64_t dim, const float *halves, lanes *best, marks *where
    ) {
        const marks counting = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
        lanes a[PENNON_PAIRS];
        int64_t d;
        int n;
        for (n = 0; n < PENNON_PAIRS; n++) a[n] = *(const lanes *)(halves + (int64_t)pairs[n].g * 16);
        for (d = 0; d < dim; d++)
            for (n = 0; n < PENNON_PAIRS; n++) a[n] -= pairs[n].row[d] * *(const lanes *)(pairs[n].panel + d * 16);
        for (n = 0; n < count; n++) {
            const int32_t r = pairs[n].r;
            const marks less = (marks)(a[n] < best[r]), here = counting + pairs[n].g * 16;
            best[r] = (lanes)((less & (marks)a[n]) | (~less & (marks)best[r]));
            where[r] = (less & here) | (~less & where[r]);
        }
    }

    /* Find the nearest centroids of eight rows; `most`: what the least score of each is at most.  Return how many panels
       were compared as they are. */
    BYTE_SCORES static int64_t meet_maybe(
        const float *rows, int64_t many, int64_t dim, const float *panels, const float *halves, int64_t groups,
        const float *least, const float *most, int32_t *found, float *scores
    ) {
        lanes best[PENNON_ROWS];
        marks where[PENNON_ROWS];
        maybe_near pairs[PENNON_PAIRS];
        int64_t r, g, kept = 0;
        int n = 0;
        for (r = 0; r < many; r++) best[r] = (lanes){0} + __builtin_inff(), where[r] = (marks){0};
        for (n = 0; n < PENNON_PAIRS; n++) pairs[n] = (maybe_near){rows, panels, 0, 0};
        for (n = r = 0; r < many; r++)
            for (g = 0; g < groups; g++) {
                const __m512 scores_of_panel = _mm512_loadu_ps(least + (g * PENNON_ROWS + r) * 16);
                if (!_mm512_cmp_ps_mask(scores_of_panel, _mm512_set1_ps(most[r]), _CMP_LE_OQ)) continue;
                pairs[n++] = (maybe_near){rows + r * dim, panels + g * dim * 16, (int32_t)r, (int32_t)g};
                if (n < PENNON_PAIRS) continue;
                meet_pairs(pairs, n, dim, halves, best, where);
                kept += n, n = 0;
            }
        if (n) meet_pairs(pairs, n, dim, halves, best, where);
        for (r = 0; r < many; r++) { /* see `put_least` */
            scores[r] = _mm512_reduce_min_ps((__m512)best[r]);
            found[r] = _mm512_mask_reduce_min_epi32(
                _mm512_cmp_ps_mask((__m512)best[r], _mm512_set1_ps(scores[r]), _CMP_EQ_OQ), (__m512i)where[r]);
        }
        return kept + n;
    }

    /* The same as `meet_v4`.  Where many panels may have the nearest centroid it goes on as that does. */
    BYTE_SCORES static void meet_bytes(PENNON_ARGUMENTS) {
        ByteCentroids made;
        int64_t start = 0, kept = 0, r;
        if (parts == 1 && are_worth_bytes(count, dim, groups) && room_of_scores(&made, groups, dim)) {
            int go_on = cut_centroids(&made, panels, halves, groups, dim);
            while (go_on && start < count) {
                const int64_t many = count - start < PENNON_ROWS ? count - start : PENNON_ROWS;
                const float *some = rows + start * dim;
                ByteRow cut[PENNON_ROWS];
                float most[PENNON_ROWS];
                int are_cut = 1;
                for (r = 0; r < PENNON_ROWS; r++)
                    are_cut &= cut_score_row(some + (r < many ? r : 0) * dim, dim, made.row_bytes + r * 4, &cut[r]);
                if (are_cut) {
                    bound_scores(&made, groups, cut, most);
                    kept += meet_maybe(
                        some, many, dim, panels, halves, groups, made.least, most, found + start, scores + start);
                } else {
                    meet(some, dim, many, dim, panels, halves, groups, found + start, 1, scores + start, 1);
                }
                start += many;
                go_on = start < 64 || kept * 4 < start * groups;
            }
            free(made.room);
        }
        if (start < count)
            meet_all(rows + start * parts * dim, count - start, parts, dim, panels, halves, groups, found + start * parts,
                     scores + start * parts);
    }
    #endif

    static meet_kind choose_meet(void) {
        #if PENNON_CHOOSES
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
            #ifdef BYTE_SCORES
            if (__builtin_cpu_supports("avx512vnni")) return meet_bytes;
            #endif
            return meet_v4;
        }
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return meet_v3;
        #endif
        return meet_plain;
    }
    """
    ctypedef void (*meet_kind)(
        const float *, int64_t, int64_t, int64_t, const float *, const float *, int64_t, int32_t *,
        float *
    ) noexcept nogil
    meet_kind choose_meet() noexcept nogil

cdef meet_kind MEET = choose_meet()


def nearest(
    const float[::1] rows, int64_t parts, int64_t dim, const float[::1] panels,
    const float[::1] halves, int32_t[::1] found, float[::1] scores
):
    """Find the nearest centroid of each part of each row; see the stub."""
    cdef int64_t count = found.shape[0] // parts if parts > 0 else 0
    cdef int64_t groups = halves.shape[0] // (parts * 16) if parts > 0 else 0
    if (
        parts < 1 or dim < 1 or groups < 1 or groups >> 26
        or found.shape[0] != count * parts or scores.shape[0] != count * parts
        or rows.shape[0] != count * parts * dim or halves.shape[0] != groups * parts * 16
        or panels.shape[0] != groups * parts * 16 * dim
    ):
        raise ValueError("rows, panels and results of centroids do not fit")
    if count:
        with nogil:
            MEET(&rows[0], count, parts, dim, &panels[0], &halves[0], groups, &found[0], &scores[0])


def add_rows(const float[:, ::1] rows, const int32_t[::1] found, double[:, ::1] sums, int64_t[::1] counts):
    """Add each row to the sum of its centroid; see the stub."""
    cdef int64_t count = rows.shape[0], dim = rows.shape[1], centroids = sums.shape[0], i, d
    cdef int32_t at
    cdef bint wrong = 0
    cdef double *target
    cdef const float *row
    if found.shape[0] != count or sums.shape[1] != dim or counts.shape[0] != centroids:
        raise ValueError("rows and sums of centroids do not fit")
    if not count or not dim:
        return
    with nogil:
        for i in range(count):
            at = found[i]
            if at < 0 or at >= centroids:
                wrong = 1
                break
            target, row = &sums[at, 0], &rows[i, 0]
            counts[at] += 1
            for d in range(dim):
                target[d] += row[d]
    if wrong:
        raise ValueError("a row is nearest to a centroid that is not there")
