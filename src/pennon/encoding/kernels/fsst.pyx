"""Decode FSST: bytes that each stand for a symbol of one to eight bytes."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from pennon.encoding.kernels.strings cimport check_chunks, cut_items, offsets_rise, read_offset

from pennon.errors import FormatError, UnsupportedError
from pennon.core.memory import allocate

ctypedef fused Offset:
    int32_t
    int64_t

cdef enum:
    ESCAPE = 255
    LITERAL = 256       # entries from here on stand for themselves: they follow an escape
    UNKNOWN = 128       # in a length: the code has no symbol
    AT_ONCE = 32768     # codes that are decoded in one go, where strings are short
    LONG = 32           # so many codes in a string: a loop of its own costs less than the places of all codes

cdef uint64_t TOPS = 0x8080808080808080
cdef uint64_t ONES = 0x0101010101010101
cdef uint32_t SPLIT = <uint32_t>1 << 31
"""Of a place: it lies between an escape and what belongs to it."""


cdef struct Table:
    uint64_t[512] symbols
    uint8_t[512] lengths
    uint8_t known  # codes up to here have a symbol: all do, if it is 255


cdef int _fill(Table* table, const uint64_t[::1] symbols, const uint8_t[::1] lengths) except -1:
    """Make one table of symbols, the escape (no byte) and what follows one (the byte itself)."""
    cdef int i
    if symbols.shape[0] != 256 or lengths.shape[0] != 256:
        raise ValueError("symbols and lengths have 256 entries")
    for i in range(256):
        if lengths[i] > 8:
            raise FormatError(f"FSST symbol {i} is {lengths[i]} bytes long, more than 8")
        table.symbols[i] = symbols[i]
        table.lengths[i] = lengths[i] if lengths[i] else UNKNOWN
        table.symbols[LITERAL + i] = i
        table.lengths[LITERAL + i] = 1
    table.lengths[ESCAPE] = table.known = 0
    while table.known < ESCAPE and table.lengths[table.known] != UNKNOWN:
        table.known += 1
    return 0


cdef bint _all_known(const uint8_t* codes, int64_t count, const Table* table) noexcept nogil:
    """Tell whether each byte is a code with a symbol, or an escape: then no code needs a look."""
    cdef int64_t i
    cdef uint8_t unknown = 0, first = table.known
    if first == ESCAPE:
        return True
    for i in range(count):
        unknown |= (codes[i] >= first) & (codes[i] != ESCAPE)
    return not unknown


cdef inline int64_t _expand(
    const uint8_t* codes, int64_t count, const Table* table, uint8_t* out, uint32_t* places,
    bint is_placed,
) noexcept nogil:
    """Decode codes as one string; ``places[i]`` is where in ``out`` code i begins, ``count`` included.

    ``is_placed`` is a constant wherever this is called: without it ``places`` has only the end, at 0.
    ``out`` has room for 8 bytes for each code, and 8 more, so a symbol is one move.  Escapes are
    rare in some data and random in other, so there is no branch on a single code.  Return the size,
    -1 if a code has no symbol.
    """
    cdef int64_t at = 0
    cdef uint32_t done = 0
    cdef unsigned int index, escaped = 0, k
    cdef uint8_t length, seen = 0
    cdef uint64_t eight
    cdef bint known = _all_known(codes, count, table)
    while at + 8 <= count:
        memcpy(&eight, codes + at, 8)
        if known and escaped == 0 and not (~eight - ONES) & eight & TOPS:
            for k in range(8):
                index = (eight >> (8 * k)) & 0xFF
                if is_placed:
                    places[at + k] = done
                memcpy(out + done, &table.symbols[index], 8)
                done += table.lengths[index]
        else:
            for k in range(8):
                index = ((eight >> (8 * k)) & 0xFF) | escaped << 8
                length = table.lengths[index]
                if is_placed:
                    places[at + k] = done | escaped << 31
                memcpy(out + done, &table.symbols[index], 8)
                done += length & 15
                seen |= length
                escaped = index == ESCAPE
        at += 8
    while at < count:
        index = codes[at] | escaped << 8
        length = table.lengths[index]
        if is_placed:
            places[at] = done | escaped << 31
        memcpy(out + done, &table.symbols[index], 8)
        done += length & 15
        seen |= length
        escaped = index == ESCAPE
        at += 1
    places[count if is_placed else 0] = done | escaped << 31
    return -1 if seen & UNKNOWN else done


cdef int64_t _expand_each(
    const uint8_t* codes, const uint8_t* offsets, int64_t first, int64_t last, int width,
    const Table* table, uint8_t* out, int64_t before, Offset* ends,
) noexcept nogil:
    """Decode strings one by one, and write where they end; return the size, or -1 as `_finish` would fail."""
    cdef int64_t done = 0, got, i, begin, end = read_offset(offsets, first, width)
    cdef uint32_t last_place
    for i in range(first, last):
        begin, end = end, read_offset(offsets, i + 1, width)
        got = _expand(codes + begin, end - begin, table, out + done, &last_place, False)
        if got < 0 or last_place & SPLIT:
            return -1
        done += got
        ends[i - first] = <Offset>(before + done)
    return done


cdef bint _finish(
    const uint8_t* table, int64_t first, int64_t last, int width, const uint32_t* places,
    int64_t before, Offset* ends,
) noexcept nogil:
    """Write where the strings end; tell whether none ends in an escape."""
    cdef int64_t i, base = read_offset(table, first, width)
    cdef uint32_t narrow, place, splits = 0
    cdef uint64_t wide
    if width == 4:
        for i in range(last - first):
            memcpy(&narrow, table + 4 * (first + i) + 4, 4)
            place = places[narrow - base]
            splits |= place
            ends[i] = <Offset>(before + place)
    else:
        for i in range(last - first):
            memcpy(&wide, table + 8 * (first + i) + 8, 8)
            place = places[<int64_t>wide - base]
            splits |= place
            ends[i] = <Offset>(before + place)
    return not splits & SPLIT


cdef inline int64_t _expand_piece(
    const uint8_t* offsets, const uint8_t* codes, int64_t first, int64_t last, int width,
    int64_t size, const Table* table, uint8_t* out, uint32_t* places, int64_t before, Offset* ends,
) noexcept nogil:
    """Decode strings of ``size`` codes, which lie side by side; return their size, or -1 as `_expand`."""
    cdef int64_t got
    if size >= LONG * (last - first):
        return _expand_each(codes, offsets, first, last, width, table, out, before, ends)
    got = _expand(
        codes + read_offset(offsets, first, width), size, table, out, places, True
    )
    if got < 0 or not _finish(offsets, first, last, width, places, before, ends):
        return -1
    return got


cdef class _Output:
    """Bytes that grow: what FSST makes of codes is known when it is done."""

    cdef object array
    cdef uint8_t* data
    cdef int64_t room
    cdef int64_t filled

    def __cinit__(self):
        self.room = self.filled = 0

    cdef int reserve(self, int64_t size, int64_t coded, int64_t left) except -1:
        """Make room for ``size`` more bytes; so far ``coded`` codes were done, ``left`` are to do."""
        cdef int64_t aim = size
        cdef uint8_t[::1] view
        if self.room - self.filled >= size:
            return 0
        if coded:
            aim += <int64_t>(1.1 * self.filled / coded * left)
        fresh = allocate(self.filled + aim, np.uint8)
        view = fresh
        if self.filled:
            memcpy(&view[0], self.data, self.filled)
        self.array, self.data, self.room = fresh, &view[0], self.filled + aim
        return 0

    cdef object bytes(self):
        return np.empty(0, np.uint8) if self.array is None else self.array[: self.filled]


cdef int64_t _codes_of(
    const uint8_t* source, const int64_t[::1] starts, const int64_t[:, ::1] pieces,
    Py_ssize_t piece, int width,
) noexcept nogil:
    cdef const uint8_t* table = source + starts[pieces[0, piece]]
    return (
        read_offset(table, pieces[2, piece], width) - read_offset(table, pieces[1, piece], width)
    )


cdef _decode_pieces(
    const uint8_t* source, const uint8_t* codes, const int64_t[::1] starts,
    const int64_t[::1] sizes, const int64_t[:, ::1] pieces, Py_ssize_t count, int64_t strings,
    int width, const Table* table,
):
    """Return offsets and bytes of the strings of all pieces.

    Their offsets stand at ``source + starts[chunk]`` and count from ``codes + starts[chunk]``.
    """
    cdef Py_ssize_t piece, bad = -1
    cdef int64_t total = 0, most = 0, size, done = 0, string = 1, first, last, got, chunk
    cdef bint fine = True
    with nogil:
        for piece in range(count):
            chunk = pieces[0, piece]
            if not offsets_rise(
                source + starts[chunk], pieces[1, piece], pieces[2, piece], width, sizes[chunk]
            ):
                bad = chunk
                break
            size = _codes_of(source, starts, pieces, piece, width)
            most = max(most, size)
            total += size
    if bad >= 0:
        raise FormatError(f"FSST offsets of chunk {bad} fall or leave its {sizes[bad]} bytes")
    if most > INT32_MAX // 8:
        raise UnsupportedError(f"an FSST string of {most} codes")
    cdef bint is_narrow = total <= INT32_MAX // 8
    offsets = allocate(strings + 1, np.int32 if is_narrow else np.int64)
    offsets[0] = 0
    cdef uint32_t[::1] places = allocate(most + 1, np.uint32)
    cdef int32_t[::1] narrow
    cdef int64_t[::1] wide
    cdef _Output output = _Output()
    if is_narrow:
        narrow = offsets
    else:
        wide = offsets
    piece = 0
    while piece < count:
        size = _codes_of(source, starts, pieces, piece, width)
        output.reserve(8 * size + 8, done, total - done)
        with nogil:
            while piece < count:
                chunk, first, last = pieces[0, piece], pieces[1, piece], pieces[2, piece]
                size = _codes_of(source, starts, pieces, piece, width)
                if output.room - output.filled < 8 * size + 8:
                    break
                if is_narrow:
                    got = _expand_piece[int32_t](
                        source + starts[chunk], codes + starts[chunk], first, last, width, size,
                        table, output.data + output.filled, &places[0], output.filled,
                        &narrow[0] + string,
                    )
                else:
                    got = _expand_piece[int64_t](
                        source + starts[chunk], codes + starts[chunk], first, last, width, size,
                        table, output.data + output.filled, &places[0], output.filled,
                        &wide[0] + string,
                    )
                if got < 0:
                    fine = False
                    break
                output.filled += got
                done += size
                string += last - first
                piece += 1
        if not fine:
            raise FormatError(
                f"strings {string - 1} to {string + last - first - 2}: an FSST code that is no"
                " symbol, or a string that ends in an escape"
            )
    return offsets, output.bytes()


def decode_fsst_chunks(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] sizes,
    const int64_t[::1] counts, int offset_width,
    const int64_t[::1] item_starts, const int64_t[::1] item_ends,
    const uint64_t[::1] symbols, const uint8_t[::1] lengths,
):
    """See fsst.pyi."""
    cdef int64_t wanted = check_chunks(
        data, starts, sizes, counts, offset_width, item_starts, item_ends
    )
    cdef Table table
    cdef uint8_t none = 0
    cdef const uint8_t* source = &data[0] if data.shape[0] else &none
    _fill(&table, symbols, lengths)
    cuts = np.empty((3, starts.shape[0] + item_starts.shape[0] + 1), np.int64)
    cdef int64_t[:, ::1] cut = cuts
    cdef Py_ssize_t pieces
    with nogil:
        pieces = cut_items(counts, item_starts, item_ends, cut)
    return _decode_pieces(
        source, source, starts, sizes, cut, pieces, wanted, offset_width, &table
    )


def decode_fsst(
    const uint8_t[::1] codes,
    const Offset[::1] offsets,
    const uint64_t[::1] symbols,
    const uint8_t[::1] lengths,
):
    """See fsst.pyi."""
    cdef Py_ssize_t rows = offsets.shape[0] - 1, i, first = 0, piece = 0
    cdef uint8_t none = 0
    cdef const uint8_t* source = &codes[0] if codes.shape[0] else &none
    cdef Table table
    if rows < 0:
        raise ValueError("offsets have at least one entry")
    _fill(&table, symbols, lengths)
    if offsets[0] < 0 or offsets[rows] > codes.shape[0]:
        raise FormatError("FSST offsets leave the codes")
    for i in range(rows):
        if offsets[i + 1] < offsets[i]:
            raise FormatError("FSST offsets fall")
    cuts = np.zeros((3, 1 + (offsets[rows] - offsets[0]) // (AT_ONCE // 2) * 2 + 1), np.int64)
    cdef int64_t[:, ::1] cut = cuts
    for i in range(rows):
        if i > first and offsets[i + 1] - offsets[first] > AT_ONCE:
            cut[1, piece], cut[2, piece] = first, i
            piece += 1
            first = i
    if rows > first:
        cut[1, piece], cut[2, piece] = first, rows
        piece += 1
    start = np.zeros(1, np.int64)
    return _decode_pieces(
        <const uint8_t*>&offsets[0], source, start, np.array([codes.shape[0]], np.int64), cut, piece,
        rows, sizeof(Offset), &table,
    )


def decode_fsst_ranges(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] ends,
    const uint64_t[::1] symbols, const uint8_t[::1] lengths,
):
    """See fsst.pyi."""
    cdef Py_ssize_t strings = starts.shape[0], i
    cdef int64_t total = 0, most = 0, size, got, done = 0
    cdef uint32_t last_place = 0
    cdef uint8_t none = 0
    cdef const uint8_t* codes = &data[0] if data.shape[0] else &none
    cdef Table table
    cdef bint fine = True
    if ends.shape[0] != strings:
        raise ValueError("starts and ends differ in length")
    _fill(&table, symbols, lengths)
    for i in range(strings):
        if not 0 <= starts[i] <= ends[i] <= data.shape[0]:
            raise FormatError(f"FSST string {i} leaves the {data.shape[0]} bytes of codes")
        size = ends[i] - starts[i]
        most = max(most, size)
        total += size
    if most > INT32_MAX // 8:
        raise UnsupportedError(f"an FSST string of {most} codes")
    cdef bint is_narrow = total <= INT32_MAX // 8
    offsets = allocate(strings + 1, np.int32 if is_narrow else np.int64)
    offsets[0] = 0
    cdef int32_t[::1] narrow
    cdef int64_t[::1] wide
    cdef _Output output = _Output()
    if is_narrow:
        narrow = offsets
    else:
        wide = offsets
    i = 0
    while i < strings:
        output.reserve(8 * (ends[i] - starts[i]) + 8, done, total - done)
        with nogil:
            while i < strings:
                size = ends[i] - starts[i]
                if output.room - output.filled < 8 * size + 8:
                    break
                got = _expand(
                    codes + starts[i], size, &table, output.data + output.filled, &last_place, False
                )
                if got < 0 or last_place & SPLIT:
                    fine = False
                    break
                output.filled += got
                done += size
                i += 1
                if is_narrow:
                    narrow[i] = <int32_t>output.filled
                else:
                    wide[i] = output.filled
        if not fine:
            raise FormatError(
                f"string {i}: an FSST code that is no symbol, or a string that ends in an escape"
            )
    return offsets, output.bytes()
