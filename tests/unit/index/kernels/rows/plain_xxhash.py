"""xxHash64 in plain Python, which the kernel is compared with.

Source: the xxHash specification, 64 bits, seed 0.
"""

from __future__ import annotations

import struct
from typing import Final

_MASK: Final = (1 << 64) - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5


def plain_xxhash64(data: bytes) -> int:
    """Return the hash of some bytes."""
    whole = len(data) // 32 * 32
    if whole:
        lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
        for four in struct.iter_unpack("<4Q", data[:whole]):
            lanes = [_round(lane, word) for lane, word in zip(lanes, four, strict=True)]
        found = sum(map(_turned, lanes, (1, 7, 12, 18))) & _MASK
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        found = _P5
    return _mixed(_with_rest((found + len(data)) & _MASK, data[whole:]))


def _with_rest(found: int, rest: bytes) -> int:
    eights = len(rest) // 8 * 8
    for (word,) in struct.iter_unpack("<Q", rest[:eights]):
        found = (_turned(found ^ _round(0, word), 27) * _P1 + _P4) & _MASK
    rest = rest[eights:]
    if len(rest) >= 4:
        (word,) = struct.unpack("<I", rest[:4])
        found = (_turned(found ^ (word * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        rest = rest[4:]
    for byte in rest:
        found = _turned(found ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    return found


def _mixed(found: int) -> int:
    found = (found ^ (found >> 33)) * _P2 & _MASK
    found = (found ^ (found >> 29)) * _P3 & _MASK
    return found ^ (found >> 32)


def _round(lane: int, word: int) -> int:
    return _turned((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _turned(word: int, by: int) -> int:
    return ((word << by) | (word >> (64 - by))) & _MASK
