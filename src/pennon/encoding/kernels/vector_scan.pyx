"""Codes of vectors looked up in tables, and the nearest of many; see the stub."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

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

    /* what `count` words of `width` values are apart from a part of a query; word w has value i at words[i * count + w].
       Four values at a time: `out` is read and written as seldom, and each loop is one that compilers vectorise. */
    #define TABLE(NAME, FIRST, STEP)                                                                   \
        CLONES static void NAME(const float *query, const float *words, int64_t width, int64_t count,  \
                                float *restrict out) {                                                 \
            int64_t i = 0;                                                                             \
            for (int64_t at = 0; at < count; at++) out[at] = FIRST;                                    \
            for (; i + 4 <= width; i += 4) {                                                           \
                const float *a = words + i * count, *b = a + count, *c = b + count, *d = c + count;    \
                float v = query[i], w = query[i + 1], x = query[i + 2], y = query[i + 3];              \
                for (int64_t at = 0; at < count; at++) {                                               \
                    float sum = out[at];                                                               \
                    STEP(sum, v, a[at]) STEP(sum, w, b[at]) STEP(sum, x, c[at]) STEP(sum, y, d[at])    \
                    out[at] = sum;                                                                     \
                }                                                                                      \
            }                                                                                          \
            for (; i < width; i++) {                                                                   \
                const float *a = words + i * count;                                                    \
                float v = query[i];                                                                    \
                for (int64_t at = 0; at < count; at++) {                                               \
                    float sum = out[at];                                                               \
                    STEP(sum, v, a[at])                                                                \
                    out[at] = sum;                                                                     \
                }                                                                                      \
            }                                                                                          \
        }
    #define ADD_SQUARE(SUM, VALUE, WORD) { float apart = VALUE - WORD; SUM += apart * apart; }
    #define SUBTRACT_PRODUCT(SUM, VALUE, WORD) { SUM -= VALUE * WORD; }

    TABLE(table_of_squares, 0, ADD_SQUARE)
    TABLE(table_of_products, 1, SUBTRACT_PRODUCT)

    CLONES static int any_nearer(const float *distances, int64_t count, float worst) {
        int found = 0;
        for (int64_t at = 0; at < count; at++) found |= distances[at] <= worst;
        return found;
    }

    static void add_looked_up(
        const uint8_t *codes, int64_t stride, int64_t many, const float *tables, int64_t count, float *out
    ) {
        int64_t m = 0;
        for (; m + 4 <= many; m += 4) {
            const uint8_t *a = codes + m * stride, *b = a + stride, *c = b + stride, *d = c + stride;
            const float *t = tables + m * 256;
            int64_t at = 0;
            for (; at + 4 <= count; at += 4) { /* four codes are one load */
                uint32_t i, j, k, l;
                memcpy(&i, a + at, 4);
                memcpy(&j, b + at, 4);
                memcpy(&k, c + at, 4);
                memcpy(&l, d + at, 4);
                for (int n = 0; n < 32; n += 8)
                    out[at + n / 8] = out[at + n / 8] + t[i >> n & 255] + t[256 + (j >> n & 255)]
                                      + t[512 + (k >> n & 255)] + t[768 + (l >> n & 255)];
            }
            for (; at < count; at++)
                out[at] = out[at] + t[a[at]] + t[256 + b[at]] + t[512 + c[at]] + t[768 + d[at]];
        }
        for (; m < many; m++) {
            const uint8_t *a = codes + m * stride;
            const float *t = tables + m * 256;
            for (int64_t at = 0; at < count; at++) out[at] += t[a[at]];
        }
    }
    """
    void table_of_squares(
        const float *query, const float *words, int64_t width, int64_t count, float *out
    ) noexcept nogil
    void table_of_products(
        const float *query, const float *words, int64_t width, int64_t count, float *out
    ) noexcept nogil
    bint any_nearer(const float *distances, int64_t count, float worst) noexcept nogil
    void add_looked_up(
        const uint8_t *codes, int64_t stride, int64_t many, const float *tables, int64_t count, float *out
    ) noexcept nogil

cdef enum:
    BLOCK = 1024
    RUN = 64


def word_tables(
    const float[:, :, ::1] words, const float[:, ::1] queries, bint products, float[:, :, ::1] tables
):
    """Put what each word is apart from its part of each query into tables; see the stub."""
    cdef int64_t parts = words.shape[0], width = words.shape[1], count = words.shape[2]
    cdef int64_t asked = queries.shape[0], part, at
    cdef const float *none = NULL
    if (
        queries.shape[1] != parts * width
        or tables.shape[0] != asked
        or tables.shape[1] != parts
        or tables.shape[2] != count
    ):
        raise ValueError("a table has a row for each part of a query, and a column for each word")
    if not parts or not count or not asked:
        return
    with nogil:
        for part in range(parts):  # whose words stay in the processor's cache
            for at in range(asked):
                if products:
                    table_of_products(
                        &queries[at, part * width] if width else none,
                        &words[part, 0, 0] if width else none,
                        width, count, &tables[at, part, 0],
                    )
                else:
                    table_of_squares(
                        &queries[at, part * width] if width else none,
                        &words[part, 0, 0] if width else none,
                        width, count, &tables[at, part, 0],
                    )


def looked_up(
    const uint8_t[:, ::1] codes, const float[:, :, ::1] tables, float start, float[:, ::1] out
):
    """Put the sums of what the tables of each query say of each column of codes into ``out``; see the stub."""
    cdef int64_t many = codes.shape[0], rows = codes.shape[1], asked = tables.shape[0]
    cdef int64_t at = 0, size, row, query
    if (
        tables.shape[1] != many or tables.shape[2] != 256
        or out.shape[0] != asked or out.shape[1] != rows
    ):
        raise ValueError("codes have a table of 256 values for each byte, and a sum for each row")
    if not rows or not asked:
        return
    with nogil:
        while at < rows:
            size = min(rows - at, <int64_t> BLOCK)
            for query in range(asked):  # which read the same codes
                for row in range(at, at + size):
                    out[query, row] = start
                if many:
                    add_looked_up(
                        &codes[0, at], rows, many, &tables[query, 0, 0], size, &out[query, at]
                    )
            at += size


cdef inline bint _is_farther(float a, uint64_t row_a, float b, uint64_t row_b) noexcept nogil:
    return a > b or (a == b and row_a > row_b)


cdef void _sink(float *distances, uint64_t *rows, int64_t count, int64_t at) noexcept nogil:
    """Let what is at the root of a part of a heap go down to where it belongs: the farthest is on top."""
    cdef float distance = distances[at]
    cdef uint64_t row = rows[at]
    cdef int64_t child = 2 * at + 1
    while child < count:
        if child + 1 < count and _is_farther(
            distances[child + 1], rows[child + 1], distances[child], rows[child]
        ):
            child += 1
        if not _is_farther(distances[child], rows[child], distance, row):
            break
        distances[at] = distances[child]
        rows[at] = rows[child]
        at = child
        child = 2 * at + 1
    distances[at] = distance
    rows[at] = row


cdef void _rise(float *distances, uint64_t *rows, int64_t at) noexcept nogil:
    cdef float distance = distances[at]
    cdef uint64_t row = rows[at]
    cdef int64_t above
    while at:
        above = (at - 1) // 2
        if not _is_farther(distance, row, distances[above], rows[above]):
            break
        distances[at] = distances[above]
        rows[at] = rows[above]
        at = above
    distances[at] = distance
    rows[at] = row


cdef int64_t _keep(
    float *best, uint64_t *best_rows, int64_t count, int64_t most,
    const float *distances, const uint64_t *rows, const uint8_t *passing, int64_t total,
) noexcept nogil:
    """Put the nearest of some rows into one heap; return how many it has then."""
    cdef int64_t at = 0, end
    cdef float distance
    while at < total:
        end = min(at + RUN, total)
        if count == most and not any_nearer(&distances[at], end - at, best[0]):
            at = end
            continue
        while at < end:
            distance = distances[at]
            if distance == distance and not (passing != NULL and not passing[at]):
                if count < most:
                    best[count] = distance
                    best_rows[count] = rows[at]
                    _rise(best, best_rows, count)
                    count += 1
                elif _is_farther(best[0], best_rows[0], distance, rows[at]):
                    best[0] = distance
                    best_rows[0] = rows[at]
                    _sink(best, best_rows, most, 0)
            at += 1
    return count


def keep_nearest(
    float[:, ::1] best, uint64_t[:, ::1] best_rows, int64_t[::1] counts, const int64_t[::1] numbers,
    const float[:, ::1] distances, const uint64_t[::1] rows, const uint8_t[::1] passing,
):
    """Put the nearest of some rows into heaps; see the stub."""
    cdef int64_t heaps = best.shape[0], most = best.shape[1], total = rows.shape[0]
    cdef int64_t asked = numbers.shape[0], at, heap
    cdef const uint8_t *masked = NULL
    if (
        best_rows.shape[0] != heaps or best_rows.shape[1] != most or counts.shape[0] != heaps
        or most < 1
    ):
        raise ValueError("a heap has a row for each distance")
    if (
        distances.shape[0] != asked or distances.shape[1] != total
        or (passing is not None and passing.shape[0] != total)
    ):
        raise ValueError("each row has a distance from each query")
    for at in range(asked):
        heap = numbers[at]
        if heap < 0 or heap >= heaps or counts[heap] < 0 or counts[heap] > most:
            raise ValueError("each query has a heap, which has no more rows than there is room for")
    if not total:
        return
    if passing is not None:
        masked = &passing[0]
    with nogil:
        for at in range(asked):
            heap = numbers[at]
            counts[heap] = _keep(
                &best[heap, 0], &best_rows[heap, 0], counts[heap], most,
                &distances[at, 0], &rows[0], masked, total,
            )
