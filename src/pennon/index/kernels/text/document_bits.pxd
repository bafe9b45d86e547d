# cython: language_level=3
"""A bit for each document of a posting list, for `pennon.index.kernels.text.best_documents`."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

cdef extern from *:
    int __builtin_popcountll(unsigned long long) nogil

cdef enum:
    RANK_WORDS = 4


cdef struct Members:
    const uint64_t* words
    const uint32_t* ranks


cdef inline Members* open_members(list bits, list ranks, Py_ssize_t count, int64_t documents) except NULL:
    """Return the bits of lists, which the caller frees; no words of those that have none."""
    cdef Py_ssize_t number, least = (documents + 63) // 64
    cdef const uint64_t[::1] words
    cdef const uint32_t[::1] some_ranks
    cdef Members* members
    if len(bits) != count or len(ranks) != count:
        raise ValueError("posting lists and their bits differ in number")
    members = <Members*>calloc(count, sizeof(Members))
    if members == NULL:
        raise MemoryError
    try:
        for number in range(count):
            words, some_ranks = bits[number], ranks[number]
            if not words.shape[0] or not least:
                continue
            if words.shape[0] < least or some_ranks.shape[0] * RANK_WORDS < least:
                raise ValueError("bits are not those of the documents")
            members[number].words, members[number].ranks = &words[0], &some_ranks[0]
    except BaseException:
        free(members)
        raise
    return members


cdef inline Py_ssize_t keep_members(
    Members* of, const uint32_t* docs, uint8_t* places, Py_ssize_t count, int64_t documents
) noexcept nogil:
    """Keep those places whose documents are among the members of a list; return how many these are."""
    cdef Py_ssize_t k, kept = 0
    cdef uint32_t doc, inside
    cdef uint8_t place
    for k in range(count):
        place = places[k]
        doc = docs[place]
        inside = doc < documents
        doc = doc if inside else 0
        places[kept] = place
        kept += <Py_ssize_t>(inside & <uint32_t>(of.words[doc >> 6] >> (doc & 63)) & 1)
    return kept


cdef inline int64_t rank_of(Members* of, int64_t doc) noexcept nogil:
    """Return how many members a list has before a document."""
    cdef int64_t last = doc >> 6, word = last // RANK_WORDS * RANK_WORDS, found
    found = of.ranks[last // RANK_WORDS]
    while word < last:
        found += __builtin_popcountll(of.words[word])
        word += 1
    return found + __builtin_popcountll(of.words[last] & ((<uint64_t>1 << (doc & 63)) - 1))
