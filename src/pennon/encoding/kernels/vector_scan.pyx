"""Codes of vectors looked up in tables, and the nearest of many; see the stub."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) \
        && __GNUC__ >= 12 && !defined(__SANITIZE_ADDRESS__)
    #define CLONES __attribute__((target_clones("default", "arch=x86-64-v3")))
    #else
    #define CLONES
    #endif

    /* squared distances of one value to `count` values, added to `out` */
    CLONES static void add_squares(float value, const float *words, int64_t count, float *out) {
        for (int64_t at = 0; at < count; at++) {
            float apart = value - words[at];
            out[at] += apart * apart;
        }
    }

    CLONES static void subtract_products(float value, const float *words, int64_t count, float *out) {
        for (int64_t at = 0; at < count; at++) out[at] -= value * words[at];
    }

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
            for (int64_t at = 0; at < count; at++)
                out[at] = out[at] + t[a[at]] + t[256 + b[at]] + t[512 + c[at]] + t[768 + d[at]];
        }
        for (; m < many; m++) {
            const uint8_t *a = codes + m * stride;
            const float *t = tables + m * 256;
            for (int64_t at = 0; at < count; at++) out[at] += t[a[at]];
        }
    }
    """
    void add_squares(float value, const float *words, int64_t count, float *out) noexcept nogil
    void subtract_products(float value, const float *words, int64_t count, float *out) noexcept nogil
    bint any_nearer(const float *distances, int64_t count, float worst) noexcept nogil
    void add_looked_up(
        const uint8_t *codes, int64_t stride, int64_t many, const float *tables, int64_t count, float *out
    ) noexcept nogil

cdef enum:
    BLOCK = 1024
    RUN = 64


def word_tables(
    const float[:, :, ::1] words, const float[::1] query, bint products, float[:, ::1] tables
):
    """Put what each word is apart from its part of a query into tables; see the stub."""
    cdef int64_t parts = words.shape[0], width = words.shape[1], count = words.shape[2]
    cdef int64_t part, at, word
    if (
        query.shape[0] != parts * width
        or tables.shape[0] != parts
        or tables.shape[1] != count
    ):
        raise ValueError("a table has a row for each part of a query, and a column for each word")
    if not parts or not count:
        return
    with nogil:
        for part in range(parts):
            for word in range(count):
                tables[part, word] = 1 if products else 0
            for at in range(width):
                if products:
                    subtract_products(
                        query[part * width + at], &words[part, at, 0], count, &tables[part, 0]
                    )
                else:
                    add_squares(
                        query[part * width + at], &words[part, at, 0], count, &tables[part, 0]
                    )


def looked_up(
    const uint8_t[:, ::1] codes, const float[:, ::1] tables, float start, float[::1] out
):
    """Put the sum of what tables say of each column of codes into ``out``; see the stub."""
    cdef int64_t many = codes.shape[0], rows = codes.shape[1], at = 0, size, row
    if tables.shape[0] != many or tables.shape[1] != 256 or out.shape[0] != rows:
        raise ValueError("codes have a table of 256 values for each byte, and a sum for each row")
    if not rows:
        return
    with nogil:
        while at < rows:
            size = min(rows - at, <int64_t> BLOCK)
            for row in range(at, at + size):
                out[row] = start
            if many:
                add_looked_up(&codes[0, at], rows, many, &tables[0, 0], size, &out[at])
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


def keep_nearest(
    float[::1] best, uint64_t[::1] best_rows, int64_t count,
    const float[::1] distances, const uint64_t[::1] rows, const uint8_t[::1] passing,
):
    """Put the nearest of some rows into a heap; see the stub."""
    cdef int64_t most = best.shape[0], total = distances.shape[0], at = 0, end
    cdef bint is_masked = passing is not None
    cdef float distance
    if best_rows.shape[0] != most or count < 0 or count > most or most < 1:
        raise ValueError("a heap has a row for each distance, and no more than these")
    if rows.shape[0] != total or (is_masked and passing.shape[0] != total):
        raise ValueError("each row has a distance")
    with nogil:
        while at < total:
            end = min(at + RUN, total)
            if count == most and not any_nearer(&distances[at], end - at, best[0]):
                at = end
                continue
            while at < end:
                distance = distances[at]
                if distance == distance and not (is_masked and not passing[at]):
                    if count < most:
                        best[count] = distance
                        best_rows[count] = rows[at]
                        _rise(&best[0], &best_rows[0], count)
                        count += 1
                    elif _is_farther(best[0], best_rows[0], distance, rows[at]):
                        best[0] = distance
                        best_rows[0] = rows[at]
                        _sink(&best[0], &best_rows[0], most, 0)
                at += 1
    return count
