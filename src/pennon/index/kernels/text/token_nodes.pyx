# cython: language_level=3
"""The nodes of a transducer of tokens, written.  See token_nodes.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset

from cpython.bytes cimport PyBytes_FromStringAndSize

cdef enum:
    INDEXED = 32


cdef struct Way:
    uint8_t byte
    int64_t target


cdef struct Open:
    int64_t ways  # where its ways begin among all
    uint64_t value
    uint8_t byte
    bint is_final


cdef struct Nodes:
    uint8_t* made
    int64_t size
    int64_t room
    int64_t base
    Way* ways
    int64_t way_count
    int64_t way_room


cdef inline int bytes_of(uint64_t number) noexcept nogil:
    cdef int found = 0
    while number:
        found += 1
        number >>= 8
    return found


cdef inline void put(Nodes* nodes, uint64_t number, int size) noexcept nogil:
    cdef int k
    for k in range(size):
        nodes.made[nodes.size] = <uint8_t>(number >> (8 * k))
        nodes.size += 1


cdef int64_t finish(Nodes* nodes, Open* node) noexcept nogil:
    """Write a node all of whose ways are known, the last ones; return its address, -1 without memory."""
    cdef int64_t count = nodes.way_count - node.ways, k, first = nodes.base + nodes.size, room
    cdef uint64_t most = 0
    cdef Way* ways = nodes.ways + node.ways
    cdef void* made
    cdef int wide, high
    if not count and node.is_final and not node.value:
        return 0
    for k in range(count):
        if ways[k].target and <uint64_t>(first - ways[k].target) > most:
            most = first - ways[k].target
    wide = max(bytes_of(most), 1)
    high = bytes_of(node.value) if node.is_final else 0
    room = nodes.room
    while room - nodes.size < (1 + high) * 8 + count * (high + wide + 1) + 260:
        room *= 2
    if room > nodes.room:
        made = realloc(nodes.made, room)
        if made == NULL:
            return -1
        nodes.made, nodes.room = <uint8_t*>made, room
    if node.is_final:
        put(nodes, node.value, high)
    for k in range(count * high):
        put(nodes, 0, 1)
    for k in range(count - 1, -1, -1):
        put(nodes, first - ways[k].target if ways[k].target else 0, wide)
    for k in range(count - 1, -1, -1):
        put(nodes, ways[k].byte, 1)
    if count > INDEXED:
        memset(nodes.made + nodes.size, 255, 256)
        for k in range(count):
            nodes.made[nodes.size + ways[k].byte] = <uint8_t>k
        nodes.size += 256
    put(nodes, wide << 4 | high, 1)
    if count == 0 or count > 63:
        put(nodes, 1 if count == 256 else count, 1)
        put(nodes, 0x40 if node.is_final else 0, 1)
    else:
        put(nodes, (0x40 if node.is_final else 0) | count, 1)
    nodes.way_count = node.ways
    return nodes.base + nodes.size - 1


cdef bint close(Nodes* nodes, Open* path, int64_t depth, int64_t end) noexcept nogil:
    """Write the nodes of a path that lie deeper than ``depth``; tell whether there is memory."""
    cdef int64_t address
    cdef void* made
    while end > depth:
        address = finish(nodes, &path[end])
        if address < 0:
            return False
        if nodes.way_count == nodes.way_room:
            made = realloc(nodes.ways, 2 * nodes.way_room * sizeof(Way))
            if made == NULL:
                return False
            nodes.ways = <Way*>made
            nodes.way_room *= 2
        nodes.ways[nodes.way_count].byte = path[end].byte
        nodes.ways[nodes.way_count].target = address
        nodes.way_count += 1
        end -= 1
    return True


def write_nodes(
    const uint8_t[::1] data, const int64_t[::1] ends, const uint64_t[::1] values, int64_t base,
):
    """See token_nodes.pyi."""
    cdef int64_t key, keys = values.shape[0], longest = 0, depth = 0, shared, size, k, root = 0
    cdef bint fits = ends.shape[0] == keys + 1 and ends[0] >= 0 and base > 0, has_memory = True
    cdef Nodes nodes
    cdef Open* path
    for key in range(keys if fits else 0):
        fits = fits and 0 <= ends[key] <= ends[key + 1]
        longest = max(longest, ends[key + 1] - ends[key])
    if not fits or ends[keys] > data.shape[0]:
        raise ValueError("keys do not lie within their bytes")
    memset(&nodes, 0, sizeof(Nodes))
    nodes.room, nodes.way_room, nodes.base = 1 << 16, 1 << 10, base
    nodes.made = <uint8_t*>malloc(nodes.room)
    nodes.ways = <Way*>malloc(nodes.way_room * sizeof(Way))
    path = <Open*>malloc((longest + 1) * sizeof(Open))
    try:
        if not (nodes.made and nodes.ways and path):
            raise MemoryError
        with nogil:
            memset(path, 0, sizeof(Open))
            for key in range(keys):
                size = ends[key + 1] - ends[key]
                shared = 0
                while shared < size and shared < depth and data[ends[key] + shared] == path[shared + 1].byte:
                    shared += 1
                if key and (shared == size or (
                    shared < depth and data[ends[key] + shared] < path[shared + 1].byte
                )):
                    fits = False
                    break
                has_memory = close(&nodes, path, shared, depth)
                if not has_memory:
                    break
                for k in range(shared, size):
                    memset(&path[k + 1], 0, sizeof(Open))
                    path[k + 1].byte = data[ends[key] + k]
                    path[k + 1].ways = nodes.way_count
                path[size].is_final = True
                path[size].value = values[key]
                depth = size
            if has_memory and fits:
                has_memory = close(&nodes, path, 0, depth)
                if has_memory:
                    root = finish(&nodes, &path[0])
        if not fits:
            raise ValueError("keys of a transducer ascend")
        if not has_memory or root < 0:
            raise MemoryError
        return PyBytes_FromStringAndSize(<char*>nodes.made, nodes.size), root
    finally:
        free(nodes.made)
        free(nodes.ways)
        free(path)
