# cython: language_level=3
"""Cut the arrays of a record batch so that their buffers hold their own rows only.  See exact_arrays.pyi.

A batch comes through the Arrow C data interface.  Each column becomes a tree of structs of its own,
with offset 0 everywhere::

    fixed width     the pointer moves; nothing is copied
    bits            the pointer moves by bytes; where rows begin within a byte, bits are copied
    text, lists     offsets that do not begin at 0 are copied, less the first; the bytes stay in place

A column that is copied has all its buffers in one block of memory of its own.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from pennon.core.kernels.mapping cimport is_mapped
from pennon.core.memory import allocate_buffer
from pennon.errors import FormatError

cdef extern from "Python.h":
    int Py_IsInitialized() noexcept nogil

cdef struct ArrowArray:
    int64_t length
    int64_t null_count
    int64_t offset
    int64_t n_buffers
    int64_t n_children
    const void **buffers
    ArrowArray **children
    ArrowArray *dictionary
    void (*release)(ArrowArray *) noexcept nogil
    void *private_data


cdef enum Layout:
    NULLS = 0
    FIXED = 1
    BITS = 2
    BYTES_32 = 3
    BYTES_64 = 4
    LIST_32 = 5
    LIST_64 = 6
    FIXED_LIST = 7
    STRUCT = 8
    OTHER = 9


cdef enum Copy:
    PLAIN = 0
    SHIFTED_BITS = 1
    OFFSETS_32 = 2
    OFFSETS_64 = 3


cdef struct Piece:
    # A buffer of the result: ``slot`` holds its address, of the source or of the copy.
    const void **slot
    const uint8_t *source
    int64_t size_bytes
    int64_t first       # the first bit in the first byte, or the offset that becomes 0
    int64_t bits        # how many bits there are, of bits
    Copy how
    bint must_copy


cdef struct Plan:
    Piece *pieces
    Py_ssize_t count
    Py_ssize_t room
    int64_t own_bytes
    bint all_mapped
    bint keeps_source   # a dictionary is borrowed


cdef struct Owned:
    # What one column holds: the array that it was cut from, and the pyarrow buffer of its copies.
    # Arrow's pool keeps what is given back: memory fresh from the system costs more than to copy.
    ArrowArray source
    PyObject *block


cdef void release_child(ArrowArray *array) noexcept nogil:
    array.release = NULL


cdef void free_tree(ArrowArray *array) noexcept nogil:
    cdef int64_t i
    if array.children != NULL:
        for i in range(array.n_children):
            if array.children[i] != NULL:
                free_tree(array.children[i])
                free(array.children[i])
        free(array.children)
    if array.buffers != NULL:
        free(<void *> array.buffers)


cdef void release_column(ArrowArray *array) noexcept nogil:
    cdef Owned *owned = <Owned *> array.private_data
    free_tree(array)
    if owned.source.release != NULL:
        owned.source.release(&owned.source)
    if owned.block != NULL and Py_IsInitialized():
        with gil:
            Py_DECREF(<object> owned.block)
    free(owned)
    array.release = NULL


cdef int add(
    Plan *plan, const void **slot, const void *source, int64_t size_bytes, Copy how, int64_t first,
    bint must_copy,
) except -1:
    """Note a buffer of the result; without a copy it begins at ``source``."""
    cdef Piece *grown
    cdef Piece *piece
    if plan.count == plan.room:
        plan.room = max(2 * plan.room, 8)
        grown = <Piece *> realloc(plan.pieces, plan.room * sizeof(Piece))
        if grown == NULL:
            raise MemoryError
        plan.pieces = grown
    piece = plan.pieces + plan.count
    plan.count += 1
    piece.slot, piece.source, piece.size_bytes = slot, <const uint8_t *> source, size_bytes
    piece.how, piece.first, piece.must_copy, piece.bits = how, first, must_copy, 0
    slot[0] = source
    plan.own_bytes += size_bytes
    if source != NULL and size_bytes and not is_mapped(source):
        plan.all_mapped = False
    return 0


cdef int add_bits(
    Plan *plan, const void **slot, const uint8_t *source, int64_t start, int64_t rows
) except -1:
    if source == NULL:
        slot[0] = NULL
    elif start & 7:
        add(plan, slot, source + (start >> 3), (rows + 7) >> 3, SHIFTED_BITS, start & 7, True)
        plan.pieces[plan.count - 1].bits = rows
    else:
        add(plan, slot, source + (start >> 3), (rows + 7) >> 3, PLAIN, 0, False)
    return 0


cdef int add_offsets(
    Plan *plan, const void **slot, const void *source, int64_t start, int64_t rows, int width,
    int64_t *first, int64_t *end,
) except -1:
    """Note rows + 1 offsets; return the first and the last one."""
    cdef const int32_t *narrow = <const int32_t *> source
    cdef const int64_t *wide = <const int64_t *> source
    first[0] = end[0] = 0
    if source == NULL or rows == 0:
        add(plan, slot, NULL, width, PLAIN, 0, True)
        return 0
    if width == 4:
        first[0], end[0] = narrow[start], narrow[start + rows]
    else:
        first[0], end[0] = wide[start], wide[start + rows]
    if first[0] < 0 or end[0] < first[0]:
        raise FormatError(f"offsets run from {first[0]} to {end[0]}")
    add(
        plan, slot, <const uint8_t *> source + start * width, (rows + 1) * width,
        PLAIN if first[0] == 0 else OFFSETS_32 if width == 4 else OFFSETS_64, first[0],
        first[0] != 0,
    )
    return 0


cdef int check_child(const ArrowArray *child, int64_t start, int64_t rows) except -1:
    if start < 0 or rows < 0 or start > child.length - rows:
        raise FormatError(f"items {start} to {start + rows} of {child.length}")
    return 0


cdef int cut(
    Plan *plan, const ArrowArray *source, int64_t start, int64_t rows,
    const int64_t[::1] layout, Py_ssize_t *at, ArrowArray *target,
) except -1:
    """Make ``target`` of the rows [start, start + rows) of an array, counted without its offset.

    ``layout`` at ``at`` describes the type; ``at`` goes behind it.
    """
    cdef int64_t kind, parameter, children, i, first, end, null_count = source.null_count
    cdef int64_t place = source.offset + start
    if at[0] + 3 > layout.shape[0]:
        raise ValueError("the layout ends early")
    kind, parameter, children = layout[at[0]], layout[at[0] + 1], layout[at[0] + 2]
    at[0] += 3
    if children != source.n_children:
        raise ValueError("the layout is that of another type")
    if rows != source.length and null_count > 0:
        null_count = -1
    target.length, target.null_count, target.offset = rows, null_count, 0
    target.n_buffers, target.n_children = source.n_buffers, children
    target.release = release_child
    target.dictionary = source.dictionary
    if source.dictionary != NULL:
        plan.keeps_source = True
    if source.n_buffers:
        target.buffers = <const void **> malloc(source.n_buffers * sizeof(void *))
        if target.buffers == NULL:
            raise MemoryError
        memset(<void *> target.buffers, 0, source.n_buffers * sizeof(void *))
    if children:
        target.children = <ArrowArray **> malloc(children * sizeof(ArrowArray *))
        if target.children == NULL:
            raise MemoryError
        memset(target.children, 0, children * sizeof(ArrowArray *))
        for i in range(children):
            target.children[i] = <ArrowArray *> malloc(sizeof(ArrowArray))
            if target.children[i] == NULL:
                raise MemoryError
            memset(target.children[i], 0, sizeof(ArrowArray))
    if kind == NULLS:
        return 0
    if source.n_buffers < 1:
        raise ValueError("the layout is that of another type")
    if null_count != 0:
        add_bits(plan, &target.buffers[0], <const uint8_t *> source.buffers[0], place, rows)
    if kind == STRUCT:
        for i in range(children):
            check_child(source.children[i], place, rows)
            cut(plan, source.children[i], place, rows, layout, at, target.children[i])
        return 0
    if kind == FIXED_LIST:
        check_child(source.children[0], place * parameter, rows * parameter)
        cut(plan, source.children[0], place * parameter, rows * parameter, layout, at, target.children[0])
        return 0
    if source.n_buffers < 2:
        raise ValueError("the layout is that of another type")
    if kind == FIXED:
        if source.buffers[1] != NULL:
            add(
                plan, &target.buffers[1], <const uint8_t *> source.buffers[1] + place * parameter,
                rows * parameter, PLAIN, 0, False,
            )
        return 0
    if kind == BITS:
        add_bits(plan, &target.buffers[1], <const uint8_t *> source.buffers[1], place, rows)
        return 0
    if kind not in (BYTES_32, BYTES_64, LIST_32, LIST_64):
        raise ValueError("no such layout")
    add_offsets(
        plan, &target.buffers[1], source.buffers[1], place, rows,
        4 if kind in (BYTES_32, LIST_32) else 8, &first, &end,
    )
    if kind in (LIST_32, LIST_64):
        check_child(source.children[0], first, end - first)
        cut(plan, source.children[0], first, end - first, layout, at, target.children[0])
        return 0
    if source.n_buffers < 3:
        raise ValueError("the layout is that of another type")
    if source.buffers[2] != NULL:
        add(
            plan, &target.buffers[2], <const uint8_t *> source.buffers[2] + first, end - first,
            PLAIN, 0, False,
        )
    return 0


cdef void copy_bits(const uint8_t *source, int shift, int64_t rows, uint8_t *target) noexcept nogil:
    """Copy bits that begin within a byte to the beginning of one."""
    cdef int64_t i, size = (rows + 7) >> 3, last = (rows + shift - 1) >> 3
    cdef int value
    for i in range(size):
        value = source[i] >> shift
        if i < last:
            value |= source[i + 1] << (8 - shift)
        target[i] = <uint8_t> value


cdef void copy_piece(const Piece *piece, uint8_t *target) noexcept nogil:
    cdef int64_t i
    cdef const int32_t *narrow = <const int32_t *> piece.source
    cdef const int64_t *wide = <const int64_t *> piece.source
    if piece.source == NULL:
        memset(target, 0, piece.size_bytes)
    elif piece.how == PLAIN:
        memcpy(target, piece.source, piece.size_bytes)
    elif piece.how == SHIFTED_BITS:
        copy_bits(piece.source, <int> piece.first, piece.bits, target)
    elif piece.how == OFFSETS_32:
        for i in range(piece.size_bytes // 4):
            (<int32_t *> target)[i] = narrow[i] - <int32_t> piece.first
    else:
        for i in range(piece.size_bytes // 8):
            (<int64_t *> target)[i] = wide[i] - piece.first


cdef int finish(Plan *plan, Owned *owned, bint copies) except -1:
    """Copy what is to be copied, of all pieces if the column ``copies``; let go of what is not needed."""
    cdef Py_ssize_t i
    cdef int64_t size_bytes = 0
    cdef uintptr_t address
    cdef Piece *piece
    cdef bint copies_all = copies and not plan.all_mapped
    for i in range(plan.count):
        piece = plan.pieces + i
        if piece.must_copy or (copies_all and piece.source != NULL):
            size_bytes += (piece.size_bytes + 63) & ~63
    if size_bytes:
        block = allocate_buffer(size_bytes)
        address = block.address
        Py_INCREF(block)
        owned.block = <PyObject *> block
        with nogil:
            copy_all(plan, <uint8_t *> address, copies_all)
    if copies_all and not plan.keeps_source:
        owned.source.release(&owned.source)
    return 0


cdef void copy_all(Plan *plan, uint8_t *block, bint copies_all) noexcept nogil:
    cdef Py_ssize_t i
    cdef int64_t used = 0
    cdef Piece *piece
    for i in range(plan.count):
        piece = plan.pieces + i
        if piece.must_copy or (copies_all and piece.source != NULL):
            copy_piece(piece, block + used)
            piece.slot[0] = block + used
            used += (piece.size_bytes + 63) & ~63


cdef class ExactColumns:
    """See exact_arrays.pyi."""

    cdef ArrowArray batch
    cdef ArrowArray *columns
    cdef Plan *plans
    cdef Py_ssize_t count

    def __cinit__(self, Py_ssize_t columns):
        if columns < 0:
            raise ValueError("no number of columns")
        self.count = columns
        memset(&self.batch, 0, sizeof(ArrowArray))
        self.columns = <ArrowArray *> calloc(max(columns, 1), sizeof(ArrowArray))
        self.plans = <Plan *> calloc(max(columns, 1), sizeof(Plan))
        if self.columns == NULL or self.plans == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.columns != NULL:
            for i in range(self.count):
                if self.columns[i].release != NULL:
                    self.columns[i].release(&self.columns[i])
        self.drop_plans()
        free(self.columns)
        free(self.plans)
        if self.batch.release != NULL:
            self.batch.release(&self.batch)

    cdef void drop_plans(self) noexcept:
        cdef Py_ssize_t i
        if self.plans != NULL:
            for i in range(self.count):
                free(self.plans[i].pieces)
                self.plans[i].pieces = NULL
                self.plans[i].count = self.plans[i].room = 0

    @property
    def address(self):
        return <uintptr_t> &self.batch

    def cut(self, const int64_t[::1] layout, int64_t held_bytes, int64_t share):
        cdef Py_ssize_t i, at = 0
        cdef int64_t own_bytes = 0, rows
        cdef Owned *owned
        cdef ArrowArray *child
        cdef ArrowArray *column
        if self.batch.release == NULL or self.batch.n_children != self.count:
            raise ValueError("no batch of so many columns was exported here")
        if self.batch.offset != 0 or self.columns[0].release != NULL:
            raise ValueError("a batch has no offset, and is cut once")
        rows = self.batch.length
        for i in range(self.count):
            child = self.batch.children[i]
            column = &self.columns[i]
            if at < layout.shape[0] and layout[at] == OTHER:
                at += 3
                column[0] = child[0]
                child.release = NULL
                continue
            owned = <Owned *> malloc(sizeof(Owned))
            if owned == NULL:
                raise MemoryError
            memset(owned, 0, sizeof(Owned))
            owned.source = child[0]
            child.release = NULL
            column.private_data = owned
            column.release = release_column
            self.plans[i].all_mapped = True
            check_child(&owned.source, 0, rows)
            try:
                cut(&self.plans[i], &owned.source, 0, rows, layout, &at, column)
            finally:
                column.release = release_column
            own_bytes += self.plans[i].own_bytes
        for i in range(self.count):
            column = &self.columns[i]
            if column.release == release_column:
                finish(&self.plans[i], <Owned *> column.private_data, own_bytes * share < held_bytes)
        self.drop_plans()

    def addresses(self):
        cdef Py_ssize_t i
        return [<uintptr_t> &self.columns[i] for i in range(self.count)]
