# cython: language_level=3
"""Rows of several arrays, in any order, as one array.  See order_rows.pyi."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

import numpy as np

from pennon.core.kernels.long_work cimport is_long
from pennon.encoding.kernels.strings cimport read_offset

from pennon.core.memory import allocate
from pennon.errors import FormatError, TooLargeError

cdef enum:
    ROW_STEPS = 8  # nanoseconds that a row takes, about
    COPIED = 8     # bytes of a row that are copied in one


cdef struct Piece:
    const uint8_t* data
    const uint8_t* offsets
    int64_t size        # bytes of data
    int64_t first_bit   # of bits: where the first row is
    int64_t first       # the number of its first row among those of all pieces


cdef class _Pieces:
    """The buffers of each array, and the number of the first row of each."""

    cdef Piece* pieces  # one more than there are, whose first row is the number of all
    cdef Py_ssize_t count
    cdef list held

    def __cinit__(self, sources, *_, **__):
        self.count = len(sources)
        self.held = []
        self.pieces = <Piece*>calloc(self.count + 1, sizeof(Piece))
        if self.pieces == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.pieces)

    @property
    def rows(self):
        return self.pieces[self.count].first

    cdef int hold(self, Py_ssize_t number, const uint8_t[::1] data) except -1:
        self.held.append(data)
        self.pieces[number].size = data.shape[0]
        self.pieces[number].data = &data[0] if data.shape[0] else NULL
        return 0

    cdef int check(self, const int64_t[::1] order) except -1:
        cdef int64_t rows = self.pieces[self.count].first
        cdef Py_ssize_t i
        for i in range(order.shape[0]):
            if not 0 <= order[i] < rows:
                raise ValueError(f"row {order[i]} of {rows}")
        return 0

    cdef inline const Piece* find(self, int64_t row, const Piece* near) noexcept nogil:
        """Return the piece that holds a row; ``near`` is a guess."""
        cdef Py_ssize_t low, high, middle
        if near[0].first <= row < near[1].first:
            return near
        low, high = 0, self.count
        while high - low > 1:
            middle = (low + high) // 2
            if self.pieces[middle].first <= row:
                low = middle
            else:
                high = middle
        return self.pieces + low


cdef class FixedRows(_Pieces):
    """See order_rows.pyi."""

    cdef int64_t width

    def __init__(self, sources, int64_t width):
        cdef Py_ssize_t i
        if width < 1:
            raise ValueError(f"values of {width} bytes")
        self.width = width
        for i in range(self.count):
            self.hold(i, sources[i])
            if self.pieces[i].size % width:
                raise ValueError(f"{self.pieces[i].size} bytes are no values of {width} bytes")
            self.pieces[i + 1].first = self.pieces[i].first + self.pieces[i].size // width

    def put(self, const int64_t[::1] order):
        cdef Py_ssize_t count = order.shape[0]
        self.check(order)
        found = allocate(count * self.width, np.uint8)
        cdef uint8_t[::1] out = found
        if is_long(count * (ROW_STEPS + self.width // COPIED)):
            with nogil:
                self.copy(order, &out[0])
        elif count:
            self.copy(order, &out[0])
        return found

    cdef void copy(self, const int64_t[::1] order, uint8_t* out) noexcept nogil:
        cdef Py_ssize_t i, count = order.shape[0]
        cdef int64_t width = self.width
        cdef const Piece* piece = self.pieces
        cdef const uint8_t* value
        for i in range(count):
            piece = self.find(order[i], piece)
            value = piece.data + (order[i] - piece.first) * width
            if width == 8:
                memcpy(out + 8 * i, value, 8)
            elif width == 4:
                memcpy(out + 4 * i, value, 4)
            else:
                memcpy(out + width * i, value, width)


cdef class BitRows(_Pieces):
    """See order_rows.pyi."""

    def __init__(self, sources, const int64_t[::1] firsts, const int64_t[::1] rows):
        cdef Py_ssize_t i
        if firsts.shape[0] != self.count or rows.shape[0] != self.count:
            raise ValueError("bits, first bits and rows differ in length")
        for i in range(self.count):
            if firsts[i] < 0 or rows[i] < 0:
                raise ValueError("bits before the first, or fewer rows than none")
            if sources[i] is not None:
                self.hold(i, sources[i])
                if rows[i] > 8 * self.pieces[i].size - firsts[i]:
                    raise ValueError(f"{rows[i]} bits in {self.pieces[i].size} bytes")
            self.pieces[i].first_bit = firsts[i]
            self.pieces[i + 1].first = self.pieces[i].first + rows[i]

    def put(self, const int64_t[::1] order):
        cdef Py_ssize_t count = order.shape[0]
        self.check(order)
        found = allocate((count + 7) // 8, np.uint8)
        cdef uint8_t[::1] out = found
        if is_long(count * ROW_STEPS):
            with nogil:
                self.copy(order, &out[0])
        elif count:
            self.copy(order, &out[0])
        return found

    cdef void copy(self, const int64_t[::1] order, uint8_t* out) noexcept nogil:
        cdef Py_ssize_t i, count = order.shape[0]
        cdef const Piece* piece = self.pieces
        cdef int64_t bit
        cdef uint8_t is_set
        memset(out, 0, (count + 7) // 8)
        for i in range(count):
            piece = self.find(order[i], piece)
            bit = piece.first_bit + order[i] - piece.first
            is_set = 1 if piece.data == NULL else (piece.data[bit >> 3] >> (bit & 7)) & 1
            out[i >> 3] |= is_set << (i & 7)


cdef class StringRows(_Pieces):
    """See order_rows.pyi."""

    cdef int width

    def __init__(self, sources, offsets, int width):
        cdef Py_ssize_t i
        cdef const uint8_t[::1] table
        if len(offsets) != self.count or width not in (4, 8):
            raise ValueError("offsets and bytes differ in length, or no such offsets")
        self.width = width
        for i in range(self.count):
            self.hold(i, sources[i])
            table = offsets[i]
            self.held.append(table)
            if table.shape[0] % width or not table.shape[0]:
                raise ValueError(f"{table.shape[0]} bytes are no offsets")
            self.pieces[i].offsets = &table[0]
            self.pieces[i + 1].first = self.pieces[i].first + table.shape[0] // width - 1

    def put(self, const int64_t[::1] order):
        cdef Py_ssize_t count = order.shape[0]
        cdef int64_t size
        self.check(order)
        found = allocate((count + 1) * self.width, np.uint8)
        found[: self.width] = 0
        places = np.empty(count, np.uint64)
        cdef uint8_t[::1] ends = found
        cdef uint64_t[::1] place = places
        cdef uint8_t[::1] out
        if not count:
            return found, allocate(0, np.uint8)
        if is_long(count * ROW_STEPS):
            with nogil:
                size = self.measure(order, &place[0], &ends[self.width])
        else:
            size = self.measure(order, &place[0], &ends[self.width])
        if size < 0:
            raise FormatError("offsets of strings fall, or leave their bytes")
        if self.width == 4 and size > INT32_MAX:
            raise TooLargeError(f"strings of {size} bytes in an array that holds {INT32_MAX}")
        values = allocate(size, np.uint8)
        if size:
            out = values
            if is_long(count * ROW_STEPS + size // COPIED):
                with nogil:
                    self.copy(count, &place[0], &ends[0], &out[0])
            else:
                self.copy(count, &place[0], &ends[0], &out[0])
        return found, values

    cdef int64_t measure(
        self, const int64_t[::1] order, uint64_t* places, uint8_t* ends
    ) noexcept nogil:
        """Note where each string lies and ends; return the bytes of all, -1 if one leaves its data."""
        cdef Py_ssize_t i, count = order.shape[0]
        cdef const Piece* piece = self.pieces
        cdef int64_t row, begin, end, size = 0
        cdef int32_t narrow
        for i in range(count):
            piece = self.find(order[i], piece)
            row = order[i] - piece.first
            begin = read_offset(piece.offsets, row, self.width)
            end = read_offset(piece.offsets, row + 1, self.width)
            if not 0 <= begin <= end <= piece.size:
                return -1
            places[i] = <uint64_t>piece.data + begin
            size += end - begin
            if self.width == 4:
                narrow = <int32_t>min(size, INT32_MAX)
                memcpy(ends + 4 * i, &narrow, 4)
            else:
                memcpy(ends + 8 * i, &size, 8)
        return size

    cdef void copy(
        self, Py_ssize_t count, const uint64_t* places, const uint8_t* ends, uint8_t* out
    ) noexcept nogil:
        cdef Py_ssize_t i
        cdef int64_t begin, end = 0
        for i in range(count):
            begin, end = end, read_offset(ends, i + 1, self.width)
            if end > begin:
                memcpy(out + begin, <const uint8_t*>places[i], end - begin)
