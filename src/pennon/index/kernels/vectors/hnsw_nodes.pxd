# cython: language_level=3
"""Nodes of a graph by how near they are: heaps, the nearest on top or the farthest."""

from libc.stdint cimport int64_t, uint32_t

cdef extern from *:
    """
    enum { ASKED_LINES = 3, LINE_WORDS = 16 };
    /* Have what stands there brought from memory while others are compared. */
    static inline void ask_for(const uint32_t *words) {
        for (int line = 0; line < ASKED_LINES; line++) __builtin_prefetch(words + line * LINE_WORDS);
    }
    """
    void ask_for(const uint32_t *words) noexcept nogil

cdef struct Node:
    float distance
    uint32_t number


cdef inline bint is_nearer(Node a, Node b) noexcept nogil:
    return a.distance < b.distance or (a.distance == b.distance and a.number < b.number)


cdef inline void push(Node *heap, int64_t count, Node node, bint nearest_first) noexcept nogil:
    """Put a node into a heap of ``count`` nodes."""
    cdef int64_t at = count, above
    while at:
        above = (at - 1) // 2
        if is_nearer(node, heap[above]) != nearest_first:
            break
        heap[at] = heap[above]
        at = above
    heap[at] = node


cdef inline void drop_top(Node *heap, int64_t count, bint nearest_first) noexcept nogil:
    """Take the top off a heap of ``count`` nodes."""
    cdef Node node = heap[count - 1]
    cdef int64_t last = count - 1, at = 0, child = 1
    while child < last:
        if child + 1 < last and is_nearer(heap[child + 1], heap[child]) == nearest_first:
            child += 1
        if is_nearer(heap[child], node) != nearest_first:
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = node
