# cython: language_level=3
"""Rows of vectors and a query, of the kinds of `pennon.index.kernels.vectors.vector_rows`."""

from libc.stdint cimport int64_t, uint8_t

cdef extern from *:
    """
    enum { KINDS = 8 };
    static const int ROW_BYTES[KINDS] = {4, 4, 8, 8, 1, 1, 1, 1}; /* of a value */
    static const int QUERY_BYTES[KINDS] = {4, 4, 8, 8, 1, 4, 1, 1024}; /* of what stands for a value in the query */
    """
    enum:
        KINDS
    const int *ROW_BYTES
    const int *QUERY_BYTES


cdef struct Space:
    int kind
    const uint8_t *rows
    const uint8_t *query
    int64_t width
    int64_t row_bytes
    int64_t count


cdef inline Space space_of_rows(int kind, const uint8_t *rows, int64_t count, int64_t row_bytes) except *:
    """Return rows without a query.  Raises ValueError for some that do not fit."""
    cdef Space made
    if kind < 0 or kind >= KINDS or row_bytes % ROW_BYTES[kind]:
        raise ValueError("rows of vectors are whole values of a kind that is known")
    made.kind, made.rows, made.query = kind, rows, NULL
    made.count, made.row_bytes, made.width = count, row_bytes, row_bytes // ROW_BYTES[kind]
    return made


cdef inline Space space_of(
    int kind, const uint8_t[:, ::1] rows, const uint8_t[::1] query
) except *:
    """Return rows and a query as arrays have them.  Raises ValueError for arrays that do not fit."""
    cdef Space made = space_of_rows(kind, &rows[0, 0] if rows.shape[0] else NULL, rows.shape[0], rows.shape[1])
    if query.shape[0] != made.width * QUERY_BYTES[kind] or not made.width:
        raise ValueError("a query has as many values as the vectors")
    made.query = &query[0]
    return made
