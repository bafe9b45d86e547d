# cython: language_level=3
"""Vectors and the centroids nearest to them; see clusters.pyi."""

from libc.stdint cimport int32_t, int64_t

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
        #define PENNON_LEAST(r) if (r < many) { \\
            float least = __builtin_inff(); int32_t at = INT32_MAX; int k; \\
            for (k = 0; k < 16; k++) least = best##r[k] < least ? best##r[k] : least; \\
            for (k = 0; k < 16; k++) \\
                at = best##r[k] == least && where##r[k] < at ? where##r[k] : at; \\
            found[r * found_stride] = at; \\
            scores[r * scores_stride] = least; }
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

    static meet_kind choose_meet(void) {
        #if PENNON_CHOOSES
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) return meet_v4;
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
