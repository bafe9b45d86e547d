# cython: language_level=3
"""How far rows of a graph are from one another, in plain C that is compiled for several kinds of processors."""

cdef extern from *:
    """
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>

    #if !defined(__GNUC__)
    #error "the kernels take a compiler with vector types: gcc or clang"
    #endif
    #define PENNON_ALWAYS static inline __attribute__((always_inline))
    typedef float lanes __attribute__((vector_size(64), aligned(4), may_alias));
    typedef float half_lanes __attribute__((vector_size(32), aligned(4), may_alias));
    typedef float few_lanes __attribute__((vector_size(16), aligned(4), may_alias));

    enum { SQUARES, PRODUCTS, CODE_SQUARES, KINDS_APART };
    enum { MOST_BYTES = 1 << 15 };  /* whose squares go into 31 bits */
    enum { LINE = 64 };  /* bytes that memory gives at once */

    PENNON_ALWAYS float sum_of(const lanes *s) {
        half_lanes a, b;
        few_lanes c, d;
        memcpy(&a, s, sizeof(a));
        memcpy(&b, (const char *)s + sizeof(a), sizeof(b));
        a += b;
        memcpy(&c, &a, sizeof(c));
        memcpy(&d, (const char *)&a + sizeof(c), sizeof(d));
        c += d;
        return (c[0] + c[2]) + (c[1] + c[3]);
    }

    PENNON_ALWAYS float far_between(const uint8_t *a, const uint8_t *b, int64_t bytes, const int kind) {
        lanes s = {0}, t = {0}, x, y;
        int64_t i = 0;
        if (kind == CODE_SQUARES) {
            int total = 0, k;
            for (; i < bytes; i += LINE)
                for (k = 0; k < LINE; k++) {
                    short apart = (short)(a[i + k] - b[i + k]);
                    total += apart * apart;
                }
            return (float)total;
        }
        for (; i + 2 * LINE <= bytes; i += 2 * LINE) {
            if (kind == PRODUCTS) {
                s += *(const lanes *)(a + i) * *(const lanes *)(b + i);
                t += *(const lanes *)(a + i + LINE) * *(const lanes *)(b + i + LINE);
            } else {
                x = *(const lanes *)(a + i) - *(const lanes *)(b + i);
                y = *(const lanes *)(a + i + LINE) - *(const lanes *)(b + i + LINE);
                s += x * x; t += y * y;
            }
        }
        if (i < bytes && kind == PRODUCTS) s += *(const lanes *)(a + i) * *(const lanes *)(b + i);
        else if (i < bytes) { x = *(const lanes *)(a + i) - *(const lanes *)(b + i); s += x * x; }
        s += t;
        return kind == PRODUCTS ? 1 - sum_of(&s) : sum_of(&s);
    }
    """
    enum:
        LINE, SQUARES, PRODUCTS, CODE_SQUARES, KINDS_APART, MOST_BYTES
