# cython: language_level=3
"""Posting lists as kernels walk them, and the best documents so far."""

from libc.stdint cimport int64_t, uint8_t, uint32_t


cdef struct PostingList:
    const uint32_t* docs
    const float* shares
    const float* tops
    const int64_t* ends
    const uint32_t* places
    int64_t count
    int64_t place_count
    int64_t at
    int64_t probe
    float weight
    float top
    float others
    bint is_left_out


cdef inline void put_score(float* heap, int64_t count, float score) noexcept nogil:
    """Put a score into the best, the least of which goes, and is first."""
    cdef int64_t at = 0, child = 1
    while child < count:
        if child + 1 < count and heap[child + 1] < heap[child]:
            child += 1
        if score <= heap[child]:
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = score


cdef struct Limit:
    float least
    float* heap
    int64_t most
    bint first_wins
    const uint8_t* seen
    uint32_t* docs
    float* scores
    int64_t filled


cdef inline bint may_be(Limit* limit, float score) noexcept nogil:
    """Tell whether a document of that score may be among the best."""
    if limit.most == 0:
        return score >= limit.least
    if limit.first_wins:
        return score >= limit.least and score > limit.heap[0]
    return score >= limit.least and score >= limit.heap[0]


cdef inline void take(Limit* limit, int64_t doc, float score) noexcept nogil:
    """Keep a document, unless it is not to be found, or not among the best."""
    if may_be(limit, score) and (limit.seen == NULL or limit.seen[doc]):
        limit.docs[limit.filled] = <uint32_t>doc
        limit.scores[limit.filled] = score
        limit.filled += 1
        if limit.most and score > limit.heap[0]:
            put_score(limit.heap, limit.most, score)
