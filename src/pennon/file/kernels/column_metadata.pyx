"""The pages of a column, out of its protobuf message.  See column_metadata.pyi."""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

import numpy as np

from pennon.core.kernels.protobuf cimport BYTES, VARINT, Message, read_bytes, read_varint, skip

cdef enum:
    COLUMNS = 7
    BUFFERS = 3      # as many as most pages have
    FOOTER = 40      # bytes
    VERSION = 8      # bytes, the last of the footer
    FOUND = 9        # numbers of a page that find_plain_pages gives

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


# --- the same column of many small files ----------------------------------------------------------

cdef struct Places:
    # What the footer of a file says; all lies in the file.
    const uint8_t *column_table
    const uint8_t *buffer_table
    int64_t columns


cdef uint64_t word(const uint8_t *at) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, at, 8)
    return value


cdef uint64_t half_word(const uint8_t *at) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, at, 4)
    return value


cdef bint find_extent(
    const uint8_t *entry, const uint8_t *data, int64_t size, Message *out
) noexcept nogil:
    """Find the message that an entry of a table says the place of."""
    cdef uint64_t position = word(entry), length = word(entry + 8), most = <uint64_t> size
    if position > most or length > most - position:
        return False
    out.at = data + position
    out.end = out.at + length
    out.is_bad = False
    return True


cdef bint find_tables(
    const uint8_t *data, int64_t size, const uint8_t *version, Places *out
) noexcept nogil:
    """Read the footer of a file; False if it is of another version, or damaged."""
    cdef const uint8_t *footer = data + size - FOOTER
    cdef uint64_t end, metadata, columns, buffers, column_count, buffer_count
    if size < FOOTER or memcmp(footer + FOOTER - VERSION, version, VERSION):
        return False
    end = <uint64_t> (size - FOOTER)
    metadata, columns, buffers = word(footer), word(footer + 8), word(footer + 16)
    buffer_count, column_count = half_word(footer + 24), half_word(footer + 28)
    if metadata > columns or columns > end or 16 * column_count > end - columns:
        return False
    if buffer_count == 0 or buffers > end or 16 * buffer_count > end - buffers:
        return False
    out.column_table, out.buffer_table = data + columns, data + buffers
    out.columns = <int64_t> column_count
    return True


cdef bint has_rows(Message message, int64_t rows) noexcept nogil:
    """Return whether the file descriptor in a message gives ``rows`` as the number of rows."""
    cdef uint64_t tag, found = 0
    while message.at < message.end:
        tag = read_varint(&message)
        if tag == (2 << 3 | VARINT):
            found = read_varint(&message)
        else:
            skip(&message, tag & 7)
    return not message.is_bad and found == <uint64_t> rows


cdef int find_page(
    const uint8_t *data, int64_t size, Message column, int64_t rows, Message model, int64_t *out
) noexcept nogil:
    """Write the numbers of the one page of a column; see find_plain_pages."""
    cdef int64_t pages[COLUMNS]
    cdef int64_t extents[16]
    cdef int64_t own[5]
    cdef const uint8_t *base = column.at
    cdef Buffers buffers = Buffers(&extents[0], 8, 0, 0, <uint64_t> size, False)
    cdef int64_t first, length
    cdef int i
    if count_pages(column) != 1 or read_column(&column, &buffers, &pages[0], &own[0]) != 1:
        return 0
    first = pages[5]
    if column.is_bad or buffers.is_outside or pages[0] != rows:
        return 0
    if pages[2] != 1 or not 2 <= pages[6] <= 3 or first + pages[6] > 8:
        return 0
    for i in range(first, first + pages[6]):
        if extents[2 * i + 1] > size - extents[2 * i]:
            return 0
    out[5], out[6] = -1, 0
    for i in range(2 * pages[6]):
        out[1 + i] = extents[2 * first + i]
    out[7], out[8] = base + pages[3] - data, base + pages[4] - data
    length = pages[4] - pages[3]
    if length == model.end - model.at and not memcmp(model.at, base + pages[3], length):
        return 1
    return 2


cdef void find_pages_of_file(
    const uint8_t *data, int64_t size, const uint8_t *version, int64_t rows,
    const int64_t[:, ::1] columns, Py_ssize_t file, const Message *models, int64_t[:, :, ::1] out,
) noexcept nogil:
    cdef Places places
    cdef Message message
    cdef Py_ssize_t leaf
    cdef int64_t column
    if not find_tables(data, size, version, &places):
        return
    if not find_extent(places.buffer_table, data, size, &message) or not has_rows(message, rows):
        return
    for leaf in range(columns.shape[0]):
        column = columns[leaf, file]
        if not 0 <= column < places.columns:
            continue
        if find_extent(places.column_table + 16 * column, data, size, &message):
            out[leaf, file, 0] = find_page(
                data, size, message, rows, models[leaf], &out[leaf, file, 0]
            )


def find_plain_pages(
    list files, const int64_t[::1] rows, const int64_t[:, ::1] columns, list encodings,
    const uint8_t[::1] version,
):
    """See column_metadata.pyi."""
    cdef Py_ssize_t i, count = len(files), leaves = len(encodings)
    cdef const uint8_t[::1] view
    cdef const uint8_t **data = NULL
    cdef Message *models = NULL
    if rows.shape[0] != count or columns.shape[0] != leaves or columns.shape[1] != count:
        raise ValueError("files, rows and columns differ in number")
    if version.shape[0] != VERSION:
        raise ValueError(f"a version of {version.shape[0]} bytes")
    found = np.zeros((leaves, count, FOUND), np.int64)
    sizes = np.zeros(count, np.int64)
    cdef int64_t[:, :, ::1] out = found
    cdef int64_t[::1] size = sizes
    held = [list(files), list(encodings)]  # whatever another thread does with the lists
    try:
        data = <const uint8_t **> malloc((count + 1) * sizeof(uint8_t *))
        models = <Message *> malloc((leaves + 1) * sizeof(Message))
        if data == NULL or models == NULL:
            raise MemoryError
        for i in range(count):
            view = held[0][i]
            size[i] = view.shape[0]
            data[i] = &view[0] if view.shape[0] else NULL
        for i in range(leaves):
            view = held[1][i]
            if not view.shape[0]:
                raise ValueError("an encoding without bytes")
            models[i] = Message(&view[0], &view[0] + view.shape[0], False)
        with nogil:  # files may have to be read
            for i in range(count):
                if size[i] >= FOOTER:
                    find_pages_of_file(
                        data[i], size[i], &version[0], rows[i], columns, i, models, out
                    )
    finally:
        free(data)
        free(models)
    return found
