"""Small integer arithmetic that files are full of."""

from __future__ import annotations


def align_up(position: int, alignment: int) -> int:
    """Return the least multiple of ``alignment`` that is at or after ``position``."""
    return -(-position // alignment) * alignment


def bytes_for_bits(bits: int) -> int:
    """Return how many bytes hold ``bits`` bits."""
    return (bits + 7) // 8
