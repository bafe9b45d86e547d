"""The bit layout of RQ: signs in groups of rows, further bits in blocks of dimensions; and its rotation of vectors.

Source: reference index-vector, 2.9.2 and 2.9.4.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pennon.index.kernels.vectors.rabit import turn
from pennon.index.vector.base import Floats

Bytes = npt.NDArray[np.uint8]

_ROUNDS: Final = 4
_ROWS: Final = 32
"""Rows whose sign bits are interleaved."""
_ORDER: Final = np.array([0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15])
_BLOCK: Final = 64
"""Numbers whose sizes are stored together."""


def flips_of(signs: Bytes, width: int) -> Floats:
    """Return 1 or -1 for each value of vectors and each round in which they are turned; ``signs`` are their bytes."""
    bits = np.unpackbits(signs.reshape(_ROUNDS, -1), axis=1, bitorder="little")[:, :width]
    return 1 - 2 * bits.astype(np.float32)


def turned(vectors: npt.NDArray[Any], flips: Floats) -> Floats:
    """Return vectors turned by four rounds of signs and Walsh-Hadamard transforms."""
    found = np.array(vectors, np.float32, order="C")
    turn(found, flips)
    return found


def stored_width(dimension: int, bits: int) -> int:
    """Return how many bytes the further bits of a row are in blocks."""
    return -(-dimension // _BLOCK) * 8 * bits


def packed_signs(codes: Bytes) -> Bytes:
    """Return the sign bits of the rows of a partition, those of 32 rows interleaved, and the last ones by bytes."""
    count, width = codes.shape
    whole = count // _ROWS * _ROWS
    blocks = codes[:whole].reshape(-1, _ROWS, width).transpose(0, 2, 1)
    low, high = blocks[:, :, _ORDER], blocks[:, :, _ORDER + 16]
    mixed = np.concatenate([(low & 15) | ((high & 15) << 4), (low >> 4) | (high >> 4 << 4)], axis=2)
    rest = np.ascontiguousarray(codes[whole:].T).ravel()
    return np.concatenate([mixed.ravel(), rest]).reshape(count, width).astype(np.uint8)


def unpacked_signs(codes: Bytes) -> Bytes:
    """Return what `packed_signs` was given."""
    count, width = codes.shape
    whole = count // _ROWS * _ROWS
    flat = np.ascontiguousarray(codes).ravel()
    mixed = flat[: whole * width].reshape(-1, width, _ROWS)
    first, second = mixed[:, :, :16], mixed[:, :, 16:]
    blocks = np.empty_like(mixed)
    blocks[:, :, _ORDER] = (first & 15) | ((second & 15) << 4)
    blocks[:, :, _ORDER + 16] = (first >> 4) | (second >> 4 << 4)
    rows = blocks.transpose(0, 2, 1).reshape(whole, width)
    rest = flat[whole * width :].reshape(width, count - whole).T
    return np.concatenate([rows, rest])


def blocked(sizes: Bytes, bits: int) -> Bytes:
    """Return sizes as they are stored: 64 numbers at a time, the low bits first and the highest by itself."""
    count, dim = sizes.shape
    padded = np.pad(sizes, ((0, 0), (0, -dim % _BLOCK)))
    parts = _STORED[bits](padded.reshape(count, -(-dim // _BLOCK), _BLOCK))
    return np.concatenate(parts, axis=2).reshape(count, stored_width(dim, bits))


def _two(v: Any) -> list[Any]:
    return [v[:, :, :16] | v[:, :, 16:32] << 2 | v[:, :, 32:48] << 4 | v[:, :, 48:] << 6]


def _four(v: Any) -> list[Any]:
    eights = v.reshape(*v.shape[:2], 4, 2, 8)
    return [(eights[:, :, :, 0] | eights[:, :, :, 1] << 4).reshape(*v.shape[:2], 32)]


def _low_four(v: Any) -> list[Any]:
    """Return the halves of 32 numbers, of each two that are 16 apart."""
    return [v[:, :, :16] | v[:, :, 16:32] << 4, v[:, :, 32:48] | v[:, :, 48:] << 4]


def _six(v: Any) -> list[Any]:
    last = v[:, :, 48:]
    return [v[:, :, 16 * k : 16 * k + 16] | (last >> 2 * k & 3) << 6 for k in range(3)]


def _top(v: Any, bit: int) -> list[Any]:
    """Return one bit of each number: of number 16k+b bit 8(b%8) + 2k + b//8."""
    bits = (v >> bit & 1).reshape(*v.shape[:2], 4, 2, 8)  # k, b // 8, b % 8
    return [
        np.packbits(bits.transpose(0, 1, 4, 2, 3), axis=None, bitorder="little").reshape(
            *v.shape[:2], 8
        )
    ]


_STORED: Final[dict[int, Any]] = {
    1: lambda v: [np.packbits(v, axis=2, bitorder="little")],
    2: _two,
    3: lambda v: _two(v & 3) + _top(v, 2),
    4: _four,
    5: lambda v: _low_four(v & 15) + _top(v, 4),
    6: _six,
    7: lambda v: _six(v & 63) + _top(v, 6),
    8: lambda v: [v],
}


def from_stream(stored: Bytes, bits: int, dimension: int) -> Bytes:
    """Return codes of 1 to 8 bits, one byte each, of those that follow one another bit by bit."""
    each = np.unpackbits(stored, axis=1, bitorder="little")[:, : bits * dimension]
    weights = (1 << np.arange(bits)).astype(np.uint8)
    found: Bytes = (each.reshape(len(stored), dimension, bits) * weights).sum(2, dtype=np.uint8)
    return found
