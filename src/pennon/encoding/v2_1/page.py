"""The content of a page: values, and levels that say how they nest; and an encoded page."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import Bytes
from pennon.encoding.block import Block, FixedWidthBlock
from pennon.encoding.kernels.pack import pack_blocks
from pennon.encoding.kernels.shred import count_levels
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.chunks import Chunks
from pennon.encoding.v2_1.dispatch import Codecs
from pennon.encoding.v2_1.encodings import Encoding, Flat, OutOfLineBitpacking, Rle
from pennon.encoding.v2_1.layouts import Layers, Layout, max_visible
from pennon.encoding.v2_1.page_rules import PageRules
from pennon.encoding.v2_1.rle import encode_rle_blocks, run_bytes
from pennon.errors import FormatError

LevelArray: TypeAlias = npt.NDArray[np.uint16]

LEVEL_BITS: Final = 16
NO_BITS: Final = OutOfLineBitpacking(LEVEL_BITS, Flat(0))
"""The encoding of levels that are all 0 (ledger F-462)."""
NO_LEVELS: Final[LevelArray] = np.empty(0, np.uint16)
"""What stands for levels that a page has not, where a kernel wants an array."""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Repetition and definition levels of the same entries; None where all of them are 0."""

    rep: LevelArray | None
    definition: LevelArray | None
    layers: Layers


def visible_levels(levels: Levels) -> slice | npt.NDArray[np.bool_]:
    """Return which levels have a value."""
    if levels.definition is None or levels.rep is None:
        return slice(None)
    return levels.definition <= max_visible(levels.layers)


@dataclass(frozen=True, slots=True, eq=False)
class PageValues:
    """The values of some rows of a page; NULLs are in the levels, not in the values.

    With a ``dictionary``, the values are indices into it.
    """

    values: Block
    dictionary: Block | None
    levels: Levels


def decode_levels(encoding: Encoding, chunks: Chunks, codecs: Codecs) -> LevelArray:
    """Return the levels of all chunks.

    Those that are all 0 may be packed to no bits.  Raises FormatError if they are no 16 bit
    numbers, TooLargeError for more than a few bytes may stand for.
    """
    if encoding == NO_BITS:
        chunks.check_expanded()
        return np.zeros(chunks.values, "<u2")
    block = codecs.decode_blocks(encoding, chunks, Rows.between(0, chunks.values))
    if not isinstance(block, FixedWidthBlock) or block.bits_per_value != 16:
        message = (
            f"repetition or definition levels must be 16-bit numbers, but are encoded as {encoding}"
        )
        raise FormatError(message)
    if block.data.size < 2 * block.rows:
        message = f"{block.rows} levels in {block.data.size} bytes"
        raise FormatError(message)
    return np.frombuffer(block.data, "<u2", block.rows)


@dataclass(frozen=True, slots=True, eq=False)
class LevelChunks:
    """``sizes[i]`` bytes of ``data`` belong to chunk i."""

    encoding: Encoding
    data: Bytes
    sizes: Int64Array

    @property
    def size_bytes(self) -> int:
        """Return how many bytes they take in the chunks."""
        return int(((self.sizes + 7) // 8 * 8).sum())


def levels_per_chunk(levels: Levels, counts: Int64Array) -> Int64Array:
    """Return how many levels go with ``counts[i]`` values; 0 if there are no levels."""
    if levels.definition is None:
        return np.zeros(len(counts), np.int64) if levels.rep is None else counts
    if levels.rep is None:  # outside of lists, each value has a level
        return counts
    return count_levels(levels.definition, counts, max_visible(levels.layers))


_PACKED_FROM: Final = 1024
"""Fewer levels are plain numbers if they are no runs, in pylance's files."""
_RUNS_HEADER: Final = 8
"""What runs of a chunk begin with: the size of their values."""


def encode_levels(levels: LevelArray, counts: Int64Array, rules: PageRules) -> LevelChunks:
    """Return the levels in chunks of ``counts[i]``: as runs, if they may be and are smaller, or packed.

    Runs must also be fewer bytes than the bits of the levels, without the padding of short chunks: there pylance 14
    packs, and its release 2.0, which reads no levels in runs, reads them (ledger F-463).
    """
    packed = _pack_levels(levels, counts)
    size = run_bytes(levels, counts)
    if not rules.level_runs or size >= packed.size_bytes:
        return packed
    bits = len(levels) * max(1, int(levels.max()).bit_length())
    if len(levels) >= _PACKED_FROM and 8 * (size - _RUNS_HEADER * len(counts)) >= bits:
        return packed
    runs = LevelChunks(Rle(Flat(LEVEL_BITS), Flat(8)), *encode_rle_blocks(levels, counts))
    return runs if runs.size_bytes < packed.size_bytes else packed


def _pack_levels(levels: LevelArray, counts: Int64Array) -> LevelChunks:
    width = max(1, int(levels.max()).bit_length())
    data, sizes = pack_blocks(levels, counts, width)
    if data.size == levels.nbytes:  # few levels are not packed, and need no message about it
        return LevelChunks(Flat(LEVEL_BITS), data, sizes)
    return LevelChunks(OutOfLineBitpacking(LEVEL_BITS, Flat(width)), data, sizes)


@dataclass(frozen=True, slots=True, eq=False)
class EncodedPage:
    """A layout, and the page's buffers in their order."""

    layout: Layout
    buffers: tuple[pa.Buffer, ...] = ()

    @property
    def encoding(self) -> Layout:
        """Return what describes the page, under the name that pages of 2.0 have for it."""
        return self.layout

    @property
    def size_bytes(self) -> int:
        """Return how many bytes the buffers have."""
        return sum(buffer.size for buffer in self.buffers)
