cdef bint is_mapped(const void *address) noexcept
