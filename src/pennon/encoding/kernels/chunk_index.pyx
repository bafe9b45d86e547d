"""The chunk words and the row index of a mini-block page, as running sums.  See chunk_index.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

import numpy as np

from pennon.encoding.kernels.chunk_lookup cimport ChunkTable
from pennon.encoding.kernels.numbers cimport number_at

cdef uint64_t MOST_ROWS = (<uint64_t> 1) << 40


cdef enum:
    FINE = 0
    TOO_FEW_ITEMS = 1
    TOO_MANY_ITEMS = 2


cdef int fill_chunks(
    const uint8_t *words, int width, int64_t items, int64_t most_last, Py_ssize_t count, int64_t *out
) noexcept nogil:
    """Fill the four rows of a table of chunks, each of ``count + 1`` numbers; see index_chunks."""
    cdef Py_ssize_t i, row = count + 1
    cdef int64_t word, position = 0, values = 0, before = 0
    for i in range(count):
        word = <int64_t> number_at(&words[i * width], width)
        out[i] = position
        out[row + i] = before = values
        position += ((word >> 4) + 1) * 8
        out[2 * row + i] = 1 << (word & 0xF)
        values += out[2 * row + i]
        out[3 * row + i] = 0
    out[count] = position
    out[2 * row + count] = out[3 * row + count] = 0
    if items < before or (items == before and items):
        return TOO_FEW_ITEMS
    if items - before > most_last:
        return TOO_MANY_ITEMS
    out[2 * row + count - 1] = items - before
    out[row + count] = items
    return FINE


def index_chunks(const uint8_t[::1] words, int width, int64_t items, int64_t most_last):
    """See chunk_index.pyi."""
    cdef Py_ssize_t count
    cdef int64_t[:, ::1] out
    cdef int fault
    if width not in (2, 4) or words.shape[0] == 0 or words.shape[0] % width:
        raise ValueError(
            f"{words.shape[0]} bytes are no words of {width} bytes, one for each chunk"
        )
    count = words.shape[0] // width
    numbers = np.empty((4, count + 1), np.int64)
    out = numbers
    with nogil:
        fault = fill_chunks(&words[0], width, items, most_last, count, &out[0, 0])
    if fault == TOO_FEW_ITEMS:
        raise ValueError(f"chunks of more than the {items} items of their page")
    if fault == TOO_MANY_ITEMS:
        raise OverflowError(f"a last chunk of {items - out[1, count - 1]} items")
    return numbers, out[0, count]


cdef bint is_word_range(const int64_t[:, ::1] pages, Py_ssize_t i, int width, int64_t file_bytes) noexcept:
    """Return whether the chunk words of a page lie within its file."""
    cdef int64_t position = pages[i, 1], size = pages[i, 2]
    return (
        pages[i, 0] == 1 and position >= 0 and pages[i, 3] >= 0 and size > 0 and size % width == 0
        and position <= file_bytes and size <= file_bytes - position
    )


def flat_tables(
    list files, const int64_t[:, ::1] pages, int width, int64_t items, int64_t most_last
):
    """See chunk_index.pyi."""
    cdef Py_ssize_t i, chunks, at = 0, room = 0, count = len(files)
    cdef const uint8_t[::1] data
    cdef ChunkTable table
    cdef int64_t *numbers
    if width not in (2, 4) or pages.shape[0] != count or pages.shape[1] < 5:
        raise ValueError("files and their pages differ in number, or words have no width")
    for i in range(count):
        if is_word_range(pages, i, width, len(files[i])):
            room += 4 * (pages[i, 2] // width + 1)
    held = np.empty(room, np.int64)
    cdef int64_t[::1] out = held
    cdef list found = [None] * count
    for i in range(count):
        data = files[i]
        if not is_word_range(pages, i, width, data.shape[0]):
            continue
        chunks = pages[i, 2] // width
        if 4 * (chunks + 1) > room - at:
            raise ValueError("files that change")
        numbers = &out[at]
        at += 4 * (chunks + 1)
        if fill_chunks(&data[pages[i, 1]], width, items, most_last, chunks, numbers):
            continue
        if numbers[chunks] > pages[i, 4]:
            continue
        table = ChunkTable.__new__(ChunkTable)
        table.arrays = held
        table.count, table.position = chunks, pages[i, 3]
        table.offsets, table.goes_on = numbers, <const uint8_t *> (numbers + 3 * (chunks + 1))
        table.first_values = table.first_rows = numbers + chunks + 1
        found[i] = table
    return found


def index_rows(const uint8_t[::1] table, Py_ssize_t count, Py_ssize_t stride):
    """See chunk_index.pyi."""
    cdef Py_ssize_t i
    cdef uint64_t ends = 0
    cdef int64_t rows = 0, begin = 0
    cdef uint8_t before = 0, is_unfinished = 0
    cdef int64_t[::1] firsts_out
    cdef uint8_t[::1] goes_on_out
    if count < 0 or stride < 2 or table.shape[0] // 8 != count * stride or table.shape[0] % 8:
        raise ValueError(
            f"a row index of {table.shape[0]} bytes and depth {stride - 1}, {count} chunks"
        )
    firsts = np.empty(count + 1, np.int64)
    goes_on = np.empty(count, np.bool_)
    firsts_out, goes_on_out = firsts, goes_on.view(np.uint8)
    for i in range(count):
        ends = number_at(&table[8 * i * stride], 8)
        if ends >= MOST_ROWS:
            raise ValueError(f"a chunk in which {ends} rows end")
        is_unfinished = number_at(&table[8 * (i * stride + 1)], 8) > 0
        begin = <int64_t> ends + is_unfinished - before
        if begin < 0:
            break
        firsts_out[i] = rows
        goes_on_out[i] = before
        before = is_unfinished
        rows += begin
    if begin < 0 or before:
        raise ValueError("a row index whose rows do not begin and end")
    firsts_out[count] = rows
    return firsts, goes_on
