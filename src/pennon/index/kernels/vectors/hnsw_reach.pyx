# cython: language_level=3
"""Every node of a graph can be reached: equal rows are linked with one another, and lost nodes again; see the stub."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from pennon.index.kernels.vectors.hnsw_rows cimport CODE_SQUARES, KINDS_APART, LINE, MOST_BYTES

cdef extern from *:
    """
    enum { ROUNDS = 8 };  /* over the nodes from which no way back is known */

    /* The lowest level of a graph: `most` slots for each node. */
    typedef struct {
        int kind; const uint8_t *rows; int64_t count, row_bytes, most;
        int32_t *counts, *nodes; float *far;
    } level_graph;

    static float apart_in(const level_graph *g, int64_t a, int64_t b) {
        const uint8_t *x = g->rows + a * g->row_bytes, *y = g->rows + b * g->row_bytes;
        if (g->kind == SQUARES) return far_between(x, y, g->row_bytes, SQUARES);
        if (g->kind == PRODUCTS) return far_between(x, y, g->row_bytes, PRODUCTS);
        return far_between(x, y, g->row_bytes, CODE_SQUARES);
    }

    /* Put a link where it belongs, nearest first; there is a slot for it. */
    static void add_link(level_graph *g, int64_t from, int64_t to, float its) {
        int32_t *nodes = g->nodes + from * g->most;
        float *far = g->far + from * g->most;
        int64_t place = g->counts[from]++;
        for (; place > 0 && far[place - 1] > its; place--) { nodes[place] = nodes[place - 1]; far[place] = far[place - 1]; }
        nodes[place] = (int32_t)to; far[place] = its;
    }

    static void drop_link(level_graph *g, int64_t from, int64_t place) {
        int64_t after = --g->counts[from] - place;
        int32_t *nodes = g->nodes + from * g->most + place;
        float *far = g->far + from * g->most + place;
        memmove(nodes, nodes + 1, after * sizeof(*nodes));
        memmove(far, far + 1, after * sizeof(*far));
    }

    static int is_linked(const level_graph *g, int64_t from, int64_t to) {
        for (int64_t i = 0; i < g->counts[from]; i++) if (g->nodes[from * g->most + i] == to) return 1;
        return 0;
    }

    /* --- rows that are equal -------------------------------------------------------------------- */

    /* Give numbers that are the same for all sums one bit pattern: the sign of 0 goes, and so does, for squares,
       what is so small that its square is 0. */
    static void level_out(float *values, int64_t count, int kind) {
        const float least = kind == SQUARES ? 0x1p-75f : 0;
        for (int64_t i = 0; i < count; i++)
            values[i] = values[i] <= least && values[i] >= -least ? 0 : values[i];
    }

    static uint64_t hash_of(const uint8_t *row, int64_t bytes) {
        uint64_t hash = 0, word;
        for (int64_t i = 0; i < bytes; i += sizeof(word)) {
            memcpy(&word, row + i, sizeof(word));
            hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
            hash ^= hash >> 32;
        }
        return hash;
    }

    /* Find the first row that is equal to each; return 1 without memory. */
    static int find_firsts(const uint8_t *rows, int64_t count, int64_t bytes, int32_t *firsts) {
        int64_t size = 16, node;
        int32_t *table;
        while (size < 2 * count) size *= 2;
        table = malloc(size * sizeof(*table));
        if (!table) return 1;
        memset(table, 0xFF, size * sizeof(*table));
        for (node = 0; node < count; node++) {
            const uint8_t *row = rows + node * bytes;
            uint64_t at = hash_of(row, bytes) & (uint64_t)(size - 1);
            while (table[at] >= 0 && memcmp(rows + table[at] * bytes, row, bytes)) at = (at + 1) & (uint64_t)(size - 1);
            if (table[at] < 0) table[at] = (int32_t)node;
            firsts[node] = table[at];
        }
        free(table);
        return 0;
    }

    /* Link the rows that are equal to one before as a tree of `few` branches, whose root is the first of them. Where
       other nodes are linked with the root, and it has no slot to be linked with them, one of the tree has.
       `members` are the equal rows of each first one, from its place in `ends` on. */
    static void plant_trees(level_graph *g, const int32_t *firsts, const int32_t *ends, const int32_t *members,
                            int32_t *next, int64_t few) {
        int64_t node, i, j;
        for (node = 0; node < g->count; node++) {
            const int32_t *own = members + ends[node];
            int64_t many = ends[node + 1] - ends[node], most = g->most - (many < few ? many : few);
            float its = many ? apart_in(g, node, node) : 0;
            while (many && g->counts[node] > most) drop_link(g, node, g->counts[node] - 1);
            for (j = 0; j < many; j++) {
                int64_t above = j < few ? node : own[j / few - 1];
                add_link(g, above, own[j], its);
                add_link(g, own[j], above, its);
            }
            next[node] = ends[node];
        }
        for (node = 0; node < g->count; node++)
            for (i = 0; i < g->counts[node] && firsts[node] == node; i++) {
                int32_t root = g->nodes[node * g->most + i];
                while (next[root] < ends[root + 1] && g->counts[members[next[root]]] == g->most) next[root]++;
                if (next[root] < ends[root + 1] && !is_linked(g, root, node))
                    add_link(g, members[next[root]], node, g->far[node * g->most + i]);
            }
    }

    /* Return 1 without memory. */
    static int join_equal_rows(level_graph *g, const int32_t *firsts, int64_t few) {
        int32_t *ends = calloc(2 * g->count + 1, sizeof(*ends)), *next = ends + g->count + 1, *members;
        int64_t node, copies = 0;
        members = malloc((g->count + 1) * sizeof(*members));
        if (ends && members) {
            for (node = 0; node < g->count; node++) if (firsts[node] != node) { ends[firsts[node] + 1]++; copies++; }
            for (node = 0; node < g->count; node++) { ends[node + 1] += ends[node]; next[node] = ends[node]; }
            for (node = 0; node < g->count; node++) if (firsts[node] != node) members[next[firsts[node]]++] = (int32_t)node;
            if (copies) plant_trees(g, firsts, ends, members, next, few);
        }
        free(members);
        free(ends);
        return !ends || !members;
    }

    /* --- ways to all nodes and back ------------------------------------------------------------- */

    /* A tree of links, by which each node is reached from the first.  A node has fewer branches than slots, so that
       one is there for a link back. */
    typedef struct {
        level_graph *g; int32_t *above, *branches, *order; int64_t reached; uint8_t *returns;
    } ways;

    static void reach(ways *w, int64_t node, int64_t above) {
        const level_graph *g = w->g;
        int64_t at = w->reached, i;
        w->above[node] = (int32_t)above;
        w->order[w->reached++] = (int32_t)node;
        for (; at < w->reached; at++) {
            int64_t from = w->order[at];
            for (i = 0; i < g->counts[from] && w->branches[from] < g->most - 1; i++) {
                int32_t to = g->nodes[from * g->most + i];
                if (w->above[to] >= 0) continue;
                w->above[to] = (int32_t)from;
                w->branches[from]++;
                w->order[w->reached++] = to;
            }
        }
    }

    /* Make a slot free: the farthest that is no branch. */
    static void make_room(ways *w, int64_t from) {
        level_graph *g = w->g;
        int64_t place = g->counts[from] - 1;
        if (g->counts[from] < g->most) return;
        while (place > 0 && w->above[g->nodes[from * g->most + place]] == from) place--;
        drop_link(g, from, place);
    }

    /* Return the nearest to a node of those that another is linked with and that were reached; -1: there is none.
       `branches`: only those that were reached by that link. */
    static int64_t nearest_to(const ways *w, int64_t node, int64_t from, int branches, float *its) {
        const level_graph *g = w->g;
        int64_t found = -1, i;
        for (i = 0; i < g->counts[from]; i++) {
            int32_t to = g->nodes[from * g->most + i];
            float far;
            if (w->above[to] < 0 || to == node || (branches && w->above[to] != from)) continue;
            far = apart_in(g, node, to);
            if (found < 0 || far < *its) { found = to; *its = far; }
        }
        return found;
    }

    /* Link a node that was not reached with one that was, near to it. */
    static void attach(ways *w, int64_t node) {
        level_graph *g = w->g;
        float its = 0, far = 0;
        int64_t from = nearest_to(w, node, node, 0, &its), next;
        if (from < 0) {
            from = 0;
            its = apart_in(g, node, 0);
            while ((next = nearest_to(w, node, from, 0, &far)) >= 0 && far < its) { from = next; its = far; }
        }
        while (w->branches[from] >= g->most - 1) from = nearest_to(w, node, from, 1, &far);
        make_room(w, from);
        add_link(g, from, node, apart_in(g, node, from));
        w->branches[from]++;
        reach(w, node, from);
    }

    static int returns_by_link(const ways *w, int64_t node) {
        const level_graph *g = w->g;
        for (int64_t i = 0; i < g->counts[node]; i++) if (w->returns[g->nodes[node * g->most + i]]) return 1;
        return 0;
    }

    /* See that the first node can be reached from each. */
    static void lead_back(ways *w) {
        int32_t *left = w->order;
        int64_t count = w->reached, round, at, kept;
        w->returns[0] = 1;
        for (round = 0; round < ROUNDS && count; round++) {
            for (at = kept = 0; at < count; at++) {
                int32_t node = left[at];
                if (w->returns[node] || (w->returns[node] = (uint8_t)returns_by_link(w, node))) continue;
                left[kept++] = node;
            }
            if (kept == count) break;
            count = kept;
        }
        for (at = 0; at < count; at++) {  /* nodes come after the one above them, which leads back then */
            int32_t node = left[at], above = w->above[node];
            if (!returns_by_link(w, node)) {
                make_room(w, node);
                add_link(w->g, node, above, apart_in(w->g, node, above));
            }
            w->returns[node] = 1;
        }
    }

    /* Return 1 without memory. */
    static int connect_all(level_graph *g) {
        ways w = {g, malloc(g->count * sizeof(int32_t)), calloc(g->count, sizeof(int32_t)),
                  malloc(g->count * sizeof(int32_t)), 0, calloc(g->count, 1)};
        int fails = !w.above || !w.branches || !w.order || !w.returns;
        if (!fails) {
            memset(w.above, 0xFF, g->count * sizeof(int32_t));
            reach(&w, 0, 0);
            for (int64_t node = 1; node < g->count; node++) if (w.above[node] < 0) attach(&w, node);
            lead_back(&w);
        }
        free(w.above); free(w.branches); free(w.order); free(w.returns);
        return fails;
    }
    """
    ctypedef struct level_graph:
        int kind
        const uint8_t *rows
        int64_t count, row_bytes, most
        int32_t *counts
        int32_t *nodes
        float *far
    void level_out(float *values, int64_t count, int kind) noexcept nogil
    int find_firsts(const uint8_t *rows, int64_t count, int64_t row_bytes, int32_t *firsts) noexcept nogil
    int join_equal_rows(level_graph *g, const int32_t *firsts, int64_t few) noexcept nogil
    int connect_all(level_graph *g) noexcept nogil


def first_equal_rows(int kind, uint8_t[:, ::1] rows, int32_t[::1] firsts):
    """Find the first row that is equal to each; see the stub."""
    cdef int64_t count = rows.shape[0], row_bytes = rows.shape[1]
    _check_rows(kind, rows, firsts.shape[0])
    cdef int fails
    with nogil:
        if kind != CODE_SQUARES:
            level_out(<float *> &rows[0, 0], count * row_bytes // 4, kind)
        fails = find_firsts(&rows[0, 0], count, row_bytes, &firsts[0])
    if fails:
        raise MemoryError("no memory for a graph")


def connect_graph(
    int kind, const uint8_t[:, ::1] rows, const int32_t[::1] firsts, int64_t few,
    int32_t[::1] counts, int32_t[:, ::1] nodes, float[:, ::1] far,
):
    """Link equal rows, and nodes that cannot be reached; see the stub."""
    cdef int64_t count = rows.shape[0], most = nodes.shape[1], node, at
    cdef bint fits = 1
    cdef level_graph g
    _check_rows(kind, rows, firsts.shape[0])
    if (
        counts.shape[0] != count or nodes.shape[0] != count or far.shape[0] != count or far.shape[1] != most
        or most < 2 or few < 1 or few >= most
    ):
        raise ValueError("the parts of a graph do not fit")
    for node in range(count):
        fits = fits and 0 <= firsts[node] <= node and firsts[firsts[node]] == firsts[node]
        fits = fits and 0 <= counts[node] <= most and (firsts[node] == node or not counts[node])
        for at in range(counts[node] if fits else 0):
            fits = fits and 0 <= nodes[node, at] < count
    if not fits:
        raise ValueError("a graph has links with nodes that are not there, or equal rows with links")
    g.kind, g.rows, g.count, g.row_bytes, g.most = kind, &rows[0, 0], count, rows.shape[1], most
    g.counts, g.nodes, g.far = &counts[0], &nodes[0, 0], &far[0, 0]
    cdef int fails
    with nogil:
        fails = join_equal_rows(&g, &firsts[0], few)
        if not fails:
            fails = connect_all(&g)
    if fails:
        raise MemoryError("no memory for a graph")


cdef int _check_rows(int kind, const uint8_t[:, ::1] rows, int64_t firsts) except -1:
    if (
        not 0 <= kind < KINDS_APART or rows.shape[0] < 1 or rows.shape[0] >> 31 or rows.shape[1] < 1
        or rows.shape[1] % LINE or (kind == CODE_SQUARES and rows.shape[1] > MOST_BYTES)
        or firsts != rows.shape[0]
    ):
        raise ValueError("rows of a graph are padded to 64 bytes, and there is one at least")
    return 0
