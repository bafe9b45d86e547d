# cython: language_level=3
"""Graphs of near neighbours, as HNSW has them; see graphs.pyi."""

from libc.stdint cimport int32_t, int64_t, uint8_t

# Plain C, for it is compiled for the CPUs of today and for any: which one is used is decided at import.
cdef extern from *:
    """
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>

    #if !defined(__GNUC__)
    #error "the kernels take a compiler with vector types: gcc or clang"
    #endif
    #if defined(__x86_64__) || defined(__i386__)
    #define PENNON_CHOOSES 1
    #else
    #define PENNON_CHOOSES 0
    #endif
    #define PENNON_ALWAYS static inline __attribute__((always_inline))
    typedef float lanes __attribute__((vector_size(64), aligned(4), may_alias));

    typedef struct { float far; int32_t node; int32_t open; } found_node;

    /* The nodes of a level, `most` slots for each: how many neighbours it has, which, and how far. */
    typedef struct { int32_t *counts; int32_t *nodes; float *far; int64_t most; } links;

    typedef struct {
        const float *rows; int64_t count, width; int is_product;
        links base, upper; const int64_t *starts; const uint8_t *levels;
        int32_t *seen; int32_t epoch;
        found_node *beam; int64_t held;
    } graph;

    PENNON_ALWAYS float far_from(const graph *g, const float *a, const float *b) {
        lanes s = {0}, t = {0}, x, y;
        int64_t i = 0;
        float total = 0;
        int k;
        if (g->is_product) {
            for (; i + 32 <= g->width; i += 32) {
                s += *(const lanes *)(a + i) * *(const lanes *)(b + i);
                t += *(const lanes *)(a + i + 16) * *(const lanes *)(b + i + 16);
            }
            for (; i < g->width; i += 16) s += *(const lanes *)(a + i) * *(const lanes *)(b + i);
        } else {
            for (; i + 32 <= g->width; i += 32) {
                x = *(const lanes *)(a + i) - *(const lanes *)(b + i);
                y = *(const lanes *)(a + i + 16) - *(const lanes *)(b + i + 16);
                s += x * x; t += y * y;
            }
            for (; i < g->width; i += 16) {
                x = *(const lanes *)(a + i) - *(const lanes *)(b + i);
                s += x * x;
            }
        }
        s += t;
        for (k = 0; k < 16; k++) total += s[k];
        return g->is_product ? 1 - total : total;
    }

    PENNON_ALWAYS int64_t slot_of(const graph *g, int32_t node, int level) {
        return level == 0 ? node : g->starts[node] + level - 1;
    }

    /* Put a node where it belongs among the nearest; the farthest falls off. */
    PENNON_ALWAYS void keep(graph *g, int64_t most, float far, int32_t node) {
        int64_t low = 0, high = g->held;
        if (g->held == most) {
            if (!(far < g->beam[most - 1].far)) return;
            high = most - 1;
        }
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (g->beam[middle].far <= far) low = middle + 1; else high = middle;
        }
        if (g->held < most) g->held++;
        memmove(g->beam + low + 1, g->beam + low, (g->held - 1 - low) * sizeof(found_node));
        g->beam[low].far = far; g->beam[low].node = node; g->beam[low].open = 1;
    }

    /* Find the nearest nodes of a level, from those that the beam has. */
    PENNON_ALWAYS void spread(graph *g, const float *row, int level, int64_t most) {
        const links *l = level == 0 ? &g->base : &g->upper;
        int64_t at, i;
        g->epoch++;
        for (at = 0; at < g->held; at++) {
            g->beam[at].open = 1;
            g->seen[g->beam[at].node] = g->epoch;
        }
        for (at = 0; at < g->held;) {
            int64_t slot, first = at, count;
            const int32_t *nodes;
            if (!g->beam[at].open) { at++; continue; }
            g->beam[at].open = 0;
            slot = slot_of(g, g->beam[at].node, level);
            nodes = l->nodes + slot * l->most;
            count = l->counts[slot];
            for (i = 0; i < count; i++) __builtin_prefetch(g->rows + nodes[i] * g->width);
            for (i = 0; i < count; i++) {
                int32_t node = nodes[i];
                float far;
                if (g->seen[node] == g->epoch) continue;
                g->seen[node] = g->epoch;
                far = far_from(g, row, g->rows + node * g->width);
                if (g->held < most || far < g->beam[g->held - 1].far) {
                    int64_t low;
                    keep(g, most, far, node);
                    for (low = 0; low < first; low++) if (g->beam[low].open) { first = low; break; }
                }
            }
            at = first;
        }
    }

    /* Of nodes in order, keep those that are nearer to the row than to any kept before, and then the nearest
       of the others; return how many. */
    PENNON_ALWAYS int64_t choose(const graph *g, found_node *from, int64_t many, int64_t most) {
        int64_t kept = 0, i, j;
        for (i = 0; i < many; i++) from[i].open = 0;
        for (i = 0; i < many && kept < most; i++) {
            const float *row = g->rows + from[i].node * g->width;
            for (j = 0; j < i; j++)
                if (from[j].open && far_from(g, row, g->rows + from[j].node * g->width) < from[i].far) break;
            if (j == i) { from[i].open = 1; kept++; }
        }
        for (i = 0; i < many && kept < most; i++) if (!from[i].open) { from[i].open = 1; kept++; }
        for (i = 0, j = 0; i < many; i++) if (from[i].open) from[j++] = from[i];
        return kept;
    }

    PENNON_ALWAYS void link_back(graph *g, links *l, int64_t slot, int32_t node, float far, found_node *some) {
        int32_t *nodes = l->nodes + slot * l->most;
        float *fars = l->far + slot * l->most;
        int64_t count = l->counts[slot], i, at;
        if (count < l->most) {
            nodes[count] = node; fars[count] = far; l->counts[slot] = (int32_t)(count + 1);
            return;
        }
        some[0].far = far; some[0].node = node;
        for (i = 0; i < count; i++) {
            for (at = i + 1; at > 0 && some[at - 1].far > fars[i]; at--) some[at] = some[at - 1];
            some[at].far = fars[i]; some[at].node = nodes[i];
        }
        count = choose(g, some, count + 1, l->most);
        for (i = 0; i < count; i++) { nodes[i] = some[i].node; fars[i] = some[i].far; }
        l->counts[slot] = (int32_t)count;
    }

    PENNON_ALWAYS void grow_all(graph *g, int64_t m, int64_t wide, found_node *some) {
        int32_t node;
        int level, top = g->levels[0];
        for (node = 1; node < g->count; node++) {
            const float *row = g->rows + node * g->width;
            int own = g->levels[node];
            g->held = 1;
            g->beam[0].node = 0;
            g->beam[0].far = far_from(g, row, g->rows);
            for (level = top; level >= 0; level--) {
                links *l = level == 0 ? &g->base : &g->upper;
                int64_t i, kept, slot;
                spread(g, row, level, level > own ? 1 : wide);
                if (level > own) continue;
                slot = slot_of(g, node, level);
                memcpy(some, g->beam, g->held * sizeof(found_node));
                kept = choose(g, some, g->held, m);
                for (i = 0; i < kept; i++) {
                    l->nodes[slot * l->most + i] = some[i].node;
                    l->far[slot * l->most + i] = some[i].far;
                }
                l->counts[slot] = (int32_t)kept;
                for (i = 0; i < kept; i++)
                    link_back(g, l, slot_of(g, l->nodes[slot * l->most + i], level), node,
                              l->far[slot * l->most + i], some + wide + 1);
            }
        }
    }

    typedef void (*grow_kind)(graph *, int64_t, int64_t, found_node *);

    static void grow_plain(graph *g, int64_t m, int64_t wide, found_node *some) { grow_all(g, m, wide, some); }
    #if PENNON_CHOOSES
    __attribute__((target("avx2,fma")))
    static void grow_v3(graph *g, int64_t m, int64_t wide, found_node *some) { grow_all(g, m, wide, some); }
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,prefer-vector-width=512")))
    static void grow_v4(graph *g, int64_t m, int64_t wide, found_node *some) { grow_all(g, m, wide, some); }
    #endif

    static grow_kind choose_grow(void) {
        #if PENNON_CHOOSES
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) return grow_v4;
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return grow_v3;
        #endif
        return grow_plain;
    }

    /* Return 0, or 1 without memory. */
    static int grow(
        grow_kind kind, const float *rows, int64_t count, int64_t width, int is_product, const uint8_t *levels,
        const int64_t *starts, int64_t m, int64_t wide, int32_t *counts, int32_t *nodes, float *far,
        int32_t *upper_counts, int32_t *upper_nodes, float *upper_far
    ) {
        graph g = {rows, count, width, is_product, {counts, nodes, far, 2 * m},
                   {upper_counts, upper_nodes, upper_far, m}, starts, levels, 0, 0, 0, 0};
        found_node *some;
        g.seen = calloc(count, sizeof(int32_t));
        g.beam = malloc((wide + 1) * sizeof(found_node));
        some = malloc((wide + 1 + 2 * m + 2) * sizeof(found_node));
        if (g.seen && g.beam && some) kind(&g, m, wide, some);
        else { free(g.seen); free(g.beam); free(some); return 1; }
        free(g.seen); free(g.beam); free(some);
        return 0;
    }
    """
    ctypedef void (*grow_kind)(void *, int64_t, int64_t, void *) noexcept nogil
    grow_kind choose_grow() noexcept nogil
    int grow(
        grow_kind, const float *, int64_t, int64_t, int, const uint8_t *, const int64_t *, int64_t,
        int64_t, int32_t *, int32_t *, float *, int32_t *, int32_t *, float *
    ) noexcept nogil

cdef grow_kind GROW = choose_grow()


def grow_graph(
    const float[:, ::1] rows, bint is_product, const uint8_t[::1] levels, const int64_t[::1] starts,
    int64_t m, int64_t wide, int32_t[::1] counts, int32_t[:, ::1] nodes, float[:, ::1] far,
    int32_t[::1] upper_counts, int32_t[:, ::1] upper_nodes, float[:, ::1] upper_far
):
    """Link each row with its near neighbours; see the stub."""
    cdef int64_t count = rows.shape[0], slots = upper_counts.shape[0], i
    cdef int failed
    cdef bint fits = 1
    if count < 1 or count >> 31 or rows.shape[1] < 1 or rows.shape[1] % 16 or m < 1 or wide < 1 or wide >> 24:
        raise ValueError("rows of a graph are padded to sixteen numbers, and there is one at least")
    if (
        levels.shape[0] != count or starts.shape[0] != count or counts.shape[0] != count
        or nodes.shape[0] != count or far.shape[0] != count or slots < 1
        or upper_nodes.shape[0] != slots or upper_far.shape[0] != slots
        or nodes.shape[1] != 2 * m or far.shape[1] != 2 * m
        or upper_nodes.shape[1] != m or upper_far.shape[1] != m
    ):
        raise ValueError("the parts of a graph do not fit")
    for i in range(count):
        fits = fits and levels[i] <= levels[0] and 0 <= starts[i] and starts[i] + levels[i] <= slots
    if not fits:
        raise ValueError("a node of a graph is above the first one, or has no place")
    with nogil:
        failed = grow(
            GROW, &rows[0, 0], count, rows.shape[1], is_product, &levels[0], &starts[0], m, wide,
            &counts[0], &nodes[0, 0], &far[0, 0], &upper_counts[0], &upper_nodes[0, 0], &upper_far[0, 0]
        )
    if failed:
        raise MemoryError("no memory for a graph")
