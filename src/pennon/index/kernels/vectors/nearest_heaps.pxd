# cython: language_level=3
"""The nearest rows of queries so far: heaps, the farthest row on top; of rows at one distance the lower number is nearer."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from pennon.index.kernels.vectors cimport vector_sums

cdef extern from *:
    """
    #define FEW 8
    /* Whether so few rows are passing that each is looked at by itself. */
    __attribute__((unused)) CLONES static int are_few(const uint8_t *passing, int64_t count) {
        int64_t found = 0;
        for (int64_t at = 0; at < count; at++) found += passing[at] != 0;
        return found * FEW <= count;
    }
    /* Which of up to 64 distances are no greater than the worst one, a bit each. */
    __attribute__((unused)) static uint64_t nearer_plain(const float *distances, int64_t count, float worst) {
        uint64_t found = 0;
        for (int64_t at = 0; at < count; at++) found |= (uint64_t)(distances[at] <= worst) << at;
        return found;
    }
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    __attribute__((target("avx2"))) static uint64_t nearer_of_eights(const float *distances, int64_t count, float worst) {
        const __m256 most = _mm256_set1_ps(worst);
        uint64_t found = 0;
        for (int64_t at = 0; at < count; at += 8) {
            __m256 near = _mm256_cmp_ps(_mm256_loadu_ps(distances + at), most, _CMP_LE_OQ);
            found |= (uint64_t)(uint32_t)_mm256_movemask_ps(near) << at;
        }
        return found;
    }
    #endif
    __attribute__((unused)) static uint64_t nearer_of(const float *distances, int64_t count, float worst) {
        #if defined(__x86_64__) && defined(__GNUC__)
        if (count % 8 == 0 && __builtin_cpu_supports("avx2")) return nearer_of_eights(distances, count, worst);
        #endif
        return nearer_plain(distances, count, worst);
    }
    /* The place of the lowest bit of some. */
    __attribute__((unused)) static int lowest_bit(uint64_t bits) {
        #if defined(__GNUC__)
        return __builtin_ctzll(bits);
        #else
        int place = 0;
        while (!(bits >> place & 1)) place++;
        return place;
        #endif
    }
    """
    uint64_t nearer_of(const float *distances, int64_t count, float worst) noexcept nogil
    int lowest_bit(uint64_t bits) noexcept nogil
    bint are_few(const uint8_t *passing, int64_t count) noexcept nogil

cdef enum:
    RUN = 64

cdef struct Heaps:
    float *distances
    uint64_t *rows
    int64_t *counts
    int64_t most


cdef inline bint is_farther(float a, uint64_t row_a, float b, uint64_t row_b) noexcept nogil:
    return a > b or (a == b and row_a > row_b)


cdef inline void sink(float *distances, uint64_t *rows, int64_t count, int64_t at) noexcept nogil:
    """Let what is at the root of a part of a heap go down to where it belongs: the farthest is on top."""
    cdef float distance = distances[at]
    cdef uint64_t row = rows[at]
    cdef int64_t child = 2 * at + 1
    while child < count:
        if child + 1 < count and is_farther(
            distances[child + 1], rows[child + 1], distances[child], rows[child]
        ):
            child += 1
        if not is_farther(distances[child], rows[child], distance, row):
            break
        distances[at] = distances[child]
        rows[at] = rows[child]
        at = child
        child = 2 * at + 1
    distances[at] = distance
    rows[at] = row


cdef inline void rise(float *distances, uint64_t *rows, int64_t at) noexcept nogil:
    cdef float distance = distances[at]
    cdef uint64_t row = rows[at]
    cdef int64_t above
    while at:
        above = (at - 1) // 2
        if not is_farther(distance, row, distances[above], rows[above]):
            break
        distances[at] = distances[above]
        rows[at] = rows[above]
        at = above
    distances[at] = distance
    rows[at] = row


cdef inline void keep_one(Heaps *heaps, int64_t heap, float distance, uint64_t row) noexcept nogil:
    """Put a row into a heap if it is near enough; NaN is at no distance."""
    cdef float *best = heaps.distances + heap * heaps.most
    cdef uint64_t *best_rows = heaps.rows + heap * heaps.most
    cdef int64_t count = heaps.counts[heap]
    if distance != distance:
        return
    if count < heaps.most:
        best[count] = distance
        best_rows[count] = row
        rise(best, best_rows, count)
        heaps.counts[heap] = count + 1
    elif is_farther(best[0], best_rows[0], distance, row):
        best[0] = distance
        best_rows[0] = row
        sink(best, best_rows, heaps.most, 0)


cdef inline void drop_farthest(float *heap, int64_t count, float value) noexcept nogil:
    """Put a value into a heap of values, in place of the top."""
    cdef int64_t at = 0, child = 1
    while child < count:
        if child + 1 < count and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= value:
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = value


cdef inline void keep_least(
    float *heap, int64_t most, const float *values, int64_t total, const uint8_t *passing
) noexcept nogil:
    """Put the least of some values into a full heap of values; ``passing``: NULL, or which of them may be in it."""
    cdef int64_t at = 0, end, n
    cdef uint64_t near
    while at < total:
        end = min(at + RUN, total)
        near = nearer_of(values + at, end - at, heap[0])
        while near:
            n = at + lowest_bit(near)
            near &= near - 1
            if values[n] < heap[0] and (passing == NULL or passing[n]):
                drop_farthest(heap, most, values[n])
        at = end


cdef inline void keep_some(
    Heaps *heaps, int64_t heap, const float *distances, const uint64_t *rows, const uint8_t *passing, int64_t total
) noexcept nogil:
    """Put the nearest of some rows into a heap; ``passing``: NULL, or which of them may be in it."""
    cdef int64_t at = 0, end, row
    cdef uint64_t near
    while at < total and heaps.counts[heap] < heaps.most:
        if passing == NULL or passing[at]:
            keep_one(heaps, heap, distances[at], rows[at])
        at += 1
    while at < total:
        end = min(at + RUN, total)
        near = nearer_of(&distances[at], end - at, heaps.distances[heap * heaps.most])
        while near:
            row = at + lowest_bit(near)
            near &= near - 1
            if passing == NULL or passing[row]:
                keep_one(heaps, heap, distances[row], rows[row])
        at = end


cdef inline Heaps heaps_of(float[:, ::1] best, uint64_t[:, ::1] best_rows, int64_t[::1] counts) except *:
    """Return heaps as arrays have them.  Raises ValueError for arrays that do not fit."""
    cdef Heaps made
    cdef int64_t at
    made.most = best.shape[1]
    if best_rows.shape[0] != best.shape[0] or best_rows.shape[1] != made.most or counts.shape[0] != best.shape[0] or made.most < 1:
        raise ValueError("a heap has a row for each distance")
    for at in range(counts.shape[0]):
        if counts[at] < 0 or counts[at] > made.most:
            raise ValueError("each query has a heap, which has no more rows than there is room for")
    made.distances = &best[0, 0] if best.shape[0] else NULL
    made.rows = &best_rows[0, 0] if best.shape[0] else NULL
    made.counts = &counts[0] if best.shape[0] else NULL
    return made


cdef inline int check_pairs(
    int64_t parts, int64_t asked, int64_t queries, int64_t heaps,
    const int64_t[::1] ends, const int64_t[::1] numbers, const int64_t[::1] places
) except -1:
    """Raise ValueError unless each of some pairs has a query and a heap, and each partition some of them."""
    cdef int64_t at
    cdef bint fits = ends.shape[0] == parts and numbers.shape[0] == asked and places.shape[0] == asked
    for at in range(parts if fits else 0):
        fits = fits and (ends[at - 1] if at else 0) <= ends[at] <= asked
    for at in range(asked if fits else 0):
        fits = fits and 0 <= numbers[at] < heaps and 0 <= places[at] < queries
    if not fits:
        raise ValueError("each pair has a query and a heap, and each partition some of the pairs")
    return 0


cdef inline int check_numbers(
    int64_t parts, int64_t pairs, int64_t queries, int64_t heaps,
    const int64_t[::1] partitions, const int64_t[::1] numbers, const int64_t[::1] places
) except -1:
    """Raise ValueError unless each pair has a partition, a query and a heap."""
    cdef int64_t at
    cdef bint fits = partitions.shape[0] == pairs and places.shape[0] == pairs
    for at in range(pairs if fits else 0):
        fits = fits and 0 <= partitions[at] < parts and 0 <= numbers[at] < heaps and 0 <= places[at] < queries
    if not fits:
        raise ValueError("each pair has a partition, a query and a heap")
    return 0
