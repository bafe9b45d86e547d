"""How RQ lays its bits out: signs in blocks of rows, further bits in blocks of dimensions; and how it turns vectors.

Source: reference index-vector, 2.9.2 and 2.9.4.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from pennon.index.vector.base import Floats

Bytes = npt.NDArray[np.uint8]

_BLOCK_ROWS: Final = 32
_PLACES: Final = np.array([0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15])
"""Byte j of a half of a block has nibbles of row ``_PLACES[j]`` (low), and of the one 16 rows on."""
_BLOCK: Final = 64
_ROUNDS: Final = 4


def unpacked_signs(stored: Bytes) -> Bytes:
    """Return bytes of signs, byte m of all rows in row m, of those that lie in blocks of 32 rows."""
    count, width = stored.shape
    whole = count // _BLOCK_ROWS
    flat = stored.reshape(-1)
    blocks = flat[: whole * _BLOCK_ROWS * width].reshape(whole, width, _BLOCK_ROWS)
    low, high = blocks[:, :, :16], blocks[:, :, 16:]
    rows = np.empty((whole, width, _BLOCK_ROWS), np.uint8)
    rows[:, :, _PLACES] = (low & 15) | (high << 4)
    rows[:, :, _PLACES + 16] = (low >> 4) | (high & 0xF0)
    rest = flat[whole * _BLOCK_ROWS * width :].reshape(width, count % _BLOCK_ROWS)
    front = rows.transpose(1, 0, 2).reshape(width, whole * _BLOCK_ROWS)
    return np.concatenate([front, rest], axis=1)


def unblocked(stored: Bytes, bits: int, dimension: int) -> Bytes:
    """Return codes of 1 to 8 bits, one byte each, of those that lie in blocks of 64 dimensions."""
    count = len(stored)
    blocks = stored.reshape(count, -1, 8 * bits)
    found = np.empty((*blocks.shape[:2], _BLOCK), np.uint8)
    if bits == 8:
        found[:] = blocks
    elif bits == 1:
        found[:] = np.unpackbits(blocks, axis=2, bitorder="little")
    elif bits < 4:
        for quarter in range(4):
            found[:, :, 16 * quarter : 16 * quarter + 16] = (blocks[:, :, :16] >> 2 * quarter) & 3
    elif bits == 4:
        for at in range(4):
            part = blocks[:, :, 8 * at : 8 * at + 8]
            found[:, :, 16 * at : 16 * at + 8] = part & 15
            found[:, :, 16 * at + 8 : 16 * at + 16] = part >> 4
    elif bits == 5:
        for half in range(2):
            part = blocks[:, :, 16 * half : 16 * half + 16]
            found[:, :, 32 * half : 32 * half + 16] = part & 15
            found[:, :, 32 * half + 16 : 32 * half + 32] = part >> 4
    else:
        _unblock_six(blocks, found)
    if bits in {3, 5, 7}:  # the highest bits are a plane of their own
        found |= _plane(blocks[:, :, -8:]) << (bits - 1)
    return found.reshape(count, -1)[:, :dimension]


def _unblock_six(blocks: Bytes, found: Bytes) -> None:
    """Put codes of 6 bits in their places: those of the last 16 dimensions are above those of the others."""
    last = np.zeros((*blocks.shape[:2], 16), np.uint8)
    for third in range(3):
        part = blocks[:, :, 16 * third : 16 * third + 16]
        found[:, :, 16 * third : 16 * third + 16] = part & 63
        last |= (part >> 6) << 2 * third
    found[:, :, 48:] = last


def _plane(stored: Bytes) -> Bytes:
    """Return a bit of each of 64 dimensions: that of ``16 k + b`` is bit ``2 k + b // 8`` of byte ``b % 8``."""
    found = np.empty((*stored.shape[:2], _BLOCK), np.uint8)
    for quarter in range(4):
        for half in range(2):
            start = 16 * quarter + 8 * half
            found[:, :, start : start + 8] = (stored >> (2 * quarter + half)) & 1
    return found


def from_stream(stored: Bytes, bits: int, dimension: int) -> Bytes:
    """Return codes of 1 to 8 bits, one byte each, of those that follow one another bit by bit."""
    each = np.unpackbits(stored, axis=1, bitorder="little")[:, : bits * dimension]
    weights = (1 << np.arange(bits)).astype(np.uint8)
    found: Bytes = (each.reshape(len(stored), dimension, bits) * weights).sum(2, dtype=np.uint8)
    return found


def turned_fast(vectors: Floats, signs: Bytes) -> Floats:
    """Return vectors turned by four rounds of signs and Walsh-Hadamard transforms; ``signs`` are their bytes."""
    width = vectors.shape[1]
    size = 1 << (width.bit_length() - 1)
    flips = np.unpackbits(signs.reshape(_ROUNDS, -1), axis=1, bitorder="little")[:, :width]
    y = vectors.astype(np.float32)
    scale = np.float32(1 / np.sqrt(size))
    for number, flip in enumerate(flips):
        y[:, flip == 1] *= -1
        if size == width:
            y = _transformed(y) * scale
            continue
        part = slice(0, size) if number % 2 == 0 else slice(width - size, width)
        y[:, part] = _transformed(y[:, part]) * scale
        half = width // 2
        y = np.concatenate([y[:, :half] + y[:, half:], y[:, :half] - y[:, half:]], axis=1)
    return y if size == width else y * np.float32(0.25)


def _transformed(y: Floats) -> Floats:
    count, width = y.shape
    half = 1
    while half < width:
        pairs = y.reshape(count, -1, 2, half)
        y = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        y = y.reshape(count, width)
        half *= 2
    return y
