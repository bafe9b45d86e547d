from libc.stdint cimport int64_t, uint8_t

cdef int64_t check_chunks(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] sizes,
    const int64_t[::1] counts, int offset_width,
    const int64_t[::1] item_starts, const int64_t[::1] item_ends,
) except -1

cdef Py_ssize_t cut_items(
    const int64_t[::1] counts, const int64_t[::1] item_starts, const int64_t[::1] item_ends,
    int64_t[:, ::1] pieces,
) noexcept nogil

cdef int64_t read_offset(const uint8_t* table, int64_t index, int width) noexcept nogil

cdef bint offsets_rise(
    const uint8_t* table, int64_t first, int64_t last, int width, int64_t size
) noexcept nogil
