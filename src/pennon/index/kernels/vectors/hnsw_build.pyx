# cython: language_level=3
"""Graphs of near neighbours, as HNSW has them; see graphs.pyi."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from pennon.index.kernels.vectors.hnsw_rows cimport CODE_SQUARES, KINDS_APART, LINE, MOST_BYTES

# Plain C, for it is compiled for the CPUs of today and for any: which one is used is decided at import.
cdef extern from *:
    """
    enum { BLOCK = 128 };  /* nodes that are linked together: work for threads, and few beside those before */
    enum { AHEAD = 3 };  /* rows that are asked for ahead */
    static const uint32_t MARK = (uint32_t)1 << 31;  /* in a beam: looked at; among those to choose from: taken */

    typedef struct { float far; uint32_t node; } found_node;

    /* The nodes of a level, `most` slots for each: how many neighbours it has, which, and how far, nearest first.
       Once all slots are taken, it is known which neighbours are `apart`: nearer to the node than to any before
       them that is; the first one always. */
    typedef struct { int32_t *counts; int32_t *nodes; float *far; int64_t most; uint8_t *apart; } links;

    typedef struct {
        uint16_t *seen, epoch; found_node *beam, *some; int32_t *fresh; int64_t held;
        int32_t *nodes; float *far; uint8_t *apart, *gained;  /* the neighbours of one node, and one more */
    } grow_worker;

    typedef struct {
        int kind; const uint8_t *rows; int64_t count, row_bytes, m, wide;
        links base, upper; const int64_t *starts; const uint8_t *levels;
        const int32_t *spare;  /* slots of the lowest level that stay free; below 0: the node is linked by others */
        int64_t first, last, next;  /* the block, and its first node that no worker has taken */
        found_node *wanted; int32_t *wanted_counts;  /* what each node of the block is linked with on each level */
        int64_t workers; grow_worker *each;
    } growth;

    PENNON_ALWAYS const uint8_t *row_of(const growth *g, int64_t node) { return g->rows + node * g->row_bytes; }

    PENNON_ALWAYS float far_from(const growth *g, const uint8_t *row, int64_t node, const int kind) {
        return far_between(row, row_of(g, node), g->row_bytes, kind);
    }

    PENNON_ALWAYS void ask_ahead(const growth *g, int64_t node) {
        const uint8_t *row = row_of(g, node);
        int64_t i, end = g->row_bytes < 16 * LINE ? g->row_bytes : 16 * LINE;
        for (i = 0; i < end; i += LINE) __builtin_prefetch(row + i);
    }

    PENNON_ALWAYS int64_t slot_of(const growth *g, int64_t node, int level) {
        return level == 0 ? node : g->starts[node] + level - 1;
    }

    PENNON_ALWAYS const links *links_of(const growth *g, int level) { return level == 0 ? &g->base : &g->upper; }

    /* Put a node where it belongs among the nearest, of which `most` have room; return its place. */
    PENNON_ALWAYS int64_t keep(found_node *some, int64_t *held, int64_t most, float far, int64_t node) {
        int64_t low = 0, high = *held;
        if (*held == most) {
            if (!(far < some[most - 1].far)) return most;
            high = most - 1;
        }
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (some[middle].far <= far) low = middle + 1; else high = middle;
        }
        if (*held < most) ++*held;
        memmove(some + low + 1, some + low, (*held - 1 - low) * sizeof(found_node));
        some[low].far = far; some[low].node = (uint32_t)node;
        return low;
    }

    /* Find the nearest nodes of a level, from those that the beam has. */
    PENNON_ALWAYS void spread(
        const growth *g, grow_worker *w, const uint8_t *row, int level, int64_t most, const int kind
    ) {
        const links *l = links_of(g, level);
        found_node *beam = w->beam;
        int64_t at, i;
        if (!++w->epoch) {
            memset(w->seen, 0, g->count * sizeof(*w->seen));
            w->epoch = 1;
        }
        for (at = 0; at < w->held; at++) {
            beam[at].node &= ~MARK;
            w->seen[beam[at].node] = w->epoch;
        }
        for (at = 0; at < w->held;) {
            int64_t slot, next = at + 1, count, fresh = 0;
            const int32_t *nodes;
            if (beam[at].node & MARK) { at++; continue; }
            slot = slot_of(g, beam[at].node, level);
            beam[at].node |= MARK;
            nodes = l->nodes + slot * l->most;
            count = l->counts[slot];
            for (i = 0; i < count; i++) {  /* without a branch that no CPU foresees */
                w->fresh[fresh] = nodes[i];
                fresh += w->seen[nodes[i]] != w->epoch;
                w->seen[nodes[i]] = w->epoch;
            }
            for (i = 0; i < fresh && i < AHEAD; i++) ask_ahead(g, w->fresh[i]);
            for (i = 0; i < fresh; i++) {
                float far;
                if (i + AHEAD < fresh) ask_ahead(g, w->fresh[i + AHEAD]);
                far = far_from(g, row, w->fresh[i], kind);
                if (w->held < most || far < beam[w->held - 1].far) {
                    int64_t place = keep(beam, &w->held, most, far, w->fresh[i]);
                    if (place < next) next = place;
                }
            }
            at = next;
        }
    }

    /* Of nodes in order, keep those that are nearer to the row than to any kept before, and then the nearest
       of the others; return how many. */
    PENNON_ALWAYS int64_t choose(const growth *g, found_node *from, int64_t many, int64_t most, const int kind) {
        int64_t kept = 0, i, j;
        for (i = 0; i < many; i++) from[i].node &= ~MARK;
        for (i = 0; i < many && kept < most; i++) {
            const uint8_t *row = row_of(g, from[i].node);
            for (j = 0; j < i; j++)
                if (from[j].node & MARK && far_from(g, row, from[j].node & ~MARK, kind) < from[i].far) break;
            if (j == i) { from[i].node |= MARK; kept++; }
        }
        for (i = 0; i < many && kept < most; i++)
            if (!(from[i].node & MARK)) { from[i].node |= MARK; kept++; }
        for (i = 0, j = 0; i < many; i++)
            if (from[i].node & MARK) { from[j].far = from[i].far; from[j++].node = from[i].node & ~MARK; }
        return kept;
    }

    /* Find what a node is to be linked with: the nearest of those in the graph, and of those of the block before it. */
    PENNON_ALWAYS void find_one(growth *g, grow_worker *w, int64_t node, const int kind) {
        const uint8_t *row = row_of(g, node);
        int own = g->levels[node], levels = g->levels[0] + 1, level;
        w->held = 1;
        w->beam[0].node = 0;
        w->beam[0].far = far_from(g, row, 0, kind);
        for (level = levels - 1; level >= 0; level--) {
            const links *l = links_of(g, level);
            int64_t many, kept, i, slot, place = (node - g->first) * levels + level;
            found_node *wanted = g->wanted + place * g->m;
            spread(g, w, row, level, level > own ? 1 : g->wide, kind);
            if (level > own) continue;
            many = w->held;
            memcpy(w->some, w->beam, many * sizeof(found_node));
            for (i = g->first; i < node; i++)
                if (g->levels[i] >= level && g->spare[i] >= 0) keep(w->some, &many, g->wide, far_from(g, row, i, kind), i);
            kept = choose(g, w->some, many, g->m, kind);
            slot = slot_of(g, node, level);
            for (i = 0; i < kept; i++) {
                wanted[i] = w->some[i];
                l->nodes[slot * l->most + i] = (int32_t)wanted[i].node;
                l->far[slot * l->most + i] = wanted[i].far;
            }
            l->counts[slot] = g->wanted_counts[place] = (int32_t)kept;
        }
    }

    /* Whether a neighbour is nearer to its node than to each of some others that are apart. */
    PENNON_ALWAYS int is_apart(
        const growth *g, int32_t node, float far, const int32_t *others, const uint8_t *apart, int64_t count, const int kind
    ) {
        const uint8_t *row = row_of(g, node);
        int64_t i;
        for (i = 0; i < count; i++) if (apart[i] && far_from(g, row, others[i], kind) < far) return 0;
        return 1;
    }

    /* Say anew which of a worker's neighbours behind a place are apart, for the one there is: compared are those
       only of whom it is not known. */
    PENNON_ALWAYS void part_again(const growth *g, grow_worker *w, int64_t place, int64_t count, const int kind) {
        int64_t i;
        int lost = 0;
        w->gained[place] = 1;
        for (i = place + 1; i < count; i++) {
            int was = w->apart[i];
            if (was)
                w->apart[i] = (uint8_t)is_apart(
                    g, w->nodes[i], w->far[i], w->nodes + place, w->gained + place, i - place, kind);
            else if (lost)
                w->apart[i] = (uint8_t)is_apart(g, w->nodes[i], w->far[i], w->nodes, w->apart, i, kind);
            w->gained[i] = (uint8_t)(w->apart[i] && !was);
            lost |= was && !w->apart[i];
        }
    }

    /* Make a node a neighbour of another; where `most` slots are taken, the farthest that is not apart has none. */
    PENNON_ALWAYS void link_back(
        const growth *g, grow_worker *w, const links *l, int64_t slot, int64_t most, int32_t node, float its,
        const int kind
    ) {
        int32_t *nodes = l->nodes + slot * l->most;
        float *far = l->far + slot * l->most;
        uint8_t *apart = l->apart + slot * l->most;
        int64_t count = l->counts[slot], place = count, drop, i;
        while (place > 0 && far[place - 1] > its) place--;
        if (count < most) {
            memmove(nodes + place + 1, nodes + place, (count - place) * sizeof(*nodes));
            memmove(far + place + 1, far + place, (count - place) * sizeof(*far));
            nodes[place] = node; far[place] = its; l->counts[slot]++;
            return;
        }
        if (!apart[0])
            for (i = 0; i < count; i++) apart[i] = (uint8_t)is_apart(g, nodes[i], far[i], nodes, apart, i, kind);
        for (i = 0; i <= count; i++) {
            int64_t from = i - (i > place);
            w->nodes[i] = i == place ? node : nodes[from];
            w->far[i] = i == place ? its : far[from];
            w->apart[i] = i == place ? (uint8_t)is_apart(g, node, its, nodes, apart, place, kind) : apart[from];
        }
        if (w->apart[place]) part_again(g, w, place, count + 1, kind);
        for (drop = count; drop > 0 && w->apart[drop]; drop--);
        if (w->apart[drop]) drop = count;
        for (i = 0; i < count; i++) {
            int64_t from = i + (i >= drop);
            nodes[i] = w->nodes[from]; far[i] = w->far[from]; apart[i] = w->apart[from];
        }
    }

    PENNON_ALWAYS void find_all(growth *g, grow_worker *w, const int kind) {
        for (int64_t node; (node = __atomic_fetch_add(&g->next, 1, __ATOMIC_RELAXED)) < g->last;)
            if (g->spare[node] >= 0) find_one(g, w, node, kind);
    }

    /* Link back with the nodes of the block those whose turn is this worker's, each in order. */
    PENNON_ALWAYS void link_all(growth *g, grow_worker *w, const int kind) {
        int levels = g->levels[0] + 1, level;
        int64_t node, i, mine = w - g->each;
        for (node = g->first; node < g->last; node++)
            for (level = 0; level <= g->levels[node] && g->spare[node] >= 0; level++) {
                int64_t place = (node - g->first) * levels + level;
                const links *l = links_of(g, level);
                const found_node *wanted = g->wanted + place * g->m;
                for (i = 0; i < g->wanted_counts[place]; i++) {
                    uint32_t other = wanted[i].node;
                    if (other % g->workers == mine)
                        link_back(g, w, l, slot_of(g, other, level), l->most - (level ? 0 : g->spare[other]),
                                  (int32_t)node, wanted[i].far, kind);
                }
            }
    }

    #define PENNON_STEP(NAME, ALL) \
        static void NAME(growth *g, grow_worker *w) { \
            if (g->kind == SQUARES) ALL(g, w, SQUARES); \
            else if (g->kind == PRODUCTS) ALL(g, w, PRODUCTS); \
            else ALL(g, w, CODE_SQUARES); \
        }
    PENNON_STEP(find_plain, find_all)
    PENNON_STEP(link_plain, link_all)
    #if defined(__x86_64__) || defined(__i386__)
    #define PENNON_V3 __attribute__((target("avx2,fma")))
    #define PENNON_V4 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,prefer-vector-width=512")))
    PENNON_V3 PENNON_STEP(find_v3, find_all)
    PENNON_V3 PENNON_STEP(link_v3, link_all)
    PENNON_V4 PENNON_STEP(find_v4, find_all)
    PENNON_V4 PENNON_STEP(link_v4, link_all)
    #endif

    typedef struct { void (*find)(growth *, grow_worker *); void (*link)(growth *, grow_worker *); } grow_steps;

    static grow_steps choose_steps(void) {
        grow_steps steps = {find_plain, link_plain};
        #if defined(__x86_64__) || defined(__i386__)
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
            steps = (grow_steps){find_v4, link_v4};
        else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) steps = (grow_steps){find_v3, link_v3};
        #endif
        return steps;
    }

    static void free_growth(growth *g) {
        int64_t i;
        for (i = 0; g->each && i < g->workers; i++) {
            grow_worker *w = g->each + i;
            free(w->seen); free(w->beam); free(w->fresh); free(w->far); free(w->apart);
        }
        free(g->each); free(g->wanted); free(g->wanted_counts);
        free(g->base.apart); free(g->upper.apart);
        memset(g, 0, sizeof(*g));
    }

    /* Return 0, or 1 without memory. */
    static int begin_growth(growth *g, int64_t slots) {
        int64_t places = BLOCK * ((int64_t)g->levels[0] + 1), i;
        int fails;
        g->first = g->last = 1;
        g->wanted = malloc(places * g->m * sizeof(found_node));
        g->wanted_counts = malloc(places * sizeof(int32_t));
        g->base.apart = calloc(g->count, g->base.most);
        g->upper.apart = calloc(slots, g->upper.most);
        g->each = calloc(g->workers, sizeof(grow_worker));
        fails = !g->wanted || !g->wanted_counts || !g->base.apart || !g->upper.apart || !g->each;
        for (i = 0; !fails && i < g->workers; i++) {
            grow_worker *w = g->each + i;
            w->seen = calloc(g->count, sizeof(*w->seen));
            w->beam = malloc(2 * g->wide * sizeof(found_node));
            w->some = w->beam + g->wide;
            w->fresh = w->nodes = malloc((g->base.most + 1) * sizeof(int32_t));
            w->far = malloc((g->base.most + 1) * sizeof(float));
            w->apart = malloc(2 * (g->base.most + 1));
            w->gained = w->apart + g->base.most + 1;
            fails = !w->seen || !w->beam || !w->fresh || !w->far || !w->apart;
        }
        if (fails) free_growth(g);
        return fails;
    }
    """
    enum:
        BLOCK
    ctypedef struct links:
        int32_t *counts
        int32_t *nodes
        float *far
        int64_t most
    ctypedef struct grow_worker:
        pass
    ctypedef struct growth:
        int kind
        const uint8_t *rows
        int64_t count, row_bytes, m, wide, first, last, next, workers
        links base, upper
        const int64_t *starts
        const uint8_t *levels
        const int32_t *spare
        grow_worker *each
    ctypedef struct grow_steps:
        void (*find)(growth *, grow_worker *) noexcept nogil
        void (*link)(growth *, grow_worker *) noexcept nogil
    grow_steps choose_steps() noexcept nogil
    int begin_growth(growth *, int64_t slots) noexcept nogil
    void free_growth(growth *) noexcept nogil

cdef grow_steps STEPS = choose_steps()


cdef class Growth:
    """A graph that grows; see the stub."""

    cdef growth _growth
    cdef object _arrays  # which hold the memory

    def __cinit__(
        self, int kind, const uint8_t[:, ::1] rows, const int32_t[::1] spare, const uint8_t[::1] levels,
        const int64_t[::1] starts, int64_t m, int64_t wide, int32_t[::1] counts, int32_t[:, ::1] nodes, float[:, ::1] far,
        int32_t[::1] upper_counts, int32_t[:, ::1] upper_nodes, float[:, ::1] upper_far, int64_t workers
    ):
        cdef int64_t count = rows.shape[0], slots = upper_counts.shape[0], i
        cdef bint fits = 1
        cdef growth *g = &self._growth
        if (
            not 0 <= kind < KINDS_APART or count < 1 or count >> 31 or rows.shape[1] < 1 or rows.shape[1] % LINE
            or (kind == CODE_SQUARES and rows.shape[1] > MOST_BYTES)
            or m < 1 or m >> 24 or wide < 1 or wide >> 24 or workers < 1 or workers >> 16
        ):
            raise ValueError("rows of a graph are padded to 64 bytes, and there is one at least")
        if (
            levels.shape[0] != count or starts.shape[0] != count or counts.shape[0] != count
            or spare.shape[0] != count
            or nodes.shape[0] != count or far.shape[0] != count or slots < 1
            or upper_nodes.shape[0] != slots or upper_far.shape[0] != slots
            or nodes.shape[1] != 2 * m or far.shape[1] != 2 * m
            or upper_nodes.shape[1] != m or upper_far.shape[1] != m
        ):
            raise ValueError("the parts of a graph do not fit")
        for i in range(count):
            fits = fits and levels[i] <= levels[0] and 0 <= starts[i] and starts[i] + levels[i] <= slots
            fits = fits and spare[i] <= m and (spare[i] >= 0 or (i and not levels[i]))
        if not fits:
            raise ValueError("a node of a graph is above the first one, or has no place, or keeps too many slots")
        counts[:] = 0
        upper_counts[:] = 0
        self._arrays = rows, spare, levels, starts, counts, nodes, far, upper_counts, upper_nodes, upper_far
        g.kind, g.rows, g.count, g.row_bytes = kind, &rows[0, 0], count, rows.shape[1]
        g.m, g.wide, g.workers, g.starts, g.levels = m, wide, workers, &starts[0], &levels[0]
        g.spare = &spare[0]
        g.base.counts, g.base.nodes, g.base.far, g.base.most = &counts[0], &nodes[0, 0], &far[0, 0], 2 * m
        g.upper.counts, g.upper.nodes, g.upper.most = &upper_counts[0], &upper_nodes[0, 0], m
        g.upper.far = &upper_far[0, 0]
        if begin_growth(g, slots):
            raise MemoryError("no memory for a graph")

    def __dealloc__(self):
        free_growth(&self._growth)

    def next_block(self):
        """Begin with the nodes that are linked next; see the stub."""
        cdef growth *g = &self._growth
        g.first = g.next = g.last
        g.last = min(g.count, g.first + min(<int64_t> BLOCK, max(g.first >> 3, <int64_t> 1)))
        return g.last - g.first

    def find(self, int64_t worker):
        """Find what nodes of the block are near to; see the stub."""
        self._step(STEPS.find, worker)

    def link(self, int64_t worker):
        """Link nodes of the graph with those of the block; see the stub."""
        self._step(STEPS.link, worker)

    cdef _step(self, void (*step)(growth *, grow_worker *) noexcept nogil, int64_t worker):
        if not 0 <= worker < self._growth.workers:
            raise ValueError("there is no such worker")
        with nogil:
            step(&self._growth, self._growth.each + worker)
