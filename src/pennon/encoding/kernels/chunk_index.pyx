"""The chunk words and the row index of a mini-block page, as running sums.  See chunk_index.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

import numpy as np

from pennon.encoding.kernels.numbers cimport number_at

cdef uint64_t MOST_ROWS = (<uint64_t> 1) << 40


def index_chunks(const uint8_t[::1] words, int width, int64_t items, int64_t most_last):
    """See chunk_index.pyi."""
    cdef Py_ssize_t count, i
    cdef int64_t word = 0, position = 0, values = 0
    cdef int64_t[:, ::1] out
    if width not in (2, 4) or words.shape[0] == 0 or words.shape[0] % width:
        raise ValueError(
            f"{words.shape[0]} bytes are no words of {width} bytes, one for each chunk"
        )
    count = words.shape[0] // width
    numbers = np.empty((4, count + 1), np.int64)
    out = numbers
    with nogil:
        for i in range(count):
            word = <int64_t> number_at(&words[i * width], width)
            out[0, i] = position
            out[1, i] = values
            position += ((word >> 4) + 1) * 8
            out[2, i] = 1 << (word & 0xF)
            values += out[2, i]
            out[3, i] = 0
        values = out[1, count - 1]
        out[0, count] = position
        out[2, count] = out[3, count] = 0
    if items < values or (items == values and items):
        raise ValueError(f"chunks of more than the {items} items of their page")
    if items - values > most_last:
        raise OverflowError(f"a last chunk of {items - values} items")
    out[2, count - 1] = items - values
    out[1, count] = items
    return numbers, position


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
