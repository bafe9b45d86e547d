"""Vectors turned, and the distances that codes of RQ (RaBitQ) say; see the stub."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

cdef extern from *:
    """
    #include <math.h>
    #include <stdint.h>
    #include <string.h>
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) \
        && __GNUC__ >= 12 && !defined(__SANITIZE_ADDRESS__)
    #define CLONES __attribute__((target_clones("default", "arch=x86-64-v3")))
    #else
    #define CLONES
    #endif
    #define INLINED static inline __attribute__((always_inline))
    #define GROUP 32 /* rows whose signs are interleaved */
    #define BLOCK 64 /* dimensions whose further bits are stored together */
    #define ROUNDS 4

    typedef uint8_t Bytes __attribute__((vector_size(16)));
    typedef uint16_t Pairs __attribute__((vector_size(16)));
    typedef int32_t Ints __attribute__((vector_size(32)));
    typedef float Lanes __attribute__((vector_size(32), aligned(4), may_alias));
    typedef float Four __attribute__((vector_size(16)));

    /* --- turns -------------------------------------------------------------------------------- */

    CLONES static void turn_row(float *row, const float *flips, int64_t width, int64_t size) {
        float scale = (float)(1 / sqrt((double)size));
        int64_t half = width / 2;
        for (int64_t round = 0; round < ROUNDS; round++) {
            float *part = round % 2 ? row + (width - size) : row;
            for (int64_t at = 0; at < width; at++) row[at] *= flips[round * width + at];
            for (int64_t step = 1; step < size; step *= 2)
                for (int64_t start = 0; start < size; start += 2 * step)
                    for (int64_t at = start; at < start + step; at++) {
                        float a = part[at], b = part[at + step];
                        part[at] = a + b;
                        part[at + step] = a - b;
                    }
            for (int64_t at = 0; at < size; at++) part[at] *= scale;
            if (size == width) continue;
            for (int64_t at = 0; at < half; at++) {
                float a = row[at], b = row[at + half];
                row[at] = a + b;
                row[at + half] = a - b;
            }
        }
        if (size != width)
            for (int64_t at = 0; at < width; at++) row[at] *= 0.25f;
    }

    /* --- tables ------------------------------------------------------------------------------- */

    /* What four signs make of half the values of a query, in steps above the least there may be.
       Steps of almost nothing have no inverse: these are twice as long as the longest sum, and none is taken. */
    CLONES static void tables_of(const float *query, int64_t width, uint8_t *tables, float *range) {
        double reach = 0;
        float longest = 0, step, inverse;
        for (int64_t at = 0; at < width; at += 4) {
            float sum = fabsf(query[at]) + fabsf(query[at + 1]) + fabsf(query[at + 2]) + fabsf(query[at + 3]);
            reach += sum;
            longest = sum > longest ? sum : longest;
        }
        range[0] = (float)(-reach / 2);
        range[1] = INFINITY;
        memset(tables, 0, 4 * width);
        if (!(reach <= 3e38)) return;
        if (longest < 1e-30f) {
            range[1] = 2 * longest;
            return;
        }
        range[1] = step = longest / 255;
        inverse = 1 / step;
        for (int64_t at = 0; at < width; at += 4, tables += 16) {
            float sums[16] = {0};
            for (int bit = 0; bit < 4; bit++) {
                float value = query[at + bit], set = value > 0 ? value : 0, clear = value < 0 ? -value : 0;
                for (int n = 0; n < 16; n++) sums[n] += n >> bit & 1 ? set : clear;
            }
            for (int n = 0; n < 16; n++) {
                int taken = (int)(sums[n] * inverse + 0.5f);
                tables[n] = (uint8_t)(taken > 255 ? 255 : taken);
            }
        }
    }

    INLINED Bytes taken(Bytes table, Bytes places) {
    #if defined(__clang__)
        Bytes found;
        for (int at = 0; at < 16; at++) found[at] = table[places[at]];
        return found;
    #else
        return __builtin_shuffle(table, places);
    #endif
    }

    /* The sums of what tables say of the signs of a group of rows.  Row n and row n + 8 are neighbours: the upper
       bytes are summed alone, and with the lower ones, from which they are taken off in the end. */
    INLINED void group_sums(const uint8_t *signs, const uint8_t *tables, int64_t width, int32_t *sums) {
        const int64_t most = 128; /* so many pairs of bytes go into 16 bits */
        memset(sums, 0, GROUP * sizeof(int32_t));
        for (int64_t at = 0; at < width;) {
            int64_t end = width - at > most ? at + most : width;
            Pairs both[2] = {{0}}, upper[2] = {{0}};
            uint16_t part[GROUP];
            for (; at < end; at++) {
                Bytes first, second, one, other;
                Pairs low, high;
                memcpy(&first, signs + at * GROUP, 16);
                memcpy(&second, signs + at * GROUP + 16, 16);
                memcpy(&one, tables + at * 32, 16);
                memcpy(&other, tables + at * 32 + 16, 16);
                low = (Pairs)taken(one, first & 15), high = (Pairs)taken(other, second & 15);
                both[0] += low + high;
                upper[0] += (low >> 8) + (high >> 8);
                low = (Pairs)taken(one, first >> 4), high = (Pairs)taken(other, second >> 4);
                both[1] += low + high;
                upper[1] += (low >> 8) + (high >> 8);
            }
            for (int half = 0; half < 2; half++) {
                Pairs lower = both[half] - (upper[half] << 8);
                memcpy(part + 16 * half, &lower, 16);
                memcpy(part + 16 * half + 8, &upper[half], 16);
            }
            for (int n = 0; n < GROUP; n++) sums[n] += part[n];
        }
    }

    /* --- codes -------------------------------------------------------------------------------- */

    typedef struct {
        const uint8_t *signs, *rest;
        const float *factors;
        int64_t rows, width, rest_width; /* width: bytes of signs of a row */
        int bits, has_errors;            /* bits beside the sign */
    } Codes;

    typedef struct {
        const float *turned, *ranges, *apart, *bounds;
        const uint8_t *tables;
        int64_t count;
    } Asked;

    INLINED void signs_of(const Codes *codes, int64_t row, int32_t *out) {
        const int64_t start = row / GROUP * GROUP, rest = codes->rows - start, width = codes->width;
        const uint8_t *group = codes->signs + start * width;
        if (rest < GROUP) { /* the last rows fill no group, and lie byte by byte */
            for (int64_t at = 0; at < width; at++) out[at] = group[at * rest + row - start];
            return;
        }
        const int place = row % 16, shift = row % GROUP < 16 ? 0 : 4;
        group += place < 8 ? 2 * place : 2 * place - 15;
        for (int64_t at = 0; at < width; at++)
            out[at] = (group[at * GROUP] >> shift & 15) | (group[at * GROUP + 16] >> shift & 15) << 4;
    }

    /* Add some bits of eight bytes, moved up. */
    INLINED void add_bits(const uint8_t *bytes, int shift, int mask, int up, Ints *out) {
        const Ints places = {0, 8, 16, 24, 0, 8, 16, 24};
        int32_t a, b;
        memcpy(&a, bytes, 4);
        memcpy(&b, bytes + 4, 4);
        *out |= (((Ints){a, a, a, a, b, b, b, b} >> (places + shift)) & mask) << up;
    }

    /* Add the bits of a byte, each moved up. */
    INLINED void add_byte(int32_t byte, int up, Ints *out) {
        const Ints places = {0, 1, 2, 3, 4, 5, 6, 7};
        *out |= ((byte >> places) & 1) << up;
    }

    /* Add the codes of the eight dimensions from 16 k + 8 half on of a block: reference index-vector, 2.9.4. */
    INLINED void add_rest(const uint8_t *block, int bits, int k, int half, Ints *out) {
        switch (bits) {
        case 1: add_byte(block[2 * k + half], 0, out); break;
        case 2: case 3: add_bits(block + 8 * half, 2 * k, 3, 0, out); break;
        case 4: add_bits(block + 8 * k, 4 * half, 15, 0, out); break;
        case 5: add_bits(block + k / 2 * 16 + 8 * half, k % 2 * 4, 15, 0, out); break;
        case 6: case 7:
            if (k < 3)
                add_bits(block + 16 * k + 8 * half, 0, 63, 0, out);
            else
                for (int part = 0; part < 3; part++)
                    add_bits(block + 16 * part + 8 * half, 6, 3, 2 * part, out);
            break;
        case 8: add_bits(block + 16 * k + 8 * half, 0, 255, 0, out); break;
        }
        if (bits == 3 || bits == 5 || bits == 7) /* the highest bits are a plane of their own */
            add_bits(block + 8 * (bits - 1), 2 * k + half, 1, bits - 1, out);
    }

    /* The steps of a row, which its factors turn into a distance: above and below zero. */
    INLINED void steps_of(const Codes *codes, int64_t row, int bits, int32_t *signs, float *out) {
        const float centre = (float)(1 << bits) - 0.5f;
        const int64_t width = codes->width;
        const uint8_t *stored = codes->rest + row * codes->rest_width;
        signs_of(codes, row, signs);
        for (int64_t at = 0; at < width; at++) {
            Ints code = {0};
            add_byte(signs[at], bits, &code);
            if (bits) add_rest(stored + at / 8 * 8 * bits, bits, at % 8 / 2, at % 2, &code);
            *(Lanes *)(out + 8 * at) = __builtin_convertvector(code, Lanes) - centre;
        }
    }

    INLINED float product(const float *a, const float *b, int64_t width) {
        Lanes sums[4] = {{0}}, sum;
        Four low, high;
        int64_t at = 0;
        for (; at + 32 <= width; at += 32)
            for (int lane = 0; lane < 4; lane++)
                sums[lane] += *(const Lanes *)(a + at + 8 * lane) * *(const Lanes *)(b + at + 8 * lane);
        for (; at < width; at += 8) sums[0] += *(const Lanes *)(a + at) * *(const Lanes *)(b + at);
        sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        memcpy(&low, &sum, 16);
        memcpy(&high, (const char *)&sum + 16, 16);
        low += high;
        return (low[0] + low[2]) + (low[1] + low[3]);
    }

    /* Which rows of a group may be nearer than the bound of a query, as far as signs say: bit n is row n. */
    INLINED uint32_t near_rows(const Codes *codes, int64_t start, const Asked *asked, int64_t query) {
        const float *add = codes->factors + start, *scale = add + codes->rows, *error = add + 4 * codes->rows;
        const float *apart = asked->apart + 3 * query, *range = asked->ranges + 2 * query;
        const float bound = asked->bounds[query], share = apart[0], begin = apart[1], spread = apart[2];
        const float least = range[0], step = range[1];
        /* a table rounds to half a step, and what is worked out to 24 bits */
        const float blur = step * (float)codes->width * 1.001f - 4e-6f * least, away = 2e-6f * fabsf(begin);
        uint32_t near = 0;
        int32_t sums[GROUP];
        float lowest[GROUP];
        group_sums(
            codes->signs + start * codes->width, asked->tables + query * codes->width * 32, codes->width, sums
        );
        for (int n = 0; n < GROUP; n++) {
            float rough = (least + step * (float)sums[n]) * scale[n], addend = share * add[n];
            float slack = blur * fabsf(scale[n]) + 2e-6f * fabsf(addend) + away;
            lowest[n] = rough + addend + begin - slack;
        }
        if (codes->has_errors)
            for (int n = 0; n < GROUP; n++) lowest[n] -= error[n] * spread;
        for (int n = 0; n < GROUP; n++) near |= (uint32_t)(lowest[n] < bound) << n;
        return near;
    }

    INLINED void estimates_of(
        const Codes *codes, int bits, const Asked *asked, uint32_t *near, int32_t *signs, float *steps, float *out
    ) {
        const int64_t rows = codes->rows, width = 8 * codes->width, count = asked->count;
        const float *add = codes->factors + (bits ? 2 * rows : 0), *scale = add + rows;
        const int may_leave_out = !bits || codes->has_errors;
        for (int64_t start = 0; start < rows; start += GROUP) {
            int64_t size = rows - start < GROUP ? rows - start : GROUP;
            uint32_t any = 0, all = size == GROUP ? UINT32_MAX : (1u << size) - 1;
            for (int64_t query = 0; query < count; query++) {
                int is_bounded = asked->bounds[query] < INFINITY && asked->ranges[2 * query + 1] < INFINITY;
                near[query] = may_leave_out && is_bounded && size == GROUP
                    ? near_rows(codes, start, asked, query) : all;
                any |= near[query];
                for (int64_t row = start; row < start + size; row++) out[query * rows + row] = INFINITY;
            }
            if (bits) /* which are waited for together */
                for (uint32_t left = any; left; left &= left - 1)
                    for (int64_t at = 0; at < codes->rest_width; at += 64)
                        __builtin_prefetch(codes->rest + (start + __builtin_ctz(left)) * codes->rest_width + at);
            for (; any; any &= any - 1) {
                const int n = __builtin_ctz(any);
                const int64_t row = start + n;
                const float factor = scale[row], addend = add[row];
                steps_of(codes, row, bits, signs, steps);
                for (int64_t query = 0; query < count; query++) {
                    const float *apart = asked->apart + 3 * query;
                    if (near[query] >> n & 1)
                        out[query * rows + row] = product(steps, asked->turned + query * width, width) * factor
                                                  + apart[0] * addend + apart[1];
                }
            }
        }
    }

    #define BITS(COUNT) case COUNT: estimates_of(codes, COUNT, asked, near, signs, steps, out); break;

    CLONES static void all_estimates(
        const Codes *codes, const Asked *asked, uint32_t *near, int32_t *signs, float *steps, float *out
    ) {
        switch (codes->bits) { BITS(0) BITS(1) BITS(2) BITS(3) BITS(4) BITS(5) BITS(6) BITS(7) BITS(8) }
    }
    """
    enum: GROUP
    enum: BLOCK
    enum: ROUNDS

    ctypedef struct Codes:
        const uint8_t *signs
        const uint8_t *rest
        const float *factors
        int64_t rows
        int64_t width
        int64_t rest_width
        int bits
        bint has_errors

    ctypedef struct Asked:
        const float *turned
        const float *ranges
        const float *apart
        const float *bounds
        const uint8_t *tables
        int64_t count

    void turn_row(float *row, const float *flips, int64_t width, int64_t size) noexcept nogil
    void tables_of(const float *query, int64_t width, uint8_t *tables, float *range) noexcept nogil
    void all_estimates(
        const Codes *codes, const Asked *asked, uint32_t *near, int32_t *signs, float *steps, float *out
    ) noexcept nogil


def turn(float[:, ::1] vectors, const float[:, ::1] flips):
    """Turn vectors in place; see the stub."""
    cdef int64_t count = vectors.shape[0], width = vectors.shape[1], size = 1, at
    while 2 * size <= width:
        size *= 2
    if flips.shape[0] != ROUNDS or flips.shape[1] != width or not width or (width % 2 and width > 1):
        raise ValueError("vectors of an even number of values are turned by four signs for each of them")
    with nogil:
        for at in range(count):
            turn_row(&vectors[at, 0], &flips[0, 0], width, size)


def sign_tables(const float[:, ::1] turned, uint8_t[:, :, ::1] tables, float[:, ::1] ranges):
    """Put what four signs at a time make of queries into tables; see the stub."""
    cdef int64_t count = turned.shape[0], width = turned.shape[1], at
    if (
        tables.shape[0] != count or 4 * tables.shape[1] != width or tables.shape[2] != 16
        or ranges.shape[0] != count or ranges.shape[1] != 2 or not width
    ):
        raise ValueError("a query has a table of 16 for each four of its values, and a range")
    with nogil:
        for at in range(count):
            tables_of(&turned[at, 0], width, &tables[at, 0, 0], &ranges[at, 0])


def estimates(
    const uint8_t[:, ::1] signs, const uint8_t[:, ::1] rest, const float[:, ::1] factors,
    const float[:, ::1] turned, const uint8_t[:, :, ::1] tables, const float[:, ::1] ranges,
    const float[:, ::1] apart, const float[::1] bounds, float[:, ::1] out,
):
    """Put what codes say of how far rows are from queries into ``out``; see the stub."""
    cdef Codes codes
    cdef Asked asked
    cdef uint32_t *near = NULL
    cdef int32_t *unpacked = NULL
    cdef float *steps = NULL
    cdef bint is_done
    cdef int64_t blocks = (8 * signs.shape[1] + BLOCK - 1) // BLOCK
    codes.rows, codes.width, asked.count = signs.shape[0], signs.shape[1], turned.shape[0]
    codes.rest_width, codes.has_errors = rest.shape[1], factors.shape[0] == 5
    codes.bits = <int> (rest.shape[1] // (8 * blocks)) if blocks else 0
    if (
        not codes.width or rest.shape[0] != codes.rows or codes.rest_width != 8 * blocks * codes.bits
        or codes.rest_width > 64 * blocks or factors.shape[1] != codes.rows
        or (factors.shape[0] not in (4, 5) if codes.bits else factors.shape[0] != 2)
    ):
        raise ValueError("rows have signs, no more than 8 further bits of each number, and 2, 4 or 5 factors")
    if (
        turned.shape[1] != 8 * codes.width or tables.shape[0] != asked.count
        or tables.shape[1] != 2 * codes.width or tables.shape[2] != 16
        or ranges.shape[0] != asked.count or ranges.shape[1] != 2
        or apart.shape[0] != asked.count or apart.shape[1] != 3 or bounds.shape[0] != asked.count
        or out.shape[0] != asked.count or out.shape[1] != codes.rows
    ):
        raise ValueError("queries are as wide as rows, with tables, a range, a bound and a distance for each row")
    if not codes.rows or not asked.count:
        return
    codes.signs, codes.factors = &signs[0, 0], &factors[0, 0]
    codes.rest = &rest[0, 0] if codes.bits else NULL
    asked.turned, asked.tables, asked.ranges = &turned[0, 0], &tables[0, 0, 0], &ranges[0, 0]
    asked.apart, asked.bounds = &apart[0, 0], &bounds[0]
    near = <uint32_t *> malloc(asked.count * sizeof(uint32_t))
    unpacked = <int32_t *> malloc(codes.width * sizeof(int32_t))
    steps = <float *> malloc(8 * codes.width * sizeof(float))
    is_done = near != NULL and unpacked != NULL and steps != NULL
    if is_done:
        with nogil:
            all_estimates(&codes, &asked, near, unpacked, steps, &out[0, 0])
    free(near)
    free(unpacked)
    free(steps)
    if not is_done:
        raise MemoryError
