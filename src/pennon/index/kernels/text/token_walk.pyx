# cython: language_level=3
"""The keys of a transducer of tokens: one, all, or those near a word.  See token_walk.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc

from cpython.bytes cimport PyBytes_FromStringAndSize

from pennon.errors import FormatError

cdef enum:
    HEADER = 16
    INDEXED = 32
    MOST_VISITS = 1 << 26

cdef const uint8_t* COMMON = b"te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHG"


cdef struct Node:
    bint is_final
    uint64_t output
    int64_t count  # ways on; way i lies at count - 1 - i
    int64_t inputs
    int64_t deltas
    int64_t outputs
    int64_t first
    int wide
    int high
    uint8_t common  # the only input, if it is no byte of its own
    bint is_before  # the only way leads to the node just before


cdef struct Frame:
    Node node
    int64_t way
    uint64_t value
    uint8_t byte
    uint8_t missing  # bytes of a character that are to come
    uint32_t character
    int64_t characters


cdef inline uint64_t number_at(const uint8_t* data, int64_t at, int size) noexcept nogil:
    cdef uint64_t found = 0
    cdef int k
    for k in range(size - 1, -1, -1):
        found = found << 8 | data[at + k]
    return found


cdef bint open_node(const uint8_t* data, int64_t end, int64_t address, Node* node) noexcept nogil:
    """Take a node apart; tell whether it lies within the nodes' bytes."""
    cdef int64_t at = address
    cdef uint8_t state, sizes
    node.is_final = node.is_before = False
    node.output = 0
    node.common = 0
    node.count = node.wide = node.high = 0
    if address == 0:
        node.is_final = True
        return True
    if not HEADER <= address < end:
        return False
    state = data[at]
    if state & 0x80:
        node.count = 1
        if state & 0x3F:
            node.common = COMMON[(state & 0x3F) - 1]
        else:
            at -= 1
            node.inputs = at
        if state & 0x40:
            node.is_before = True
        else:
            at -= 1
            if at < HEADER:
                return False
            sizes = data[at]
            node.wide, node.high = sizes >> 4, sizes & 15
            at -= node.wide
            node.deltas = at
            at -= node.high
            node.outputs = at
    else:
        node.count = state & 0x3F
        if not node.count:
            at -= 1
            if at < HEADER:
                return False
            node.count = data[at]
            if node.count == 1:
                node.count = 256
        at -= 1
        if at < HEADER:
            return False
        sizes = data[at]
        node.wide, node.high = sizes >> 4, sizes & 15
        if node.count > INDEXED:
            at -= 256
        at -= node.count
        node.inputs = at
        at -= node.count * node.wide
        node.deltas = at
        at -= node.count * node.high
        node.outputs = at
        if state & 0x40:
            node.is_final = True
            at -= node.high
    if at < HEADER or node.wide > 8 or node.high > 8:
        return False
    if node.is_final:
        node.output = number_at(data, at, node.high)
    node.first = at
    return True


cdef inline uint8_t input_of(const uint8_t* data, Node* node, int64_t way) noexcept nogil:
    return node.common if node.common else data[node.inputs + node.count - 1 - way]


cdef inline int64_t target_of(const uint8_t* data, Node* node, int64_t way) noexcept nogil:
    """Return the address of the node that a way leads to; -1 if there can be none."""
    cdef uint64_t delta
    if node.is_before:
        return node.first - 1
    delta = number_at(data, node.deltas + (node.count - 1 - way) * node.wide, node.wide)
    if delta > <uint64_t>node.first:
        return -1
    return node.first - <int64_t>delta if delta else 0


cdef inline uint64_t output_of(const uint8_t* data, Node* node, int64_t way) noexcept nogil:
    if node.is_before:
        return 0
    return number_at(data, node.outputs + (node.count - 1 - way) * node.high, node.high)


cdef leaves():
    return FormatError("a node of the tokens of a full-text index leaves its bytes")


def find_key(const uint8_t[::1] data, int64_t root, int64_t end, const uint8_t[::1] key):
    """See token_walk.pyi."""
    cdef Node node
    cdef int64_t at, way, address = root
    cdef uint64_t value = 0
    cdef bint is_right = end <= data.shape[0]
    if not is_right or not open_node(&data[0], end, address, &node):
        raise leaves()
    for at in range(key.shape[0]):
        way = 0
        while way < node.count and input_of(&data[0], &node, way) != key[at]:
            way += 1
        if way == node.count:
            return None
        value += output_of(&data[0], &node, way)
        address = target_of(&data[0], &node, way)
        if address < 0 or not open_node(&data[0], end, address, &node):
            raise leaves()
    return value + node.output if node.is_final else None


cdef bint step(
    const uint32_t* word, int64_t size, int64_t most, int64_t prefix, int64_t count,
    uint32_t character, const int64_t* before, int64_t* row,
) noexcept nogil:
    """Fill the row behind a character, the ``count``-th; tell whether what goes on so may be near."""
    cdef int64_t at, least
    if count <= prefix and word[count - 1] != character:
        return False
    row[0] = least = before[0] + 1
    for at in range(1, size + 1):
        row[at] = min(before[at - 1] + (word[at - 1] != character), min(before[at], row[at - 1]) + 1)
        least = min(least, row[at])
    return least <= most


cdef bint go_on(Frame* frame, Frame* next) noexcept nogil:
    """Put a byte to the character of a frame; tell whether it may stand there."""
    cdef uint8_t byte = next.byte
    next.characters = frame.characters
    if frame.missing:
        if byte & 0xC0 != 0x80:
            return False
        next.missing = frame.missing - 1
        next.character = frame.character << 6 | (byte & 0x3F)
        return True
    next.missing = 0
    next.character = byte
    if byte >= 0x80:
        if byte < 0xC0:
            return False
        next.missing = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
        next.character = byte & (0x3F >> next.missing)
    return True


def walk(
    const uint8_t[::1] data, int64_t root, int64_t end, const uint32_t[::1] word, int64_t distance,
    int64_t prefix, int64_t most,
):
    """See token_walk.pyi."""
    cdef Frame* frames = NULL
    cdef Frame* frame
    cdef Frame* next
    cdef int64_t* rows = NULL
    cdef void* made
    cdef int64_t depth = 0, room = 64, size = word.shape[0], k, address, visits = 1, chars
    cdef bint is_near = distance >= 0, is_right = end <= data.shape[0]
    cdef uint8_t* key = NULL
    if not is_right or (is_near and (prefix < 0 or prefix > size)):
        raise ValueError("no such bytes, or no such prefix")
    chars = size + distance + 2 if is_near else 0
    found = []
    try:
        frames = <Frame*>malloc(room * sizeof(Frame))
        key = <uint8_t*>malloc(room)
        if is_near:
            rows = <int64_t*>malloc((chars + 1) * (size + 1) * 8)
        if frames == NULL or key == NULL or (is_near and rows == NULL):
            raise MemoryError
        for k in range(size + 1 if is_near else 0):
            rows[k] = k
        frame = &frames[0]
        frame.way, frame.value, frame.missing, frame.characters = -1, 0, 0, 0
        frame.character = 0
        if not open_node(&data[0], end, root, &frame.node):
            raise leaves()
        while depth >= 0 and len(found) < most:
            frame = &frames[depth]
            frame.way += 1
            if frame.way == 0 and frame.node.is_final and not frame.missing and (
                not is_near or (
                    rows[frame.characters * (size + 1) + size] <= distance
                    and frame.characters >= prefix
                )
            ):
                found.append((
                    PyBytes_FromStringAndSize(<char*>key, depth), frame.value + frame.node.output
                ))
            if frame.way >= frame.node.count:
                depth -= 1
                continue
            if depth + 2 >= room:
                made = realloc(frames, 2 * room * sizeof(Frame))
                if made == NULL:
                    raise MemoryError
                frames = <Frame*>made
                made = realloc(key, 2 * room)
                if made == NULL:
                    raise MemoryError
                key = <uint8_t*>made
                room *= 2
                frame = &frames[depth]
            next = &frames[depth + 1]
            next.byte = input_of(&data[0], &frame.node, frame.way)
            next.way = -1
            next.missing, next.characters, next.character = 0, 0, 0
            if is_near:
                if not go_on(frame, next):
                    continue
                if not next.missing:
                    next.characters += 1
                    if next.characters > chars or not step(
                        &word[0] if size else NULL, size, distance, prefix, next.characters,
                        next.character, &rows[(next.characters - 1) * (size + 1)],
                        &rows[next.characters * (size + 1)],
                    ):
                        continue
            next.value = frame.value + output_of(&data[0], &frame.node, frame.way)
            address = target_of(&data[0], &frame.node, frame.way)
            visits += 1
            if address < 0 or visits > MOST_VISITS or not open_node(
                &data[0], end, address, &next.node
            ):
                raise leaves()
            key[depth] = next.byte
            depth += 1
    finally:
        free(frames)
        free(rows)
        free(key)
    return found
