# cython: language_level=3
"""What a query and the centroid of a partition add to the distances that codes of RQ say."""

from libc.stdint cimport int64_t

from pennon.index.kernels.vectors cimport vector_sums

cdef extern from *:
    """
    #include <math.h>
    typedef float Fours __attribute__((vector_size(16)));

    typedef struct {
        Fours squares, products, norms;
    } ApartSums;

    INLINED void add_apart(const float *query, const float *centroid, int is_product, ApartSums *sums) {
        Fours one, other;
        memcpy(&one, query, 16);
        memcpy(&other, centroid, 16);
        if (is_product) {
            sums->products += one * other;
            sums->norms += other * other;
        }
        one -= other;
        sums->squares += one * one;
    }
    INLINED float sum_of_four(Fours sum) { return (sum[0] + sum[1]) + (sum[2] + sum[3]); }

    /* What a query and the centroid of its partition add to distances.  Sums are taken in the order of numpy's einsum,
       by processors of any age, so that distances have the same last bit. */
    static void apart_of(
        const float *query, const float *centroid, int64_t width, int is_product, int is_by_residual, float *out
    ) {
        ApartSums sums = {{0}, {0}, {0}};
        float products, norms;
        int64_t at = 0;
        for (; at + 16 <= width; at += 16)
            for (int part = 12; part >= 0; part -= 4) add_apart(query + at + part, centroid + at + part, is_product, &sums);
        for (; at < width; at += 4) add_apart(query + at, centroid + at, is_product, &sums);
        out[0] = 1;
        out[1] = sum_of_four(sums.squares);
        out[2] = sqrtf(out[1]);
        if (!is_product) return;
        products = sum_of_four(sums.products), norms = sum_of_four(sums.norms);
        out[1] = -products;
        if (is_by_residual) return;
        out[0] = norms == 0 ? 0 : products / norms; /* the centroid's own part goes by what the row's factor says of it */
        out[1] = 1 - products - out[0];
    }
    """
    void apart_of(
        const float *query, const float *centroid, int64_t width, bint is_product, bint is_by_residual, float *out
    ) noexcept nogil
