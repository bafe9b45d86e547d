# cython: language_level=3
"""Bit-packing in FastLanes order, whole chunks of 1024 values.  See fastlanes.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pennon.encoding.kernels.streams cimport Word, unpack_block
from pennon.errors import FormatError

def unpack(const Word[::1] packed, int bit_width, Word[::1] values):
    cdef int bits = sizeof(Word) * 8
    cdef Py_ssize_t chunk, chunks = values.shape[0] // 1024
    cdef Py_ssize_t words = bit_width * 1024 // bits
    if not 1 <= bit_width <= bits:
        raise ValueError("bit width outside the word")
    if values.shape[0] != chunks * 1024 or packed.shape[0] != chunks * words:
        raise ValueError("packed words are not whole chunks of the values asked for")
    with nogil:
        for chunk in range(chunks):
            unpack_block(&packed[chunk * words], bit_width, &values[chunk * 1024])


cdef int64_t _unpack_inline(
    const uint8_t* data, int64_t size, Word* values, int64_t count, Word* words, Word* spare
) noexcept nogil:
    """Unpack ``count`` values of blocks that begin with their bit width; tell how many bytes that took.

    ``words`` has room for a packed block, ``spare`` for an unpacked one.  Returns -1 if the bytes do
    not suffice.
    """
    cdef int64_t at = 0, packed, taken
    cdef Word width
    while count > 0:
        if <int64_t>sizeof(Word) > size - at:
            return -1
        memcpy(&width, data + at, sizeof(Word))
        at += sizeof(Word)
        if width > sizeof(Word) * 8:
            return -1
        packed = <int64_t>width * 128
        if packed > size - at:
            return -1
        taken = min(count, 1024)
        if width == 0:
            memset(values, 0, taken * sizeof(Word))
        else:
            memcpy(words, data + at, packed)
            if taken == 1024:
                unpack_block(words, <int>width, values)
            else:
                unpack_block(words, <int>width, spare)
                memcpy(values, spare, taken * sizeof(Word))
        at += packed
        values += taken
        count -= taken
    return at


def unpack_inline(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] sizes,
    const int64_t[::1] counts, Word[::1] values,
):
    cdef Word[1024] words
    cdef Word[1024] spare
    cdef Py_ssize_t chunk, chunks = counts.shape[0], bad = -1
    cdef int64_t at = 0, room = values.shape[0], end = data.shape[0]
    if starts.shape[0] != chunks or sizes.shape[0] != chunks:
        raise ValueError("tables of chunks differ in length")
    with nogil:
        for chunk in range(chunks):
            if counts[chunk] == 0:
                continue
            if (
                counts[chunk] < 0 or counts[chunk] > room - at or starts[chunk] < 0
                or sizes[chunk] < 0 or sizes[chunk] > end - starts[chunk]
                or _unpack_inline(
                    &data[0] + starts[chunk], sizes[chunk], &values[at], counts[chunk],
                    &words[0], &spare[0],
                ) < 0
            ):
                bad = chunk
                break
            at += counts[chunk]
    if bad >= 0:
        raise FormatError(
            f"chunk {bad}: {sizes[bad]} bytes are no {counts[bad]} values packed in blocks of 1024"
        )
    if at != room:
        raise ValueError("the chunks do not fill the target")


cdef bint _unpack_blocks(
    const uint8_t* data, int64_t size, int width, Word* values, int64_t count,
    Word* words, Word* spare,
) noexcept nogil:
    cdef int64_t packed = <int64_t>width * 128
    cdef int64_t whole = count // 1024, tail = count % 1024, block
    if packed and whole > size // packed:
        return False
    for block in range(whole):
        memcpy(words, data + block * packed, packed)
        unpack_block(words, width, values + block * 1024)
    if tail == 0:
        return True
    data += whole * packed
    size -= whole * packed
    values += whole * 1024
    if size == tail * <int64_t>sizeof(Word):
        memcpy(values, data, size)
        return True
    if size < packed:
        return False
    memcpy(words, data, packed)
    unpack_block(words, width, spare)
    memcpy(values, spare, tail * sizeof(Word))
    return True


def unpack_blocks(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] sizes,
    const int64_t[::1] counts, int bit_width, Word[::1] values,
):
    cdef Word[1024] words
    cdef Word[1024] spare
    cdef Py_ssize_t chunk, chunks = counts.shape[0], bad = -1
    cdef int64_t at = 0, room = values.shape[0], end = data.shape[0]
    if not 1 <= bit_width <= <int>sizeof(Word) * 8:
        raise ValueError("bit width outside the word")
    if starts.shape[0] != chunks or sizes.shape[0] != chunks:
        raise ValueError("tables of chunks differ in length")
    with nogil:
        for chunk in range(chunks):
            if counts[chunk] == 0:
                continue
            if (
                counts[chunk] < 0 or counts[chunk] > room - at or starts[chunk] < 0
                or sizes[chunk] < 0 or sizes[chunk] > end - starts[chunk]
                or not _unpack_blocks(
                    &data[0] + starts[chunk], sizes[chunk], bit_width, &values[at], counts[chunk],
                    &words[0], &spare[0],
                )
            ):
                bad = chunk
                break
            at += counts[chunk]
    if bad >= 0:
        raise FormatError(
            f"chunk {bad}: {sizes[bad]} bytes are no {counts[bad]} values of {bit_width} bits"
        )
    if at != room:
        raise ValueError("the chunks do not fill the target")
