# cython: language_level=3
"""Indices of several pages to the items that they name.  See dictionaries.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef fused Index:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused Item:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef int64_t _look_up(
    const Item* items, uint64_t count, const Index* indices, int64_t rows, Item* found
) noexcept nogil:
    """Write the items; return how many indices name none."""
    cdef int64_t i, outside = 0
    for i in range(rows):
        if <uint64_t>indices[i] < count:
            found[i] = items[indices[i]]
        else:
            found[i] = 0
            outside += 1
    return outside


def look_up(list dictionaries, const int64_t[::1] ends, const Index[::1] indices, Item[::1] found):
    """See dictionaries.pyi."""
    cdef Py_ssize_t page, pages = ends.shape[0]
    cdef int64_t start = 0, end, outside = 0, rows = indices.shape[0]
    cdef const Item[::1] items
    cdef const Item* data
    cdef Item none = 0
    if len(dictionaries) != pages or found.shape[0] != rows:
        raise ValueError("pages or values differ in number")
    for page in range(pages):
        items = dictionaries[page]
        end = ends[page]
        if not start <= end <= rows:
            raise ValueError("ends fall, or lie behind the last value")
        if start == end:
            continue
        data = &items[0] if items.shape[0] else &none
        with nogil:
            outside += _look_up(data, <uint64_t>items.shape[0], &indices[start], end - start, &found[start])
        start = end
    if start != rows:
        raise ValueError("values behind those of the last page")
    return outside
