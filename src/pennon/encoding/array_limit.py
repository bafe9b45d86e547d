"""The most that one Arrow array holds.

Tests set it to less, so that few bytes are too many for one array.
"""

LARGEST_ARRAY_BYTES = (1 << 31) - 1
"""Bytes of values, or items of lists, that offsets of 32 bits count."""
