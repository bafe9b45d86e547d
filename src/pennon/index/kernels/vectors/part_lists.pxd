# cython: language_level=3
"""Lists of partitions, with masks, as kernels take them: threads that search share them."""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc


cdef inline void *room_for(tuple parts, tuple passing, size_t part_bytes) except NULL:
    """Return room of zeros for what a kernel takes of each partition; whoever calls frees it.  Raises ValueError unless each has a mask or None."""
    cdef void *found
    if len(passing) != len(parts):
        raise ValueError("a partition has a mask or None")
    found = calloc(len(parts) + 1, part_bytes)
    if found == NULL:
        raise MemoryError
    return found


cdef inline const uint8_t *mask_of(const uint8_t[::1] mask, int64_t rows) except? NULL:
    """Return which rows of a partition may be found, NULL: all; whoever calls holds it.  Raises ValueError for a mask that does not fit."""
    if mask is None:
        return NULL
    if mask.shape[0] != rows:
        raise ValueError("a mask has a value for each row")
    return &mask[0] if rows else NULL


cdef inline int64_t common_width(int64_t at, int64_t before, int64_t width) except -1:
    """Return how wide rows are, of the partition at a place and of those before it.  Raises ValueError if they differ."""
    if at and width != before:
        raise ValueError("rows of all partitions are as wide")
    return width
