"""The tokens of a partition as a finite-state transducer: a trie whose ways add up to numbers.

::

    u64 version 3 | u64 type 0 | nodes | u64 keys | u64 address of the root | u32 masked CRC-32C of all before

A node lies before its last byte, whose place is the node's address, and is read from there towards the front:

==========  ==========================================================================================
state byte  what comes next, going backwards
==========  ==========================================================================================
11iiiiii    input byte, unless i names a common one; the target is the node just before
10iiiiii    input byte likewise; sizes byte, T << 4 | O; T bytes of delta; O bytes of output
0fnnnnnn    f: a key ends here; if n = 0 a byte with the number of transitions (1 means 256); sizes byte;
            if there are more than 32, 256 bytes that find one; input bytes; deltas; outputs; if f, O
            bytes of output
==========  ==========================================================================================

The target of a transition is that many bytes before its node begins; delta 0 is address 0, the node of a key
that ends there and goes no further.  The value of a key is the sum of the outputs on the way to it.

What is written are nodes of the third kind alone, children before parents, as pylance reads them, too.
Source: reference index-scalar, 13.4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

import numpy as np

from pennon.errors import FormatError
from pennon.index.kernels.text.crc32c import crc32c
from pennon.index.kernels.text.token_nodes import write_nodes
from pennon.index.kernels.text.token_walk import find_key, walk

_HEADER: Final = struct.pack("<QQ", 3, 0)
_FOOTER: Final = struct.Struct("<QQI")
_NO_WORD: Final = np.empty(0, np.uint32)


class TokenFst:
    """An open transducer."""

    def __init__(self, data: bytes) -> None:
        """Raise FormatError if the bytes are none, or their checksum says that they are damaged."""
        if len(data) < len(_HEADER) + _FOOTER.size or data[: len(_HEADER)] != _HEADER:
            message = f"the token file of {len(data)} bytes does not hold a transducer of version 3"
            raise FormatError(message)
        keys: int
        self._root: int
        keys, self._root, checksum = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
        if checksum != _masked_checksum(data[:-4]):
            message = (
                f"the tokens of a full-text index, {len(data)} bytes, do not have their checksum"
            )
            raise FormatError(message)
        self._nodes = np.frombuffer(data, np.uint8)
        self._end = len(data) - _FOOTER.size
        self.keys = keys

    def find(self, key: bytes) -> int | None:
        """Return the value of a key; None if there is no such key."""
        return find_key(self._nodes, self._root, self._end, np.frombuffer(key, np.uint8))

    def items(self) -> list[tuple[bytes, int]]:
        """Return all keys in order, and their values.  Raises FormatError if there are not as many as it says."""
        found = walk(self._nodes, self._root, self._end, _NO_WORD, -1, 0, self.keys + 1)
        if len(found) != self.keys:
            message = f"the tokens of a full-text index are {len(found)}, not {self.keys}"
            raise FormatError(message)
        return found

    def near(self, word: str, distance: int, prefix: int, most: int) -> list[tuple[bytes, int]]:
        """Return the keys that so many edits make of a word, in order, and their values; see `TokenSet.near`."""
        letters = np.frombuffer(word.encode("utf-32-le", "surrogatepass"), np.uint32)
        prefix = min(prefix, len(letters))
        return walk(self._nodes, self._root, self._end, letters, distance, prefix, most)


def write_fst(items: Iterable[tuple[bytes, int]]) -> bytes:
    """Return the transducer of keys, which ascend without repeats, and their values."""
    keys, values = [], []
    for key, value in items:
        keys.append(key)
        values.append(value)
    ends = np.zeros(len(keys) + 1, np.int64)
    np.cumsum([len(key) for key in keys], out=ends[1:])
    data = np.frombuffer(b"".join(keys), np.uint8)
    nodes, root = write_nodes(data, ends, np.array(values, np.uint64), len(_HEADER))
    made = _HEADER + nodes + struct.pack("<QQ", len(keys), root)
    return made + struct.pack("<I", _masked_checksum(made))


def _masked_checksum(data: bytes) -> int:
    checksum = crc32c(np.frombuffer(data, np.uint8))
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
