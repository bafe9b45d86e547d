"""The pages of a column, out of its protobuf message.  See column_metadata.pyi."""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t

import numpy as np

from pennon.core.kernels.protobuf cimport BYTES, VARINT, Message, read_bytes, read_varint, skip

cdef enum:
    COLUMNS = 7
    BUFFERS = 3      # as many as most pages have

cdef struct Buffers:
    int64_t *out     # pairs of position and size
    int64_t room     # of so many; those behind are only counted
    int64_t positions
    int64_t sizes
    uint64_t limit
    bint is_outside


cdef void put_number(Buffers *buffers, uint64_t value, bint is_size) noexcept nogil:
    cdef int64_t number = buffers.sizes if is_size else buffers.positions
    if value > buffers.limit:
        buffers.is_outside = True
        value = buffers.limit
    if number < buffers.room:
        buffers.out[2 * number + is_size] = <int64_t> value
    if is_size:
        buffers.sizes += 1
    else:
        buffers.positions += 1


cdef void read_numbers(Message *message, int wire, Buffers *buffers, bint is_size) noexcept nogil:
    """Read a repeated number, packed or not."""
    cdef Message inner
    if wire == VARINT:
        put_number(buffers, read_varint(message), is_size)
    elif wire == BYTES:
        inner = read_bytes(message)
        while inner.at < inner.end:
            put_number(buffers, read_varint(&inner), is_size)
        message.is_bad |= inner.is_bad
    else:
        skip(message, wire)


cdef void read_encoding(Message message, const uint8_t *base, Message *outer, int64_t *out) noexcept nogil:
    """Write the kind (none, direct, indirect), and a range: of ``base`` if direct, else of the file."""
    cdef uint64_t tag
    cdef int64_t kind
    cdef Message inner, data
    while message.at < message.end:
        tag = read_varint(&message)
        if tag & 7 != BYTES or not 1 <= tag >> 3 <= 3:
            skip(&message, tag & 7)
            continue
        kind = tag >> 3
        inner = read_bytes(&message)
        out[0] = 2 if kind == 1 else 1 if kind == 2 else 0
        out[1] = out[2] = 0
        while inner.at < inner.end:
            tag = read_varint(&inner)
            if kind == 2 and tag == (1 << 3 | BYTES):
                data = read_bytes(&inner)
                out[1] = data.at - base
                out[2] = data.end - base
            elif kind == 1 and (tag == (1 << 3 | VARINT) or tag == (2 << 3 | VARINT)):
                out[tag >> 3] = <int64_t> min(read_varint(&inner), <uint64_t> INT64_MAX)
            else:
                skip(&inner, tag & 7)
        message.is_bad |= inner.is_bad
    outer.is_bad |= message.is_bad


cdef void read_page(Message message, const uint8_t *base, Message *outer, Buffers *buffers, int64_t *out) noexcept nogil:
    """Write rows, priority and encoding (3), then the number of the first buffer, and how many."""
    cdef uint64_t tag
    cdef int64_t first = buffers.positions
    cdef int i
    for i in range(COLUMNS):
        out[i] = 0
    while message.at < message.end:
        tag = read_varint(&message)
        if tag >> 3 == 1 or tag >> 3 == 2:
            read_numbers(&message, tag & 7, buffers, tag >> 3 == 2)
        elif tag == (3 << 3 | VARINT):
            out[0] = <int64_t> min(read_varint(&message), <uint64_t> INT64_MAX)
        elif tag == (4 << 3 | BYTES):
            read_encoding(read_bytes(&message), base, &message, out + 2)
        elif tag == (5 << 3 | VARINT):
            out[1] = <int64_t> read_varint(&message)
        else:
            skip(&message, tag & 7)
    out[5] = first
    out[6] = buffers.positions - first
    outer.is_bad |= message.is_bad


cdef int64_t count_pages(Message message) noexcept nogil:
    """Return how many pages there are, of a message that may be bad."""
    cdef uint64_t tag
    cdef int64_t count = 0
    while message.at < message.end and not message.is_bad:
        tag = read_varint(&message)
        count += tag == (2 << 3 | BYTES)
        skip(&message, tag & 7)
    return count


cdef int64_t read_column(Message *message, Buffers *buffers, int64_t *pages, int64_t *column) noexcept nogil:
    """Read all pages, and return their number; -1 if buffers are not positions and sizes.  Those of the column come last."""
    cdef const uint8_t *base = message.at
    cdef uint64_t tag
    cdef int64_t count = 0
    cdef int i
    buffers.positions = buffers.sizes = 0
    for i in range(5):
        column[i] = 0
    while message.at < message.end and not message.is_bad:
        tag = read_varint(message)
        if tag == (1 << 3 | BYTES):
            read_encoding(read_bytes(message), base, message, column)
        elif tag == (2 << 3 | BYTES):
            read_page(read_bytes(message), base, message, buffers, pages + COLUMNS * count)
            if buffers.positions != buffers.sizes:
                return -1
            count += 1
        else:
            skip(message, tag & 7)
    column[3] = buffers.positions
    message.at = base
    while message.at < message.end and not message.is_bad:
        tag = read_varint(message)
        if tag >> 3 == 3 or tag >> 3 == 4:
            read_numbers(message, tag & 7, buffers, tag >> 3 == 4)
        else:
            skip(message, tag & 7)
    if buffers.positions != buffers.sizes:
        return -1
    column[4] = buffers.positions - column[3]
    return count


cdef bint is_outside(const int64_t *encoding, int64_t file_bytes) noexcept nogil:
    """Tell whether an encoding that stands elsewhere does not stand in the file."""
    if encoding[0] != 2:
        return False
    return encoding[1] > file_bytes or encoding[2] > file_bytes - encoding[1]


def find_pages(const uint8_t[::1] data, int64_t file_bytes, int64_t most_rows):
    """See column_metadata.pyi."""
    cdef Message message
    cdef Buffers buffers
    cdef int64_t count, i, total = 0, size = data.shape[0]
    cdef int64_t column[5]
    cdef uint8_t nothing = 0
    cdef const uint8_t *start = &data[0] if size else &nothing
    cdef int64_t[:, ::1] pages_out, buffers_out
    cdef int64_t[::1] rows_out
    if file_bytes < 0 or most_rows < 0:
        raise ValueError("a size is not negative")
    message = Message(start, start + size, False)
    count = count_pages(message)
    pages = np.empty((count, COLUMNS), np.int64)
    pages_out = pages
    buffers = Buffers(NULL, 0, 0, 0, <uint64_t> file_bytes, False)
    while True:  # once more if there are more buffers than pages mostly have
        buffers.room = max(buffers.positions, BUFFERS * count)
        extents = np.empty((buffers.room, 2), np.int64)
        buffers_out = extents
        buffers.out = &buffers_out[0, 0] if buffers.room else NULL
        message = Message(start, start + size, False)
        count = read_column(&message, &buffers, &pages_out[0, 0] if count else &column[0], column)
        if message.is_bad or count < 0 or buffers.positions <= buffers.room:
            break
    if message.is_bad:
        raise ValueError("not a valid ColumnMetadata message")
    if count < 0:
        raise ValueError(f"{buffers.positions} buffer positions but {buffers.sizes} buffer sizes")
    if buffers.positions < buffers.room:
        extents = extents[: buffers.positions].copy()
    first_rows = np.empty(count + 1, np.int64)
    rows_out = first_rows
    for i in range(buffers.positions):
        if buffers.is_outside or buffers_out[i, 1] > file_bytes - buffers_out[i, 0]:
            raise ValueError(f"a buffer leaves the file of {file_bytes} bytes")
    if is_outside(column, file_bytes):
        raise ValueError(f"an encoding leaves the file of {file_bytes} bytes")
    rows_out[0] = 0
    for i in range(count):
        if is_outside(&pages_out[i, 2], file_bytes):
            raise ValueError(f"an encoding leaves the file of {file_bytes} bytes")
        if pages_out[i, 0] > most_rows - total:
            raise ValueError("pages of more rows than a file can have")
        total += pages_out[i, 0]
        rows_out[i + 1] = total
    return pages, extents, first_rows, (column[0], column[1], column[2], column[3], column[4])
