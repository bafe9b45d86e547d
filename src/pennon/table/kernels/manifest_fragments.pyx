"""Where the fragments of a manifest lie in its message.  See manifest_fragments.pyi."""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t

import numpy as np

from pennon.core.kernels.protobuf cimport BYTES, VARINT, Message, read_bytes, read_varint, skip

cdef enum:
    FRAGMENTS = 2
    COLUMNS = 10
    HAS_DELETION = 1
    HAS_ROW_IDS = 2
    HAS_UNKNOWN = 4
    IS_MIXED = 8
    MOST_VERSION = 0x7FFFFFFF


cdef int64_t number(Message *message) noexcept nogil:
    """Return a number, or the greatest that fits."""
    return <int64_t> min(read_varint(message), <uint64_t> INT64_MAX)


cdef void read_file(Message message, Message *outer, int64_t *out) noexcept nogil:
    """Count a data file, add up its size, and note its version."""
    cdef uint64_t tag, field
    cdef int64_t major = 0, minor = 0, size = 0, version
    while message.at < message.end:
        tag = read_varint(&message)
        field = tag >> 3
        if tag == (4 << 3 | VARINT):
            major = number(&message)
        elif tag == (5 << 3 | VARINT):
            minor = number(&message)
        elif tag == (6 << 3 | VARINT):
            size = number(&message)
        else:
            if not 1 <= field <= 3 and field != 7:
                out[5] |= HAS_UNKNOWN
            skip(&message, tag & 7)
    version = min(major, MOST_VERSION) << 32 | min(minor, MOST_VERSION)
    if major >= MOST_VERSION or minor >= MOST_VERSION or (out[7] and out[8] != version):
        out[5] |= IS_MIXED
    out[8] = version
    out[7] += 1
    out[9] = out[9] + size if size <= INT64_MAX - out[9] else INT64_MAX
    outer.is_bad |= message.is_bad


cdef void read_deletion(Message message, Message *outer, int64_t *out) noexcept nogil:
    """Note how many rows are deleted."""
    cdef uint64_t tag, field
    out[5] |= HAS_DELETION
    while message.at < message.end:
        tag = read_varint(&message)
        field = tag >> 3
        if tag == (4 << 3 | VARINT):
            out[6] = number(&message)
        else:
            if not 1 <= field <= 3 and field != 7:
                out[5] |= HAS_UNKNOWN
            skip(&message, tag & 7)
    outer.is_bad |= message.is_bad


cdef void read_fragment(Message message, Message *outer, int64_t *out) noexcept nogil:
    cdef uint64_t tag, field
    while message.at < message.end:
        tag = read_varint(&message)
        field = tag >> 3
        if tag == (1 << 3 | VARINT):
            out[3] = number(&message)
        elif tag == (4 << 3 | VARINT):
            out[4] = number(&message)
        elif tag == (2 << 3 | BYTES):
            read_file(read_bytes(&message), &message, out)
        elif tag == (3 << 3 | BYTES):
            read_deletion(read_bytes(&message), &message, out)
        else:
            if tag == (5 << 3 | BYTES) or tag == (6 << 3 | BYTES):
                out[5] |= HAS_ROW_IDS
            elif not 7 <= field <= 10:
                out[5] |= HAS_UNKNOWN
            skip(&message, tag & 7)
    outer.is_bad |= message.is_bad


cdef int64_t read_manifest(Message *message, int64_t *records) noexcept nogil:
    """Return how many fragments there are, and write what is known of them unless told nowhere."""
    cdef const uint8_t *base = message.at
    cdef const uint8_t *start
    cdef uint64_t tag
    cdef int64_t count = 0
    cdef int64_t *out
    cdef Message inner
    cdef int i
    while message.at < message.end:
        start = message.at
        tag = read_varint(message)
        if tag != (FRAGMENTS << 3 | BYTES):
            skip(message, tag & 7)
            continue
        inner = read_bytes(message)
        if records != NULL:
            out = records + COLUMNS * count
            for i in range(COLUMNS):
                out[i] = 0
            out[0], out[1], out[2] = start - base, inner.at - base, inner.end - base
            read_fragment(inner, message, out)
        count += 1
    return count


cdef list find_runs(const int64_t[:, ::1] records):
    """Return where fragments lie side by side."""
    cdef Py_ssize_t i, first = 0, count = records.shape[0]
    runs = []
    for i in range(1, count + 1):
        if i == count or records[i, 0] != records[i - 1, 2]:
            runs.append((records[first, 0], records[i - 1, 2]))
            first = i
    return runs


def find_fragments(const uint8_t[::1] data, int64_t most_id, int64_t most_rows):
    """See manifest_fragments.pyi."""
    cdef int64_t count, i, wrong = -1, size = data.shape[0]
    cdef uint8_t nothing = 0
    cdef const uint8_t *start = &data[0] if size else &nothing
    cdef Message message = Message(start, start + size, False)
    cdef int64_t[:, ::1] out
    with nogil:
        count = read_manifest(&message, NULL)
    if not message.is_bad:
        records = np.empty((count, COLUMNS), np.int64)
        out = records
        message = Message(start, start + size, False)
        if count:
            with nogil:
                read_manifest(&message, &out[0, 0])
    if message.is_bad:
        raise ValueError("not a valid Manifest message")
    for i in range(count):
        if out[i, 3] > most_id or out[i, 4] > most_rows:
            wrong = i
            break
    return records, find_runs(out), wrong
