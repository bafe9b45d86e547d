# cython: language_level=3
"""Codes of RQ (RaBitQ) in plain C: how near a row may be by its signs, and how far it is; see `pennon.index.kernels.vectors.rabit`."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from pennon.index.kernels.vectors cimport vector_sums

cdef extern from *:
    """
    #include <math.h>
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    #endif
    #define GROUP 32 /* rows whose signs are interleaved */
    #define BLOCK 64 /* dimensions whose further bits are stored together */
    #define ROUNDS 4

    typedef uint8_t Bytes __attribute__((vector_size(16)));
    typedef uint16_t Pairs __attribute__((vector_size(16)));
    typedef int32_t Ints __attribute__((vector_size(32)));
    typedef float Lanes __attribute__((vector_size(32), aligned(4), may_alias));
    typedef float Four __attribute__((vector_size(16)));

    /* --- turns -------------------------------------------------------------------------------- */

    /* Add to each of eight values, by its sign, the one that is `step` away. */
    INLINED void add_partners(Lanes *values, const int step, const Lanes *signs) {
    #if defined(__clang__)
        Lanes others;
        for (int at = 0; at < 8; at++) others[at] = (*values)[at ^ step];
    #else
        const Ints places = {0 ^ step, 1 ^ step, 2 ^ step, 3 ^ step, 4 ^ step, 5 ^ step, 6 ^ step, 7 ^ step};
        Lanes others = __builtin_shuffle(*values, places);
    #endif
        *values = others + *values * *signs;
    }
    /* Sums and differences of values 1, 2 and 4 apart, of eight at a time. */
    INLINED void turn_eights(float *part, int64_t size) {
        const Lanes one = {1, -1, 1, -1, 1, -1, 1, -1}, two = {1, 1, -1, -1, 1, 1, -1, -1};
        const Lanes four = {1, 1, 1, 1, -1, -1, -1, -1};
        for (int64_t at = 0; at < size; at += 8) {
            Lanes values = *(const Lanes *)(part + at);
            add_partners(&values, 1, &one);
            add_partners(&values, 2, &two);
            add_partners(&values, 4, &four);
            *(Lanes *)(part + at) = values;
        }
    }
    CLONES static void turn_row(float *row, const float *flips, int64_t width, int64_t size) {
        float scale = (float)(1 / sqrt((double)size));
        int64_t half = width / 2;
        for (int64_t round = 0; round < ROUNDS; round++) {
            float *part = round % 2 ? row + (width - size) : row;
            for (int64_t at = 0; at < width; at++) row[at] *= flips[round * width + at];
            if (size >= 8) turn_eights(part, size);
            for (int64_t step = size >= 8 ? 8 : 1; step < size; step *= 2)
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

    /* Sums of pairs of neighbours, of rows n and n + 8: both together, and the upper ones alone. */
    INLINED void add_parted(Pairs both, Pairs upper, int32_t *sums) {
        uint16_t part[16];
        Pairs lower = both - (upper << 8);
        memcpy(part, &lower, 16);
        memcpy(part + 8, &upper, 16);
        for (int n = 0; n < 16; n++) sums[n] += part[n];
    }

    enum { MOST_SUMMED = 128 }; /* so many pairs of bytes go into 16 bits */

    /* The sums of what tables say of the signs of a group of rows.  Row n and row n + 8 are neighbours: the upper
       bytes are summed alone, and with the lower ones, from which they are taken off in the end. */
    static void group_sums_plain(const uint8_t *signs, const uint8_t *tables, int64_t width, int32_t *sums) {
        for (int64_t at = 0; at < width;) {
            int64_t end = width - at > MOST_SUMMED ? at + MOST_SUMMED : width;
            Pairs both[2] = {{0}}, upper[2] = {{0}};
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
            for (int half = 0; half < 2; half++) add_parted(both[half], upper[half], sums + 16 * half);
        }
    }

    #if defined(__x86_64__) && defined(__GNUC__)
    __attribute__((target("avx2"))) static inline void add_wide(__m128i some, int32_t *sums) {
        __m256i so_far = _mm256_loadu_si256((const __m256i *)sums);
        _mm256_storeu_si256((__m256i *)sums, _mm256_add_epi32(so_far, _mm256_cvtepu16_epi32(some)));
    }
    /* The same, both halves of a byte at once. */
    __attribute__((target("avx2"))) static void group_sums_v3(
        const uint8_t *signs, const uint8_t *tables, int64_t width, int32_t *sums
    ) {
        const __m256i low = _mm256_set1_epi8(15);
        for (int64_t at = 0; at < width;) {
            int64_t end = width - at > MOST_SUMMED ? at + MOST_SUMMED : width;
            __m256i both[2], upper[2];
            for (int half = 0; half < 2; half++) both[half] = upper[half] = _mm256_setzero_si256();
            for (; at < end; at++) {
                __m256i some = _mm256_loadu_si256((const __m256i *)(signs + at * GROUP));
                __m256i table = _mm256_loadu_si256((const __m256i *)(tables + at * 32));
                __m256i one = _mm256_shuffle_epi8(table, _mm256_and_si256(some, low));
                __m256i other = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(some, 4), low));
                both[0] = _mm256_add_epi16(both[0], one);
                upper[0] = _mm256_add_epi16(upper[0], _mm256_srli_epi16(one, 8));
                both[1] = _mm256_add_epi16(both[1], other);
                upper[1] = _mm256_add_epi16(upper[1], _mm256_srli_epi16(other, 8));
            }
            for (int half = 0; half < 2; half++) {
                __m128i a = _mm_add_epi16(
                    _mm256_castsi256_si128(both[half]), _mm256_extracti128_si256(both[half], 1));
                __m128i b = _mm_add_epi16(
                    _mm256_castsi256_si128(upper[half]), _mm256_extracti128_si256(upper[half], 1));
                add_wide(_mm_sub_epi16(a, _mm_slli_epi16(b, 8)), sums + 16 * half);
                add_wide(b, sums + 16 * half + 8);
            }
        }
    }
    #endif

    typedef void (*Summing)(const uint8_t *signs, const uint8_t *tables, int64_t width, int32_t *sums);

    static Summing choose_summing(void) {
        #if defined(__x86_64__) && defined(__GNUC__)
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx2")) return group_sums_v3;
        #endif
        return group_sums_plain;
    }

    /* --- codes -------------------------------------------------------------------------------- */

    typedef struct {
        const uint8_t *signs, *rest;
        const float *factors;
        int64_t rows, width, rest_width; /* width: bytes of signs of a row */
        int bits, has_errors;            /* bits beside the sign */
    } Codes;

    typedef struct {
        const float *turned, *range, *apart;
        const uint8_t *tables, *laid; /* laid: the tables by words, see `near_signs`; NULL where they are not */
    } EncodedQuery;

    /* How far half the product of a query and signs may be off: a table rounds to half a step, and what is worked out
       to 24 bits. */
    INLINED float blur_of(const Codes *codes, const EncodedQuery *asked) {
        return asked->range[1] * (float)codes->width * 1.001f - 4e-6f * asked->range[0];
    }

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

    typedef uint8_t EightBytes __attribute__((vector_size(8)));

    /* Add some bits of eight bytes, moved up. */
    INLINED void add_bits(const uint8_t *bytes, int shift, int mask, int up, Ints *out) {
        EightBytes some;
        memcpy(&some, bytes, 8);
        *out |= ((__builtin_convertvector(some, Ints) >> shift) & mask) << up;
    }

    /* Add the bits of a byte, each moved up. */
    INLINED void add_byte(int32_t byte, int up, Ints *out) {
        const Ints places = {1, 2, 4, 8, 16, 32, 64, 128};
        *out |= ((byte & places) == places) & (1 << up);
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

    INLINED void bounds(
        const Codes *codes, int64_t start, int64_t size, const EncodedQuery *asked, const int32_t *sums,
        float *restrict lowest, float *restrict highest
    ) {
        const float *add = codes->factors + start, *scale = add + codes->rows, *error = add + 4 * codes->rows;
        const float share = asked->apart[0], begin = asked->apart[1], spread = asked->apart[2];
        const float least = asked->range[0], step = asked->range[1];
        const float blur = blur_of(codes, asked), away = 2e-6f * fabsf(begin);
        for (int64_t n = 0; n < size; n++) {
            float rough = (least + step * (float)sums[n]) * scale[n], addend = share * add[n];
            float slack = blur * fabsf(scale[n]) + 2e-6f * fabsf(addend) + away;
            lowest[n] = rough + addend + begin - slack;
            if (highest) highest[n] = rough + addend + begin + slack;
        }
        if (codes->has_errors)
            for (int64_t n = 0; n < size; n++) {
                lowest[n] -= error[n] * spread;
                if (highest) highest[n] += error[n] * spread;
            }
    }

    /* How near the rows of a group may be, as far as signs say, and how far at most by the same, unless it is NULL. */
    CLONES static void bounds_of(
        const Codes *codes, int64_t start, int64_t size, const EncodedQuery *asked, Summing summing, float *lowest, float *highest
    ) {
        const uint8_t *group = codes->signs + start * codes->width;
        int32_t sums[GROUP];
        for (int n = 0; n < GROUP; n++) sums[n] = 0;
        if (size == GROUP)
            summing(group, asked->tables, codes->width, sums);
        else /* the last rows fill no group, and lie byte by byte */
            for (int64_t at = 0; at < codes->width; at++)
                for (int64_t n = 0; n < size; n++) {
                    uint8_t byte = group[at * size + n];
                    sums[n] += asked->tables[at * 32 + (byte & 15)] + asked->tables[at * 32 + 16 + (byte >> 4)];
                }
        if (size == GROUP) /* loops of a known length have no rest */
            bounds(codes, start, GROUP, asked, sums, lowest, highest);
        else
            bounds(codes, start, size, asked, sums, lowest, highest);
    }

    #define STEPS(COUNT) case COUNT: steps_of(codes, row, COUNT, signs, steps); break;

    CLONES static float estimate_of(const Codes *codes, const EncodedQuery *asked, int64_t row, int32_t *signs, float *steps) {
        const float *add = codes->factors + (codes->bits ? 2 * codes->rows : 0), *scale = add + codes->rows;
        switch (codes->bits) {
            STEPS(0) STEPS(1) STEPS(2) STEPS(3) STEPS(4) STEPS(5) STEPS(6) STEPS(7) STEPS(8)
        }
        return product(steps, asked->turned, 8 * codes->width) * scale[row]
               + asked->apart[0] * add[row] + asked->apart[1];
    }

    INLINED void ask_ahead(const Codes *codes, int64_t row) {
        for (int64_t at = 0; at < codes->rest_width; at += 64)
            __builtin_prefetch(codes->rest + row * codes->rest_width + at);
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

    ctypedef struct EncodedQuery:
        const float *turned
        const float *range
        const float *apart
        const uint8_t *tables
        const uint8_t *laid

    ctypedef void (*Summing)(const uint8_t *, const uint8_t *, int64_t, int32_t *) noexcept nogil
    Summing choose_summing() noexcept nogil
    float INFINITY

    void turn_row(float *row, const float *flips, int64_t width, int64_t size) noexcept nogil
    void tables_of(const float *query, int64_t width, uint8_t *tables, float *range) noexcept nogil
    void ask_ahead(const Codes *codes, int64_t row) noexcept nogil
