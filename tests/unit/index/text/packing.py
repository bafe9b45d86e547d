"""Posting lists as index files hold them: a plain twin of the decoding kernels."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from pennon.index.text.postings import Blobs, BlockPostings


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def packed(values: Sequence[int], lanes: int, bits: int | None = None) -> tuple[int, bytes]:
    """Return the bits of a value, and the words: value k is of lane k mod lanes."""
    bits = max(values).bit_length() if bits is None else bits
    whole = [0] * lanes
    for k, value in enumerate(values):
        whole[k % lanes] |= (value & (1 << bits) - 1) << (k // lanes * bits)
    words = [[lane >> 32 * row & 0xFFFFFFFF for row in range(bits)] for lane in whole]
    flat = [words[lane][row] for row in range(bits) for lane in range(lanes)]
    return bits, struct.pack(f"<{len(flat)}I", *flat)


def block(docs: Sequence[int], frequencies: Sequence[int], size: int = 128) -> bytes:
    """Return a full block; of 256 documents the frequencies above 3 are exceptions."""
    steps = [0, *(b - a for a, b in pairwise(docs))]
    lanes = size // 32
    bits, words = packed(steps, lanes)
    head = b"" if size == 256 else struct.pack("<f", 1.5)
    made = head + struct.pack("<IB", docs[0], bits) + words
    if size == 128:
        bits, words = packed(frequencies, lanes)
        return made + bytes([bits]) + words
    bits, words = packed(frequencies, lanes, 2)
    exceptions = [(at, each >> 2) for at, each in enumerate(frequencies) if each > 3]
    rest = b"".join(bytes([at]) + varint(each) for at, each in exceptions)
    return made + bytes([bits, len(exceptions)]) + words + rest


def tail(docs: Sequence[int], frequencies: Sequence[int], size: int, *, is_varint: bool) -> bytes:
    head = b"" if size == 256 else struct.pack("<f", 1.5)
    if not is_varint:
        return head + struct.pack(f"<{2 * len(docs)}I", *docs, *frequencies)
    steps = [docs[0], *(b - a for a, b in pairwise(docs))]
    return head + b"".join(map(varint, (*steps, *frequencies)))


def blobs(parts: Sequence[bytes]) -> Blobs:
    ends = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    return Blobs(np.frombuffer(b"".join(parts), np.uint8), ends)


def postings(
    docs: Sequence[int],
    frequencies: Sequence[int],
    size: int = 128,
    *,
    is_varint: bool = True,
    documents: int = 1 << 20,
) -> BlockPostings:
    """Return the posting list of some documents."""
    parts = []
    for start in range(0, len(docs), size):
        some, counts = docs[start : start + size], frequencies[start : start + size]
        if len(some) == size:
            parts.append(block(some, counts, size))
        else:
            parts.append(tail(some, counts, size, is_varint=is_varint))
    return BlockPostings(blobs(parts), len(docs), size, is_varint, documents)
