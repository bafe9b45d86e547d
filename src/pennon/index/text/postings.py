"""Posting lists: which documents have a token, how often, and where.

A list is blocks of 128 documents, or of 256, as blobs; the last has what is left::

    128, full   f32 most score | u32 first | u8 b | 16 b bytes: differences | u8 c | 16 c bytes: frequencies
    256, full   u32 first | u8 b | 32 b bytes | u8 c | u8 x | 32 c bytes | x times: u8 place, varint rest
    last        f32 most score, unless of 256 | fixed32_v1: u32 documents, u32 frequencies
                                              | varint_delta_v1: varints, differences of documents first

Beside it lie bounds of blocks, of which nothing is read here: lists are decoded as wholes, and what a token
contributes is remembered.

Positions are, by the version of the format: lists of blobs, one list a document; or one stream for all blocks,
and where in it each begins.

Releases up to 0.25.2 have rows in place of blocks: they are decoded as they are read.
Source: reference index-scalar, 13.5 and 13.6.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError
from pennon.index.kernels.text.postings import (
    decode_blocks,
    decode_position_lists,
    decode_positions,
    first_docs,
)
from pennon.index.row_set import Numbers
from pennon.index.text.arrays import Bytes, Floats, Words
from pennon.index.text.bm25 import share

_BEST: Final = 64
"""So many of what a token contributes to documents are known in order."""
_RARE: Final = 64
"""A token that fewer than one of so many documents has is rare: bits would take more memory than its list."""
_BITS_A_RANK: Final = 256


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The positions of a token in documents: those of document i are ``values[ends[i]:ends[i + 1]]``."""

    ends: Int64Array
    values: Words

    @property
    def size_bytes(self) -> int:
        """Return about how much memory it takes."""
        return self.ends.nbytes + self.values.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class TokenLists:
    """Posting lists of tokens that follow one another, decoded.

    Those of token i are numbers ``ends[i]`` to ``ends[i + 1]``.  ``positions``: as many as the frequencies say, one
    document after the other; none if they are not wanted.
    """

    ends: Int64Array
    docs: Words
    frequencies: Words
    positions: Words


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The documents of a token, and what it contributes to each at weight 1.

    ``tops``: the most of each 128; ``best``: the greatest, in order.
    """

    docs: Words
    shares: Floats
    tops: Floats
    best: Floats

    @classmethod
    def of(cls, postings: Postings, lengths: Words, average: float) -> Scored:
        """Score a posting list."""
        docs, frequencies = postings.decode()
        shares = share(frequencies.astype(np.float32), lengths[docs].astype(np.float32), average)
        if not len(docs):
            return cls(docs, shares, shares, shares)
        tops = np.maximum.reduceat(shares, np.arange(0, len(docs), 128))
        few = max(len(shares) - _BEST, 0)
        best = np.sort(np.partition(shares, few)[few:])[::-1]
        return cls(docs, shares, tops, best)

    @property
    def size_bytes(self) -> int:
        """Return about how much memory it takes."""
        return self.docs.nbytes + self.shares.nbytes + self.tops.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """A bit for each document of a partition, set for those of a token; ``ranks``: how many come before every 256th.

    Who asks which documents have several tokens need not look for each among all of the other lists.  Of a rare token
    there are none.
    """

    bits: Numbers
    ranks: Words

    @classmethod
    def of(cls, docs: Words, documents: int) -> Members:
        """Return the bits of documents of a posting list, of so many in all."""
        ascend = len(docs) > 0 and docs[-1] < documents and bool((docs[1:] > docs[:-1]).all())
        if len(docs) * _RARE < documents or not ascend:
            return NO_MEMBERS
        blocks = -(-documents // _BITS_A_RANK)
        has = np.zeros(blocks * _BITS_A_RANK, np.bool_)
        has[docs] = True
        bits = np.packbits(has, bitorder="little").view(np.uint64)
        counts = np.bincount(docs // _BITS_A_RANK, minlength=blocks)
        return cls(bits, (np.cumsum(counts) - counts).astype(np.uint32))

    @property
    def size_bytes(self) -> int:
        """Return about how much memory they take."""
        return self.bits.nbytes + self.ranks.nbytes


NO_MEMBERS: Final = Members(np.empty(0, np.uint64), np.empty(0, np.uint32))
"""None are known."""


class Postings(Protocol):
    """The documents of one token in one partition."""

    @property
    def count(self) -> int:
        """Return how many documents have the token."""

    @property
    def block_size(self) -> int:
        """Return how many documents each block has, but for the last."""

    @property
    def size_bytes(self) -> int:
        """Return about how much memory it takes."""

    def firsts(self) -> Words:
        """Return the first document of each block."""

    def decode(self, chosen: Int64Array | None = None) -> tuple[Words, Words]:
        """Return the documents of some blocks, by default all, and how often they have the token."""

    def places(self) -> Places | None:
        """Return where each document has the token; None if that is not stored."""


@dataclass(frozen=True, slots=True, eq=False)
class Blobs:
    """Byte strings behind one another: number i is ``data[ends[i]:ends[i + 1]]``."""

    data: Bytes
    ends: Int64Array

    @classmethod
    def of(cls, values: pa.Array[Any]) -> Blobs:
        """Return the values of an array of bytes without NULLs."""
        if not pa.types.is_large_binary(values.type):
            values = values.cast(pa.large_binary())
        if values.null_count:
            message = "a posting list has blocks that are NULL"
            raise FormatError(message)
        _, ends, data = values.buffers()
        found = np.zeros(1, np.int64)
        if ends is not None and len(values):
            found = np.frombuffer(ends, np.int64, len(values) + 1, 8 * values.offset)
        return cls(np.frombuffer(data or b"", np.uint8), found)

    def __len__(self) -> int:
        return len(self.ends) - 1


@dataclass(frozen=True, slots=True, eq=False)
class PositionLists:
    """Positions of version 1: blobs ``lists[i]`` to ``lists[i + 1]`` are those of document i."""

    blobs: Blobs
    lists: Int64Array

    def decode(self, counts: Int64Array, frequencies: Words) -> Words:  # noqa: ARG002 - as of streams
        """Return the positions of all documents."""
        if len(self.lists) != len(frequencies) + 1:
            message = f"a posting list of {len(frequencies)} documents has positions of {len(self.lists) - 1}"
            raise FormatError(message)
        positions = _room(frequencies, self.blobs)
        decode_position_lists(self.blobs.data, self.blobs.ends, self.lists, frequencies, positions)
        return positions


@dataclass(frozen=True, slots=True, eq=False)
class PositionStreams:
    """Positions of later versions: a stream for each block."""

    blobs: Blobs

    def decode(self, counts: Int64Array, frequencies: Words) -> Words:
        """Return the positions of all documents; the blocks have ``counts``."""
        positions = _room(frequencies, self.blobs)
        if len(self.blobs) != len(counts):
            message = f"{len(counts)} blocks of a posting list have {len(self.blobs)} streams of positions"
            raise FormatError(message)
        decode_positions(self.blobs.data, self.blobs.ends, counts, frequencies, positions)
        return positions


@dataclass(frozen=True, slots=True, eq=False)
class BlockPostings:
    """A posting list in blocks, as it is stored."""

    blocks: Blobs
    count: int
    block_size: int
    is_varint: bool
    documents: int
    """Documents of the partition: all numbers are below."""
    positions: PositionLists | PositionStreams | None = None

    @property
    def size_bytes(self) -> int:
        """See `Postings.size_bytes`."""
        parts = [self.blocks]
        if self.positions is not None:
            parts.append(self.positions.blobs)
        return sum(int(each.ends[-1] - each.ends[0]) + each.ends.nbytes for each in parts)

    @property
    def last_count(self) -> int:
        """Return how many documents the last block has."""
        return self.count - self.block_size * (len(self.blocks) - 1)

    def check(self) -> None:
        """Raise FormatError unless the blocks have as many documents as the list says."""
        if not 0 < self.last_count <= self.block_size or self.count > self.documents:
            message = (
                f"a posting list of {self.count} documents of {self.documents} has {len(self.blocks)} "
                f"blocks of {self.block_size}"
            )
            raise FormatError(message)

    def firsts(self) -> Words:
        """See `Postings.firsts`."""
        found = np.empty(len(self.blocks), np.uint32)
        whole = self.last_count == self.block_size
        is_varint = self.is_varint or self.block_size == 256
        first_docs(self.blocks.data, self.blocks.ends, self.block_size, is_varint, whole, found)
        return found

    def decode(self, chosen: Int64Array | None = None) -> tuple[Words, Words]:
        """See `Postings.decode`."""
        blocks = len(self.blocks)
        if chosen is None:
            chosen, rows = np.arange(blocks), self.count
        else:
            is_last = len(chosen) and chosen[-1] == blocks - 1
            rows = len(chosen) * self.block_size
            rows -= self.block_size - self.last_count if is_last else 0
        docs, frequencies = np.empty(rows, np.uint32), np.empty(rows, np.uint32)
        is_varint = self.is_varint or self.block_size == 256
        decode_blocks(
            self.blocks.data,
            self.blocks.ends,
            chosen,
            self.block_size,
            self.last_count,
            is_varint,
            self.documents,
            docs,
            frequencies,
        )
        return docs, frequencies

    def places(self) -> Places | None:
        """See `Postings.places`."""
        if self.positions is None:
            return None
        _, frequencies = self.decode()
        counts = np.full(len(self.blocks), self.block_size, np.int64)
        counts[len(counts) - 1 :] = self.last_count
        return Places(_ends(frequencies), self.positions.decode(counts, frequencies))


@dataclass(frozen=True, slots=True, eq=False)
class RowPostings:
    """A posting list that is decoded; one block."""

    docs: Words
    frequencies: Words
    found: Places | None = None

    @property
    def count(self) -> int:
        """See `Postings.count`."""
        return len(self.docs)

    @property
    def block_size(self) -> int:
        """See `Postings.block_size`."""
        return max(len(self.docs), 1)

    @property
    def size_bytes(self) -> int:
        """See `Postings.size_bytes`."""
        places = 0 if self.found is None else self.found.values.nbytes + self.found.ends.nbytes
        return self.docs.nbytes + self.frequencies.nbytes + places

    def firsts(self) -> Words:
        """See `Postings.firsts`."""
        return self.docs[:1]

    def decode(self, chosen: Int64Array | None = None) -> tuple[Words, Words]:
        """See `Postings.decode`."""
        if chosen is not None and not len(chosen):
            return self.docs[:0], self.frequencies[:0]
        return self.docs, self.frequencies

    def places(self) -> Places | None:
        """See `Postings.places`."""
        return self.found


def _room(frequencies: Words, blobs: Blobs) -> Words:
    """Return room for positions.  Raises FormatError if the bytes cannot hold so many."""
    count = int(frequencies.sum(dtype=np.int64))
    # 128 positions take a byte at the least, where all are the same
    if count > 128 * (len(blobs.data) + 1):
        message = f"a posting list with {len(blobs.data)} bytes of positions says {count} of them"
        raise FormatError(message)
    return np.empty(count, np.uint32)


def _ends(frequencies: Words) -> npt.NDArray[np.int64]:
    ends = np.zeros(len(frequencies) + 1, np.int64)
    np.cumsum(frequencies, out=ends[1:], dtype=np.int64)
    return ends
