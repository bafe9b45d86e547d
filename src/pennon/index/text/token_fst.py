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
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.kernels.crc32c import crc32c
from pennon.encoding.kernels.token_nodes import write_nodes
from pennon.errors import FormatError

_HEADER: Final = struct.pack("<QQ", 3, 0)
_FOOTER: Final = struct.Struct("<QQI")
_COMMON: Final = b"te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHG"
"""Input bytes that have a number, from 1 on."""
_INDEXED: Final = 32
"""Nodes with more transitions have a table that finds them."""
_MOST_VISITS: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Node:
    """A state: whether a key ends here and what it adds to that key, and the ways on, by their bytes."""

    is_final: bool
    output: int
    ways: tuple[tuple[int, int, int], ...]
    """Byte, output and address of the next node of each."""


_LAST: Final = Node(is_final=True, output=0, ways=())


class TokenFst:
    """An open transducer."""

    def __init__(self, data: bytes) -> None:
        """Raise FormatError if the bytes are none, or their checksum says that they are damaged."""
        if len(data) < len(_HEADER) + _FOOTER.size or data[: len(_HEADER)] != _HEADER:
            message = f"{len(data)} bytes of tokens are no transducer of version 3"
            raise FormatError(message)
        keys: int
        self._root: int
        keys, self._root, checksum = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
        if checksum != _masked_checksum(data[:-4]):
            message = (
                f"the tokens of a full-text index, {len(data)} bytes, do not have their checksum"
            )
            raise FormatError(message)
        self._data = data
        self._end = len(data) - _FOOTER.size
        self.keys = keys

    def find(self, key: bytes) -> int | None:
        """Return the value of a key; None if there is no such key."""
        address, value = self._root, 0
        for byte in key:
            for label, output, target in self.node(address).ways:
                if label == byte:
                    address, value = target, value + output
                    break
            else:
                return None
        node = self.node(address)
        return value + node.output if node.is_final else None

    @property
    def root(self) -> int:
        """Return the address of the first node."""
        return self._root

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Yield all keys in order, and their values.  Raises FormatError if there are more than it says."""
        waiting = [(self._root, b"", 0)]
        found = visits = 0
        while waiting:
            address, key, value = waiting.pop()
            node = self.node(address)
            visits += 1
            if visits > _MOST_VISITS:
                break
            if node.is_final:
                found += 1
                yield key, value + node.output
            waiting += [
                (target, key + bytes((byte,)), value + output)
                for byte, output, target in reversed(node.ways)
            ]
        if found != self.keys:
            message = f"the tokens of a full-text index are {found}, not {self.keys}"
            raise FormatError(message)

    def node(self, address: int) -> Node:
        """Return the node at an address.  Raises FormatError if it leaves the nodes' bytes."""
        if address == 0:
            return _LAST
        if not len(_HEADER) <= address < self._end:
            message = f"a node of {self._end} bytes of tokens lies at {address}"
            raise FormatError(message)
        state = self._data[address]
        if state & 0x80:
            return self._one_way(address, state)
        return self._any(address, state)

    def _one_way(self, address: int, state: int) -> Node:
        at = address
        common = state & 0x3F
        if common:
            byte = _COMMON[common - 1]
        else:
            at -= 1
            byte = self._number(at, 1)
        if state & 0x40:
            return Node(is_final=False, output=0, ways=((byte, 0, self._target(at, 1)),))
        at -= 1
        sizes = self._number(at, 1)
        at -= sizes >> 4
        delta = self._number(at, sizes >> 4)
        at -= sizes & 15
        output = self._number(at, sizes & 15)
        return Node(is_final=False, output=0, ways=((byte, output, self._target(at, delta)),))

    def _any(self, address: int, state: int) -> Node:
        at, count = address, state & 0x3F
        if not count:
            at -= 1
            count = self._number(at, 1)
            count = 256 if count == 1 else count
        at -= 1
        sizes = self._number(at, 1)
        wide, high = sizes >> 4, sizes & 15
        at -= 256 if count > _INDEXED else 0
        inputs = at = at - count
        deltas = at = at - count * wide
        outputs = at = at - count * high
        at -= high if state & 0x40 else 0
        last = self._number(at, high) if state & 0x40 else 0
        self._number(at, 0)
        ways = []
        for place in range(count - 1, -1, -1):
            delta = self._number(deltas + place * wide, wide)
            output = self._number(outputs + place * high, high)
            ways.append((self._data[inputs + place], output, self._target(at, delta)))
        return Node(bool(state & 0x40), last, tuple(ways))

    def _number(self, at: int, size: int) -> int:
        if at < len(_HEADER) or size > 8:
            message = "a node of the tokens of a full-text index leaves its bytes"
            raise FormatError(message)
        return int.from_bytes(self._data[at : at + size], "little")

    def _target(self, first: int, delta: int) -> int:
        """Return the address that lies ``delta`` bytes before a node that begins at ``first``."""
        return first - delta if delta else 0


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
