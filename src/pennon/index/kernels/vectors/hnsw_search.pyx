"""Walks over graphs of vectors; see the stub."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from pennon.index.kernels.vectors.hnsw_nodes cimport Node, ask_for, drop_top, push
from pennon.index.kernels.vectors.vector_kinds cimport apart_of, some_apart
from pennon.index.kernels.vectors.vector_spaces cimport Space, space_of

from pennon.errors import FormatError

cdef enum:
    STEP = 64  # neighbours that are compared together
    MARKS = 255


cdef inline float _apart(const Space *space, int64_t row) noexcept nogil:
    return apart_of(
        space.kind, space.rows + row * space.row_bytes, space.query, space.width
    )


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
    const uint32_t *neighbours, int64_t count, uint8_t *visited, uint8_t mark, uint32_t *unseen
) noexcept nogil:
    """Take those of `STEP` neighbours that were not visited, which they are now; return how many these are."""
    cdef int64_t at, taken = 0
    for at in range(count):  # without a branch that no processor foresees
        unseen[taken] = neighbours[at]
        taken += visited[neighbours[at]] != mark
        visited[neighbours[at]] = mark
    return taken


cdef struct Graph:
    const uint32_t *nodes
    const int64_t *levels
    int64_t tops  # levels above the first
    const int64_t *ends
    const uint32_t *neighbours
    uint32_t entry


cdef struct Walk:
    uint8_t *visited  # by node: the mark of the last walk that was there
    uint8_t mark
    Node *candidates
    Node *results
    int64_t most


def walk_graph(
    int kind, const uint8_t[:, ::1] rows, const uint8_t[:, ::1] queries,
    const uint32_t[::1] nodes, const int64_t[::1] levels,
    const int64_t[::1] ends, const uint32_t[::1] neighbours,
    uint32_t entry, const uint8_t[::1] passing,
    uint32_t[:, ::1] found, float[:, ::1] distances, int64_t[::1] counts,
):
    """Walk a graph to the nodes near each of some queries; see the stub."""
    cdef int64_t asked = queries.shape[0], query, at
    cdef Space space
    cdef Graph graph
    cdef Walk walk
    cdef const uint8_t *masked = NULL
    walk.most, walk.mark = found.shape[1], 0
    if found.shape[0] != asked or counts.shape[0] != asked or distances.shape[0] != asked or (
        distances.shape[1] != walk.most or walk.most < 1
    ):
        raise ValueError("a walk has a place for each node that it may find")
    if not asked:
        return
    space = space_of(kind, rows, queries[0])
    if ends.shape[0] != nodes.shape[0] + 1 or (passing is not None and passing.shape[0] != space.count):
        raise ValueError("a walk has a place for each node that it may find")
    _check_graph(space.count, nodes, levels, ends, neighbours, entry)
    graph.nodes, graph.levels, graph.ends, graph.entry = &nodes[0], &levels[0], &ends[0], entry
    graph.tops, graph.neighbours = levels.shape[0] - 2, &neighbours[0] if neighbours.shape[0] else NULL
    if passing is not None:
        masked = &passing[0]
    walk.visited = <uint8_t *> malloc(space.count)
    walk.candidates = <Node *> malloc((space.count + 1) * sizeof(Node))
    walk.results = <Node *> malloc((walk.most + 1) * sizeof(Node))
    try:
        if walk.visited == NULL or walk.candidates == NULL or walk.results == NULL:
            raise MemoryError
        with nogil:
            for query in range(asked):
                walk.mark = <uint8_t> (query % MARKS + 1)
                if walk.mark == 1:
                    memset(walk.visited, 0, space.count)
                space.query = &queries[query, 0]
                counts[query] = _walk(&space, &graph, masked, &walk)
                for at in range(counts[query]):
                    found[query, at] = walk.results[at].number
                    distances[query, at] = walk.results[at].distance
    finally:
        free(walk.visited)
        free(walk.candidates)
        free(walk.results)


cdef int64_t _walk(const Space *space, const Graph *graph, const uint8_t *passing, Walk *walk) noexcept nogil:
    """Walk a graph to the nodes near a query, which are the results; return how many these are."""
    cdef int64_t count = 0, waiting = 1, level, row, at, near, some, most = walk.most
    cdef const int64_t *ends = graph.ends
    cdef const uint32_t *neighbours = graph.neighbours
    cdef Node *candidates = walk.candidates
    cdef Node *results = walk.results
    cdef uint32_t[STEP] unseen
    cdef float[STEP] far
    cdef Node current, other
    cdef bint moved
    current.number = graph.entry
    current.distance = _apart(space, graph.entry)
    for level in range(graph.tops, 0, -1):
        moved = True
        while moved:
            moved = False
            row = _row_of(graph.nodes, graph.levels[level], graph.levels[level + 1], current.number)
            if row < 0:
                break
            near = ends[row]
            while near < ends[row + 1]:
                some = _all_near(space, neighbours + near, ends[row + 1] - near, far)
                for at in range(some):
                    if far[at] < current.distance:
                        current.number, current.distance = neighbours[near + at], far[at]
                        moved = True
                near += some
    walk.visited[current.number] = walk.mark
    candidates[0] = current
    if passing == NULL or passing[current.number]:
        results[0] = current
        count = 1
    while waiting:
        current = candidates[0]
        if count == most and current.distance > results[0].distance:
            break
        drop_top(candidates, waiting, True)
        waiting -= 1
        near = ends[current.number]
        while near < ends[current.number + 1]:
            some = min(ends[current.number + 1] - near, <int64_t> STEP)
            at = _unseen(neighbours + near, some, walk.visited, walk.mark, unseen)
            near += some
            some = _all_near(space, unseen, at, far)
            for at in range(some):
                other.number, other.distance = unseen[at], far[at]
                if count == most and not other.distance <= results[0].distance:
                    continue
                push(candidates, waiting, other, True)
                waiting += 1
                ask_for(neighbours + ends[other.number])  # it is likely to be the current one soon
                if passing != NULL and not passing[other.number]:
                    continue
                if count < most:
                    push(results, count, other, False)
                    count += 1
                elif other.distance < results[0].distance:
                    drop_top(results, count, False)
                    push(results, count - 1, other, False)
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
    cdef uint32_t farthest = 0  # of all, which takes no branch for each
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
                farthest = max(farthest, neighbours[at])
            is_right = is_right and farthest < count
    if not is_right:
        raise FormatError("the graph of a partition names nodes that are not there")
