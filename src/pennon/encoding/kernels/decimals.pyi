"""Decimals of few digits."""

from pennon.core.byte_ranges import Int64Array

def are_small(words: Int64Array, words_per_value: int, limit: int) -> bool:
    """Tell whether all decimals are below ``limit`` and above ``-limit``.

    A decimal is 2 or 4 words of 64 bits, the lowest first.  Raises ValueError if the words are no
    whole decimals.
    """
