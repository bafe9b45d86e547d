"""Codes of vectors looked up in tables, and the nearest of many; see the stub."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc

from pennon.core.kernels.long_work cimport is_long
from pennon.index.kernels.vectors.near_words cimport (
    CUT, NONE_NEAR, SUMS_AT_ONCE, are_words_cut, cut_sums, cut_tables, cut_words, first_row, may_be_near,
)
from pennon.index.kernels.vectors.nearest_heaps cimport Heaps, are_few, check_pairs, heaps_of, keep_one, keep_some, sink
from pennon.index.kernels.vectors.part_lists cimport room_for

cdef extern from *:
    """
    /* what `count` words of `width` values are apart from a part of a query; word w has value i at words[i * count + w].
       Four values at a time: `out` is read and written as seldom, and each loop is one that compilers vectorise. */
    #define TABLE(NAME, FIRST, STEP)                                                                   \
        INLINED void NAME##_of(const float *query, const int64_t apart, const int queries, const float *words, \
                               int64_t width, int64_t count, float *restrict out, float *restrict other) { \
            const float *next = query + apart;                                                         \
            int64_t i = 0;                                                                             \
            for (int64_t at = 0; at < count && width < 4; at++) {                                      \
                out[at] = FIRST;                                                                       \
                if (queries > 1) other[at] = FIRST;                                                    \
            }                                                                                          \
            for (; i + 4 <= width; i += 4) {                                                           \
                const float *a = words + i * count, *b = a + count, *c = b + count, *d = c + count;    \
                float v = query[i], w = query[i + 1], x = query[i + 2], y = query[i + 3];              \
                float p = 0, q = 0, r = 0, s = 0;                                                      \
                if (queries > 1) p = next[i], q = next[i + 1], r = next[i + 2], s = next[i + 3];       \
                for (int64_t at = 0; at < count; at++) {                                               \
                    float sum = i ? out[at] : FIRST;                                                   \
                    STEP(sum, v, a[at]) STEP(sum, w, b[at]) STEP(sum, x, c[at]) STEP(sum, y, d[at])    \
                    out[at] = sum;                                                                     \
                    if (queries > 1) {                                                                 \
                        sum = i ? other[at] : FIRST;                                                   \
                        STEP(sum, p, a[at]) STEP(sum, q, b[at]) STEP(sum, r, c[at]) STEP(sum, s, d[at]) \
                        other[at] = sum;                                                               \
                    }                                                                                  \
                }                                                                                      \
            }                                                                                          \
            for (; i < width; i++) {                                                                   \
                const float *a = words + i * count;                                                    \
                float v = query[i], p = queries > 1 ? next[i] : 0;                                     \
                for (int64_t at = 0; at < count; at++) {                                               \
                    float sum = out[at];                                                               \
                    STEP(sum, v, a[at])                                                                \
                    out[at] = sum;                                                                     \
                    if (queries > 1) {                                                                 \
                        sum = other[at];                                                               \
                        STEP(sum, p, a[at])                                                            \
                        other[at] = sum;                                                               \
                    }                                                                                  \
                }                                                                                      \
            }                                                                                          \
        }                                                                                              \
        CLONES static void NAME(const float *query, const float *words, int64_t width, int64_t count,  \
                                float *restrict out) {                                                 \
            NAME##_of(query, 0, 1, words, width, count, out, NULL);                                    \
        }                                                                                              \
        /* of two queries: words are read once */                                                      \
        CLONES static void two_##NAME(const float *query, int64_t apart, const float *words, int64_t width, \
                                      int64_t count, float *restrict out, float *restrict other) {     \
            NAME##_of(query, apart, 2, words, width, count, out, other);                               \
        }
    #define ADD_SQUARE(SUM, VALUE, WORD) { float apart = VALUE - WORD; SUM += apart * apart; }
    #define SUBTRACT_PRODUCT(SUM, VALUE, WORD) { SUM -= VALUE * WORD; }

    TABLE(table_of_squares, 0, ADD_SQUARE)
    TABLE(table_of_products, 1, SUBTRACT_PRODUCT)

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
    void two_table_of_squares(
        const float *query, int64_t apart, const float *words, int64_t width, int64_t count, float *out, float *other
    ) noexcept nogil
    void two_table_of_products(
        const float *query, int64_t apart, const float *words, int64_t width, int64_t count, float *out, float *other
    ) noexcept nogil
    void add_looked_up(
        const uint8_t *codes, int64_t stride, int64_t many, const float *tables, int64_t count, float *out
    ) noexcept nogil

cdef enum:
    BLOCK = 1024
    BYTES = 256  # there are
    TWO = 2  # queries of which tables are made together: words are read once
    FIRST = 128  # rows that are added up until a heap is full, where the tables are cut for the others
    AT_ONCE = 8  # sums that take about a nanosecond


cdef void _tables(
    const float[:, :, ::1] words, const float *vectors, int64_t queries, bint products, float *halves, float *tables
) noexcept nogil:
    """Put what each byte of a code is apart from its part of a vector, or of two that follow each other, into tables."""
    cdef int64_t parts = words.shape[0], width = words.shape[1], count = words.shape[2], part, high, low
    cdef int64_t apart = parts * width, size = parts * count
    cdef float *made = tables if count == BYTES else halves
    cdef float *its
    cdef const float *vector
    cdef const float *word
    for part in range(parts):
        vector, its, word = vectors + part * width, made + part * count, &words[part, 0, 0]
        if queries > 1 and products:
            two_table_of_products(vector, apart, word, width, count, its, its + size)
        elif queries > 1:
            two_table_of_squares(vector, apart, word, width, count, its, its + size)
        elif products:
            table_of_products(vector, word, width, count, its)
        else:
            table_of_squares(vector, word, width, count, its)
    if count == BYTES:
        return
    for part in range(0, queries * parts, 2):  # the first of two words is the lower half of a byte
        for high in range(16):
            for low in range(16):
                tables[part // 2 * BYTES + 16 * high + low] = halves[part * 16 + 16 + high] + halves[part * 16 + low]


cdef struct Coded:
    # The rows of a partition, and the pairs that ask it.
    const uint8_t *codes
    const uint64_t *ids
    const uint8_t *mask
    int64_t total, first, end


def keep_words(
    list parts, rows, passing, const int64_t[::1] ends, const int64_t[::1] numbers,
    const int64_t[::1] places, const float[:, :, ::1] words, const float[:, ::1] vectors,
    const float[:, ::1] near, bint products, float start, float[:, ::1] best, uint64_t[:, ::1] best_rows, int64_t[::1] counts,
):
    """Put the nearest rows of partitions of coded vectors into heaps; see the stub."""
    cdef Heaps heaps = heaps_of(best, best_rows, counts)
    cdef int64_t many = words.shape[0] if words.shape[2] == BYTES else words.shape[0] // 2
    cdef int64_t count = len(parts), width = vectors.shape[1], total, at, first = 0, steps = 0
    cdef const uint8_t[:, ::1] codes
    cdef const uint64_t[::1] ids
    cdef const uint8_t[::1] mask
    cdef tuple held_codes = tuple(parts), held_ids = tuple(rows), held_masks = tuple(passing)
    cdef Coded *coded
    cdef float *tables
    cdef cut_words *cut = NULL
    check_pairs(count, numbers.shape[0], vectors.shape[0], best.shape[0], ends, numbers, places)
    if (
        not words.shape[0] or not words.shape[1] or vectors.shape[1] != words.shape[0] * words.shape[1]
        or not (words.shape[2] == BYTES or (words.shape[2] == 16 and words.shape[0] % 2 == 0))
    ):
        raise ValueError("vectors have a value for each one of a word, of which there are 256, or 16 of two parts")
    if len(held_codes) != count or len(held_ids) != count or len(held_masks) != count:
        raise ValueError("a partition has numbers of rows, and a mask or None")
    if near is not None and (near.shape[0] != count or near.shape[1] != width):
        raise ValueError("vectors have a value for each one of what is near to a partition")
    coded = <Coded *> room_for(held_codes, held_masks, sizeof(Coded))
    tables = <float *> malloc((TWO * (many * BYTES + words.shape[0] * 16 + width) + BLOCK) * sizeof(float))
    if are_words_cut():
        cut = <cut_words *> malloc(sizeof(cut_words))
    try:
        if tables == NULL or (cut == NULL and are_words_cut()):
            raise MemoryError
        for at in range(count):
            codes, ids, mask = held_codes[at], held_ids[at], held_masks[at]
            total = codes.shape[1]
            if (
                codes.shape[0] != many or ids.shape[0] != total
                or (mask is not None and mask.shape[0] != total)
            ):
                raise ValueError("a partition has a code for each byte of each row, and its number")
            coded[at].total, coded[at].first, coded[at].end = total, first, ends[at]
            if total:
                coded[at].codes, coded[at].ids = &codes[0, 0], &ids[0]
                coded[at].mask = &mask[0] if mask is not None else NULL
            steps += (ends[at] - first) * ((total * many + width * words.shape[2]) // AT_ONCE)
            first = ends[at]
        if is_long(steps):
            with nogil:
                _keep_all(
                    coded, count, many, numbers, places, words, vectors, near, products, start, &heaps, tables, cut
                )
        else:
            _keep_all(coded, count, many, numbers, places, words, vectors, near, products, start, &heaps, tables, cut)
    finally:
        free(coded)
        free(tables)
        free(cut)


cdef void _keep_all(
    const Coded *coded, int64_t count, int64_t many, const int64_t[::1] numbers, const int64_t[::1] places,
    const float[:, :, ::1] words, const float[:, ::1] vectors, const float[:, ::1] near, bint products, float start,
    Heaps *heaps, float *tables, cut_words *cut,
) noexcept nogil:
    """Put the nearest rows of all partitions into heaps; behind ``tables`` is room for what they are made of."""
    cdef int64_t at, pair, some, n, value, width = vectors.shape[1]
    cdef float *halves = tables + TWO * many * BYTES
    cdef float *far = halves + TWO * words.shape[0] * 16
    cdef float *rest = far + BLOCK
    for at in range(count):
        pair = coded[at].first
        while pair < coded[at].end and coded[at].total:
            some = min(coded[at].end - pair, <int64_t> TWO)
            for n in range(some):
                for value in range(width):
                    rest[n * width + value] = vectors[places[pair + n], value]
                    if near is not None:
                        rest[n * width + value] -= near[at, value]
            _tables(words, rest, some, products, halves, tables)
            for n in range(some):
                _keep_words(
                    coded[at].codes, coded[at].total, many, tables + n * many * BYTES, start, coded[at].ids,
                    coded[at].mask, heaps, numbers[pair + n], far, cut,
                )
            pair += some


cdef void _keep_words(
    const uint8_t *codes, int64_t total, int64_t many, const float *tables, float start, const uint64_t *ids,
    const uint8_t *mask, Heaps *heaps, int64_t heap, float *far, cut_words *cut,
) noexcept nogil:
    """Put the nearest rows of a partition into a heap; ``cut``: room for tables cut to bytes, NULL: none are."""
    cdef int64_t done = 0, size, row
    cdef int made = -1
    cdef const uint8_t *passing
    cdef const float *worst = heaps.distances + heap * heaps.most
    while done < total:
        size = min(total - done, <int64_t> BLOCK)
        passing = mask + done if mask != NULL else NULL
        if cut != NULL and heaps.counts[heap] < heaps.most:
            size = min(size, <int64_t> FIRST)
        elif cut != NULL:
            if made < 0:
                made = cut_tables(cut, tables, many, start, worst[0])
            if made == NONE_NEAR:
                return
            if made == CUT:
                cut_sums(cut, codes + done, total, many, size)
                _keep_near(codes + done, total, many, size, tables, start, ids + done, passing, heaps, heap, cut)
                done += size
                continue
        for row in range(size):
            far[row] = start
        if passing != NULL and are_few(passing, size):
            for row in range(size):
                if passing[row]:
                    add_looked_up(codes + done + row, total, many, tables, 1, far + row)
                else:
                    far[row] = INFINITY
        else:
            add_looked_up(codes + done, total, many, tables, size, far)
        keep_some(heaps, heap, far, ids + done, passing, size)
        done += size


cdef void _keep_near(
    const uint8_t *codes, int64_t total, int64_t many, int64_t size, const float *tables, float start,
    const uint64_t *ids, const uint8_t *mask, Heaps *heaps, int64_t heap, const cut_words *cut,
) noexcept nogil:
    """Put the nearest of some rows into a heap, of which the sums of bytes are known."""
    cdef int64_t at = 0, row
    cdef uint64_t rows
    cdef float far
    cdef const float *worst = heaps.distances + heap * heaps.most
    while at < size:
        rows = may_be_near(cut, at, size, worst[0])
        while rows:
            row = at + first_row(rows)
            rows &= rows - 1
            if mask == NULL or mask[row]:
                far = start
                add_looked_up(codes + row, total, many, tables, 1, &far)
                keep_one(heaps, heap, far, ids[row])
        at += SUMS_AT_ONCE


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


def keep_nearest(
    float[:, ::1] best, uint64_t[:, ::1] best_rows, int64_t[::1] counts, const int64_t[::1] numbers,
    const float[:, ::1] distances, const uint64_t[::1] rows, const uint8_t[::1] passing,
):
    """Put the nearest of some rows into heaps; see the stub."""
    cdef Heaps heaps = heaps_of(best, best_rows, counts)
    cdef int64_t total = rows.shape[0], asked = numbers.shape[0], at
    cdef const uint8_t *masked = NULL
    if (
        distances.shape[0] != asked or distances.shape[1] != total
        or (passing is not None and passing.shape[0] != total)
    ):
        raise ValueError("each row has a distance from each query")
    for at in range(asked):
        if not 0 <= numbers[at] < best.shape[0]:
            raise ValueError("each query has a heap, which has no more rows than there is room for")
    if not total:
        return
    if passing is not None:
        masked = &passing[0]
    if is_long(asked * total):
        with nogil:
            _keep_each(&heaps, numbers, distances, rows, masked)
    else:
        _keep_each(&heaps, numbers, distances, rows, masked)


cdef void _keep_each(
    Heaps *heaps, const int64_t[::1] numbers, const float[:, ::1] distances, const uint64_t[::1] rows,
    const uint8_t *masked,
) noexcept nogil:
    cdef int64_t at
    for at in range(numbers.shape[0]):
        keep_some(heaps, numbers[at], &distances[at, 0], &rows[0], masked, rows.shape[0])


def join_heaps(
    float[:, ::1] best, uint64_t[:, ::1] best_rows, int64_t[::1] counts, const int64_t[::1] numbers,
    float[:, ::1] others, uint64_t[:, ::1] other_rows, int64_t[::1] other_counts,
):
    """Put the rows of other heaps into heaps; see the stub."""
    cdef Heaps heaps = heaps_of(best, best_rows, counts), more = heaps_of(others, other_rows, other_counts)
    cdef int64_t at
    cdef bint fits = numbers.shape[0] == others.shape[0]
    for at in range(numbers.shape[0] if fits else 0):
        fits = fits and 0 <= numbers[at] < best.shape[0]
    if not fits:
        raise ValueError("each query has a heap of both")
    with nogil:
        for at in range(others.shape[0]):
            keep_some(
                &heaps, numbers[at], more.distances + at * more.most, more.rows + at * more.most, NULL, more.counts[at]
            )


def sort_heaps(float[:, ::1] best, uint64_t[:, ::1] best_rows, int64_t[::1] counts):
    """Sort the rows of heaps, the nearest first; see the stub."""
    cdef Heaps heaps = heaps_of(best, best_rows, counts)
    if is_long(best.shape[0] * heaps.most * AT_ONCE):
        with nogil:
            _sort_all(&heaps, best.shape[0])
    else:
        _sort_all(&heaps, best.shape[0])


cdef void _sort_all(Heaps *heaps, int64_t count) noexcept nogil:
    cdef int64_t heap, last
    cdef float distance
    cdef float *distances
    cdef uint64_t row
    cdef uint64_t *rows
    for heap in range(count):
        distances, rows = heaps.distances + heap * heaps.most, heaps.rows + heap * heaps.most
        for last in range(heaps.counts[heap] - 1, 0, -1):
            distance, row = distances[last], rows[last]
            distances[last], rows[last] = distances[0], rows[0]
            distances[0], rows[0] = distance, row
            sink(distances, rows, last, 0)
