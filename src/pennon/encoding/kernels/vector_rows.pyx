"""Distances of vectors that lie row by row, and walks over graphs of them; see the stub."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from pennon.errors import FormatError

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) \
        && __GNUC__ >= 12 && !defined(__SANITIZE_ADDRESS__)
    #define CLONES __attribute__((target_clones("default", "arch=x86-64-v3")))
    #else
    #define CLONES
    #endif
    #define LANES 32
    #define INLINED static inline __attribute__((always_inline))

    #define SUM_OF(NAME, VALUE, QUERY, SUM, TERM)                                              \
        INLINED SUM NAME(const VALUE *row, const QUERY *query, int64_t width) {                \
            SUM sums[LANES] = {0}, sum = 0;                                                    \
            int64_t at = 0;                                                                    \
            for (; at + LANES <= width; at += LANES)                                           \
                for (int lane = 0; lane < LANES; lane++) {                                     \
                    SUM a = row[at + lane], b = query[at + lane];                              \
                    sums[lane] += TERM;                                                        \
                }                                                                              \
            for (int half = LANES / 2; half; half /= 2)                                        \
                for (int lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];       \
            sum = sums[0];                                                                     \
            for (; at < width; at++) { SUM a = row[at], b = query[at]; sum += TERM; }          \
            return sum;                                                                        \
        }

    SUM_OF(l2_f32, float, float, float, (a - b) * (a - b))
    SUM_OF(dot_f32, float, float, float, a * b)
    SUM_OF(l2_f64, double, double, double, (a - b) * (a - b))
    SUM_OF(dot_f64, double, double, double, a * b)
    SUM_OF(dot_u8, uint8_t, float, float, a * b)

    INLINED int64_t l2_u8(const uint8_t *row, const uint8_t *query, int64_t width) {
        int64_t sum = 0, at = 0;
        while (at < width) { /* no more than 32768 squares go into 32 bits */
            int64_t end = width - at > 32768 ? at + 32768 : width;
            int sums[LANES] = {0};
            for (; at + LANES <= end; at += LANES)
                for (int lane = 0; lane < LANES; lane++) {
                    int apart = row[at + lane] - query[at + lane];
                    sums[lane] += apart * apart;
                }
            for (; at < end; at++) sums[0] += (row[at] - query[at]) * (row[at] - query[at]);
            for (int lane = 0; lane < LANES; lane++) sum += sums[lane];
        }
        return sum;
    }

    INLINED int64_t bits_apart(const uint8_t *row, const uint8_t *query, int64_t width) {
        int64_t sum = 0, at = 0;
        for (; at + 8 <= width; at += 8) {
            uint64_t a, b;
            memcpy(&a, row + at, 8);
            memcpy(&b, query + at, 8);
            sum += __builtin_popcountll(a ^ b);
        }
        for (; at < width; at++) sum += __builtin_popcount(row[at] ^ query[at]);
        return sum;
    }

    INLINED float looked_up_row(const uint8_t *row, const float *tables, int64_t width) {
        float sum = 0;
        for (int64_t at = 0; at < width; at++) sum += tables[at * 256 + row[at]];
        return sum;
    }

    INLINED float apart(int kind, const uint8_t *row, const void *query, int64_t width) {
        switch (kind) {
        case 0: return l2_f32((const float *)row, (const float *)query, width);
        case 1: return -dot_f32((const float *)row, (const float *)query, width);
        case 2: return (float)l2_f64((const double *)row, (const double *)query, width);
        case 3: return (float)-dot_f64((const double *)row, (const double *)query, width);
        case 4: return (float)l2_u8(row, (const uint8_t *)query, width);
        case 5: return -dot_u8(row, (const float *)query, width);
        case 6: return (float)bits_apart(row, (const uint8_t *)query, width);
        default: return looked_up_row(row, (const float *)query, width);
        }
    }

    CLONES static float apart_of(int kind, const uint8_t *row, const void *query, int64_t width) {
        return apart(kind, row, query, width);
    }

    #define ROWS(KIND)                                                                         \
        case KIND:                                                                             \
            for (int64_t at = 0; at < count; at++)                                             \
                out[at] = apart(KIND, rows + at * row_bytes, query, width);                    \
            break;

    CLONES static void all_apart(
        int kind, const uint8_t *rows, int64_t row_bytes, int64_t count, const void *query, int64_t width,
        float *out
    ) {
        switch (kind) { ROWS(0) ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6) default: ROWS(7) }
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

    CLONES static void some_apart(
        int kind, const uint8_t *rows, int64_t row_bytes, const uint32_t *numbers, int64_t count,
        const void *query, int64_t width, float *out
    ) {
        for (int64_t at = 0; at < count && at < AHEAD; at++) ask_ahead(rows + numbers[at] * row_bytes, row_bytes);
        switch (kind) { SOME(0) SOME(1) SOME(2) SOME(3) SOME(4) SOME(5) SOME(6) default: SOME(7) }
    }
    """
    float apart_of(int kind, const uint8_t *row, const void *query, int64_t width) noexcept nogil
    void all_apart(
        int kind, const uint8_t *rows, int64_t row_bytes, int64_t count, const void *query, int64_t width,
        float *out
    ) noexcept nogil
    void some_apart(
        int kind, const uint8_t *rows, int64_t row_bytes, const uint32_t *numbers, int64_t count,
        const void *query, int64_t width, float *out
    ) noexcept nogil

cdef enum:
    KINDS = 8
    STEP = 64  # neighbours that are compared together
    BLOCK_BYTES = 16384

cdef int[KINDS] ROW_BYTES  # of a value
cdef int[KINDS] QUERY_BYTES  # of what stands for a value in the query
ROW_BYTES[:] = [4, 4, 8, 8, 1, 1, 1, 1]
QUERY_BYTES[:] = [4, 4, 8, 8, 1, 4, 1, 1024]


cdef struct Space:
    int kind
    const uint8_t *rows
    const uint8_t *query
    int64_t width
    int64_t row_bytes
    int64_t count


cdef struct Node:
    float distance
    uint32_t number


cdef Space _space(
    int kind, const uint8_t[:, ::1] rows, const uint8_t[::1] query
) except *:
    cdef Space made
    if kind < 0 or kind >= KINDS or rows.shape[1] % ROW_BYTES[kind]:
        raise ValueError("rows of vectors are whole values of a kind that is known")
    made.kind = kind
    made.row_bytes = rows.shape[1]
    made.width = made.row_bytes // ROW_BYTES[kind]
    made.count = rows.shape[0]
    if query.shape[0] != made.width * QUERY_BYTES[kind] or not made.width:
        raise ValueError("a query has as many values as the vectors")
    made.rows = &rows[0, 0] if made.count else NULL
    made.query = &query[0]
    return made


cdef inline float _apart(const Space *space, int64_t row) noexcept nogil:
    return apart_of(
        space.kind, space.rows + row * space.row_bytes, space.query, space.width
    )


def row_distances(
    int kind, const uint8_t[:, ::1] rows, const uint8_t[:, ::1] queries, float[:, ::1] out
):
    """Put how far each row is from each query into ``out``; see the stub."""
    cdef Space space
    cdef int64_t asked = queries.shape[0], start = 0, block, size, at
    if out.shape[0] != asked or out.shape[1] != rows.shape[0]:
        raise ValueError("each row has a distance from each query")
    if not asked:
        return
    space = _space(kind, rows, queries[0])
    if not space.count:
        return
    block = max(BLOCK_BYTES // space.row_bytes, <int64_t> 8)
    with nogil:
        while start < space.count:
            size = min(block, space.count - start)
            for at in range(asked):  # which read the same rows
                all_apart(
                    kind, space.rows + start * space.row_bytes, space.row_bytes, size,
                    &queries[at, 0], space.width, &out[at, start],
                )
            start += size


def chosen_distances(
    int kind, const uint8_t[:, ::1] rows, const uint8_t[::1] query,
    const int64_t[::1] chosen, float[::1] out,
):
    """Put how far some rows are from a query into ``out``; see the stub."""
    cdef Space space = _space(kind, rows, query)
    cdef int64_t at
    cdef bint leaves = False
    if out.shape[0] != chosen.shape[0]:
        raise ValueError("each row has a distance")
    with nogil:
        for at in range(chosen.shape[0]):
            if chosen[at] < 0 or chosen[at] >= space.count:
                leaves = True
                break
            out[at] = _apart(&space, chosen[at])
    if leaves:
        raise ValueError("rows that are chosen are there")


# --- graphs ---------------------------------------------------------------------------------------


cdef inline bint _is_nearer(Node a, Node b) noexcept nogil:
    return a.distance < b.distance or (a.distance == b.distance and a.number < b.number)


cdef void _push(Node *heap, int64_t count, Node node, bint nearest_first) noexcept nogil:
    """Put a node into a heap of ``count`` nodes."""
    cdef int64_t at = count, above
    while at:
        above = (at - 1) // 2
        if _is_nearer(node, heap[above]) != nearest_first:
            break
        heap[at] = heap[above]
        at = above
    heap[at] = node


cdef void _drop_top(Node *heap, int64_t count, bint nearest_first) noexcept nogil:
    """Take the top off a heap of ``count`` nodes."""
    cdef Node node = heap[count - 1]
    cdef int64_t last = count - 1, at = 0, child = 1
    while child < last:
        if child + 1 < last and _is_nearer(heap[child + 1], heap[child]) == nearest_first:
            child += 1
        if _is_nearer(heap[child], node) != nearest_first:
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = node


cdef int64_t _row_of(
    const uint32_t *nodes, int64_t start, int64_t end, uint32_t number
) noexcept nogil:
    """Return the row of a node on a level whose nodes ascend, -1 if it is not there."""
    cdef int64_t low = start, high = end, middle
    while low < high:
        middle = (low + high) // 2
        if nodes[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low if low < end and nodes[low] == number else -1


cdef inline int64_t _all_near(
    const Space *space, const uint32_t *neighbours, int64_t count, float *far
) noexcept nogil:
    """Say how far the first neighbours are from the query; return how many these are."""
    count = min(count, <int64_t> STEP)
    some_apart(
        space.kind, space.rows, space.row_bytes, neighbours, count, space.query, space.width, far
    )
    return count


cdef inline int64_t _unseen(
    const uint32_t *neighbours, int64_t count, uint8_t *visited, uint32_t *unseen
) noexcept nogil:
    """Take those of `STEP` neighbours that were not visited, which they are now; return how many these are."""
    cdef int64_t at, taken = 0
    for at in range(count):  # without a branch that no processor foresees
        unseen[taken] = neighbours[at]
        taken += 1 - visited[neighbours[at]]
        visited[neighbours[at]] = 1
    return taken


def walk_graph(
    int kind, const uint8_t[:, ::1] rows, const uint8_t[::1] query,
    const uint32_t[::1] nodes, const int64_t[::1] levels,
    const int64_t[::1] ends, const uint32_t[::1] neighbours,
    uint32_t entry, const uint8_t[::1] passing,
    uint32_t[::1] found, float[::1] distances,
):
    """Walk a graph to the nodes near a query; see the stub."""
    cdef Space space = _space(kind, rows, query)
    cdef int64_t most = found.shape[0], count = 0, waiting = 0, level, row, at, near, some, total
    cdef uint32_t[STEP] unseen
    cdef float[STEP] far
    cdef Node current, other
    cdef bint is_masked = passing is not None, moved = True
    cdef uint8_t *visited = NULL
    cdef Node *candidates = NULL
    cdef Node *results = NULL
    total = nodes.shape[0]
    if (
        distances.shape[0] != most or most < 1 or ends.shape[0] != total + 1
        or (is_masked and passing.shape[0] != space.count)
    ):
        raise ValueError("a walk has a place for each node that it may find")
    _check_graph(space.count, nodes, levels, ends, neighbours, entry)
    visited = <uint8_t *> malloc(space.count)
    candidates = <Node *> malloc((space.count + 1) * sizeof(Node))
    results = <Node *> malloc((most + 1) * sizeof(Node))
    if visited == NULL or candidates == NULL or results == NULL:
        free(visited)
        free(candidates)
        free(results)
        raise MemoryError
    with nogil:
        memset(visited, 0, space.count)
        current.number = entry
        current.distance = _apart(&space, entry)
        for level in range(levels.shape[0] - 2, 0, -1):
            moved = True
            while moved:
                moved = False
                row = _row_of(&nodes[0], levels[level], levels[level + 1], current.number)
                if row < 0:
                    break
                near = ends[row]
                while near < ends[row + 1]:
                    some = _all_near(&space, &neighbours[near], ends[row + 1] - near, far)
                    for at in range(some):
                        if far[at] < current.distance:
                            current.number, current.distance = neighbours[near + at], far[at]
                            moved = True
                    near += some
        visited[current.number] = 1
        candidates[0] = current
        waiting = 1
        if not (is_masked and not passing[current.number]):
            results[0] = current
            count = 1
        while waiting:
            current = candidates[0]
            if count == most and current.distance > results[0].distance:
                break
            _drop_top(candidates, waiting, True)
            waiting -= 1
            near = ends[current.number]
            while near < ends[current.number + 1]:
                some = min(ends[current.number + 1] - near, <int64_t> STEP)
                at = _unseen(&neighbours[near], some, visited, unseen)
                near += some
                some = _all_near(&space, unseen, at, far)
                for at in range(some):
                    other.number, other.distance = unseen[at], far[at]
                    if count == most and not other.distance <= results[0].distance:
                        continue
                    _push(candidates, waiting, other, True)
                    waiting += 1
                    if is_masked and not passing[other.number]:
                        continue
                    if count < most:
                        _push(results, count, other, False)
                        count += 1
                    elif other.distance < results[0].distance:
                        _drop_top(results, count, False)
                        _push(results, count - 1, other, False)
        for at in range(count):
            found[at] = results[at].number
            distances[at] = results[at].distance
    free(visited)
    free(candidates)
    free(results)
    return count


cdef int _check_graph(
    int64_t count, const uint32_t[::1] nodes, const int64_t[::1] levels,
    const int64_t[::1] ends, const uint32_t[::1] neighbours, uint32_t entry,
) except -1:
    """Raise ValueError for arrays that do not fit; what they hold was checked by `check_graph`."""
    if (
        levels.shape[0] < 2 or levels[0] != 0 or levels[levels.shape[0] - 1] != nodes.shape[0]
        or levels[1] != count or entry >= count or ends[nodes.shape[0]] != neighbours.shape[0]
    ):
        raise ValueError("a graph has levels of nodes, of which the first has all")
    return 0


def check_graph(
    int64_t count, const uint32_t[::1] nodes, const int64_t[::1] levels,
    const int64_t[::1] ends, const uint32_t[::1] neighbours, uint32_t entry,
):
    """Raise FormatError unless a graph may be walked; see the stub."""
    cdef int64_t level, row, at, total = nodes.shape[0]
    cdef bint is_right = (
        levels.shape[0] >= 2 and levels[0] == 0 and levels[levels.shape[0] - 1] == total
        and levels[1] == count and entry < count and ends.shape[0] == total + 1
    )
    if is_right:
        with nogil:
            is_right = ends[0] == 0 and ends[total] == neighbours.shape[0]
            for level in range(levels.shape[0] - 1):
                is_right = is_right and levels[level] <= levels[level + 1]
            for row in range(total if is_right else 0):
                is_right = is_right and ends[row] <= ends[row + 1] and nodes[row] < count
            for row in range(count if is_right else 0):
                is_right = is_right and nodes[row] == row
            for level in range(1, levels.shape[0] - 1 if is_right else 1):
                for row in range(levels[level] + 1, levels[level + 1]):
                    is_right = is_right and nodes[row - 1] < nodes[row]
            for at in range(neighbours.shape[0] if is_right else 0):
                is_right = is_right and neighbours[at] < count
    if not is_right:
        raise FormatError("the graph of a partition names nodes that are not there")
