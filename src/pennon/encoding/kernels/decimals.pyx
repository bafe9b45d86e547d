# cython: language_level=3
"""Decimals of few digits.  See decimals.pyi."""

from libc.stdint cimport int64_t


def are_small(const int64_t[::1] words, int words_per_value, int64_t limit):
    """See decimals.pyi."""
    cdef Py_ssize_t values = words.shape[0] // max(words_per_value, 1), i
    cdef int64_t low, faults = 0
    cdef const int64_t* at
    if words_per_value not in (2, 4) or words.shape[0] != values * words_per_value or limit < 1:
        raise ValueError("no whole decimals of 2 or 4 words")
    if values == 0:
        return True
    at = &words[0]
    with nogil:
        if words_per_value == 2:
            for i in range(values):
                low = at[2 * i]
                faults |= at[2 * i + 1] ^ (low >> 63)
                faults |= (low >= limit) | (low <= -limit)
        else:
            for i in range(values):
                low = at[4 * i]
                faults |= at[4 * i + 1] ^ (low >> 63)
                faults |= at[4 * i + 2] ^ (low >> 63)
                faults |= at[4 * i + 3] ^ (low >> 63)
                faults |= (low >= limit) | (low <= -limit)
    return faults == 0
