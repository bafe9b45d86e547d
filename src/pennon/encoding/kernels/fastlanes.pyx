# cython: language_level=3
"""Bit-packing in FastLanes order, whole chunks of 1024 values.  See fastlanes.pyi."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

ctypedef fused Word:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

cdef int[8] ORDER = [0, 4, 2, 6, 1, 5, 3, 7]


cdef void _unpack_chunk(const Word* packed, int width, Word* values) noexcept nogil:
    """Unpack one chunk: row after row of the grid, all lanes of a row in one vector loop."""
    cdef int bits = sizeof(Word) * 8
    cdef int lanes = 1024 // bits
    cdef int row, lane, shift, high
    cdef const Word* low_words
    cdef const Word* high_words
    cdef Word* out
    cdef Word mask = <Word>(~(<uint64_t>0) >> (64 - width))
    for row in range(bits):
        out = values + 16 * ORDER[row // 8] + 128 * (row % 8)
        shift = (row * width) % bits
        low_words = packed + (row * width) // bits * lanes
        if shift + width <= bits:
            for lane in range(lanes):
                out[lane] = (low_words[lane] >> shift) & mask
        else:
            high = bits - shift
            high_words = low_words + lanes
            for lane in range(lanes):
                out[lane] = ((low_words[lane] >> shift) | <Word>(high_words[lane] << high)) & mask


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
            _unpack_chunk(&packed[chunk * words], bit_width, &values[chunk * 1024])
