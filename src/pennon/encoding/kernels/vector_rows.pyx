"""Distances of vectors that lie row by row, and walks over graphs of them; see the stub."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from pennon.encoding.kernels.near_nodes cimport Node, drop_top, push
from pennon.encoding.kernels.near_squares cimport Cut, cut_size, free_cut, is_cut, keep_squares, make_cut
from pennon.encoding.kernels.nearest_heaps cimport Heaps, are_few, check_pairs, heaps_of, keep_some
from pennon.encoding.kernels.vector_kinds cimport all_apart, apart_of, some_apart

from pennon.errors import FormatError

cdef enum:
    KINDS = 8
    STEP = 64  # neighbours that are compared together
    BLOCK_BYTES = 16384
    SQUARES = 0
    TOGETHER = 16  # queries that are compared with the same rows
    MOST_ROWS = 1024

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
    cdef int64_t asked = queries.shape[0], start = 0, block, size
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
            all_apart(  # of all queries, which read the same rows
                kind, space.rows + start * space.row_bytes, size, &queries[0, 0], asked, space.width,
                &out[0, start], space.count,
            )
            start += size


def keep_rows(
    int kind, list parts, rows, passing, const int64_t[::1] ends, const int64_t[::1] numbers,
    const int64_t[::1] places, const uint8_t[:, ::1] queries, const float[::1] starts, float factor,
    float[:, ::1] best, uint64_t[:, ::1] best_rows, int64_t[::1] counts,
):
    """Put the nearest rows of partitions into heaps; see the stub."""
    cdef Heaps heaps = heaps_of(best, best_rows, counts)
    cdef int64_t count = len(parts), asked = queries.shape[0], query_bytes = queries.shape[1]
    cdef int64_t at, first = 0, block
    cdef const uint8_t[:, ::1] codes
    cdef const uint64_t[::1] ids
    cdef const uint8_t[::1] mask
    cdef Space space
    cdef Cut cut
    cdef bint has_cut, are_plain = kind == SQUARES and factor == 1
    cdef uint8_t *some
    cdef float *far
    check_pairs(count, numbers.shape[0], asked, best.shape[0], ends, numbers, places)
    if starts.shape[0] != asked or len(rows) != count or len(passing) != count:
        raise ValueError("a partition has numbers of rows, and a mask or None; and a query a start")
    if not numbers.shape[0]:
        return
    for at in range(asked if are_plain else 0):
        are_plain = are_plain and starts[at] == 0
    cut.rows, cut.queries, cut.far = NULL, NULL, NULL
    some = <uint8_t *> malloc(TOGETHER * query_bytes)
    far = <float *> malloc(TOGETHER * MOST_ROWS * sizeof(float))
    try:
        if some == NULL or far == NULL:
            raise MemoryError
        for at in range(count):
            codes, ids, mask = parts[at], rows[at], passing[at]
            space = _space(kind, codes, queries[0])
            if ids.shape[0] != space.count or (mask is not None and mask.shape[0] != space.count):
                raise ValueError("a partition has a number for each row")
            if space.count:
                block = min(max(BLOCK_BYTES // space.row_bytes, <int64_t> 8), <int64_t> MOST_ROWS)
                has_cut = are_plain and is_cut(space.count, space.width, ends[at] - first, &heaps)
                if has_cut:
                    make_cut(&cut, space.width)
                with nogil:
                    _keep_part(
                        &space, &ids[0], &mask[0] if mask is not None else NULL, block, &queries[0, 0], query_bytes,
                        &starts[0], factor, &numbers[first], &places[first], ends[at] - first, &heaps, some, far,
                        &cut if has_cut else NULL,
                    )
            first = ends[at]
    finally:
        free_cut(&cut)
        free(some)
        free(far)


cdef void _keep_part(
    const Space *space, const uint64_t *ids, const uint8_t *mask, int64_t block, const uint8_t *queries,
    int64_t query_bytes, const float *starts, float factor, const int64_t *numbers, const int64_t *places,
    int64_t pairs, Heaps *heaps, uint8_t *some, float *far, Cut *cut,
) noexcept nogil:
    """Put the nearest rows of a partition into heaps; ``cut``: room for rows that are cut to bytes, NULL: none is."""
    cdef Space part = space[0]
    cdef const uint8_t *passing
    cdef int64_t done = 0
    while done < space.count:
        part.rows = space.rows + done * space.row_bytes
        part.count = min(cut.most, space.count - done) if cut != NULL else space.count
        passing = mask + done if mask != NULL else NULL
        if cut == NULL or (passing != NULL and are_few(passing, part.count)) or not keep_squares(
            cut, <const float *> part.rows, part.count, part.width, ids + done, passing, <const float *> queries,
            numbers, places, pairs, heaps,
        ):
            _keep_rows(
                &part, ids + done, passing, block, queries, query_bytes, starts, factor, numbers, places, pairs, heaps,
                some, far,
            )
        done += part.count


cdef void _keep_rows(
    const Space *space, const uint64_t *ids, const uint8_t *mask, int64_t block, const uint8_t *queries,
    int64_t query_bytes, const float *starts, float factor, const int64_t *numbers, const int64_t *places,
    int64_t pairs, Heaps *heaps, uint8_t *some, float *far,
) noexcept nogil:
    """Put the nearest rows of a partition into the heaps of the queries that ask it."""
    cdef int64_t first = 0, together, start, size, n, row
    cdef float begin
    cdef const uint8_t *asked
    while first < pairs:
        together = min(pairs - first, <int64_t> TOGETHER)
        asked = queries + places[first] * query_bytes
        if together > 1:
            for n in range(together):
                memcpy(some + n * query_bytes, queries + places[first + n] * query_bytes, query_bytes)
            asked = some
        start = 0
        while start < space.count:
            size = min(block, space.count - start)
            if mask != NULL and are_few(mask + start, size):
                for row in range(together * size):
                    far[row] = INFINITY
                for row in range(size):
                    if mask[start + row]:
                        all_apart(
                            space.kind, space.rows + (start + row) * space.row_bytes, 1, asked, together, space.width,
                            far + row, size,
                        )
            else:
                all_apart(  # of all queries, which read the same rows
                    space.kind, space.rows + start * space.row_bytes, size, asked, together, space.width, far, size
                )
            for n in range(together):
                begin = starts[places[first + n]]
                if factor != 1 or begin != 0:
                    for row in range(n * size, (n + 1) * size):
                        far[row] = begin + factor * far[row]
                keep_some(
                    heaps, numbers[first + n], far + n * size, ids + start,
                    mask + start if mask != NULL else NULL, size,
                )
            start += size
        first += together


# --- graphs ---------------------------------------------------------------------------------------


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
            drop_top(candidates, waiting, True)
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
                    push(candidates, waiting, other, True)
                    waiting += 1
                    if is_masked and not passing[other.number]:
                        continue
                    if count < most:
                        push(results, count, other, False)
                        count += 1
                    elif other.distance < results[0].distance:
                        drop_top(results, count, False)
                        push(results, count - 1, other, False)
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
