"""Where the chunks of a mini-block page lie, and which rows they hold.

::

    buffer 0    chunk words    u16 or u32 each: (size / 8 - 1) << 4 | log2(values)
    buffer 1    the chunks     one after the other
    buffer 2    dictionary     if there is one
    last        row index      with lists: u64 * (depth + 1) for each chunk: how many rows end in it,
                               and how many items it has of a row that goes on in the next chunk

The last chunk has what the others leave of the page's items; its word says 0.

Source: ledger F-61, F-76 to F-79.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import Bytes
from pennon.encoding.block import Block, block_bytes
from pennon.encoding.kernels.chunk_index import index_chunks, index_rows
from pennon.encoding.kernels.touched import ChunkTable
from pennon.encoding.v2_1.layouts import MiniBlock
from pennon.errors import FormatError, TooLargeError

MOST_CHUNK_VALUES: Final = 1 << 16
"""Twice what a chunk word can say; a damaged page must not claim more for its last chunk."""


@dataclass(frozen=True, slots=True, eq=False)
class ChunkIndex:
    """One number for each chunk, and for ``offsets``, ``first_values``, ``first_rows`` one more.

    Chunk i lies at ``[offsets[i], offsets[i + 1])`` of its buffer and has the values
    ``[first_values[i], first_values[i + 1])``.  The rows ``[first_rows[i], first_rows[i + 1])``
    begin in it; ``goes_on[i]`` tells whether it begins within a row.
    """

    offsets: Int64Array
    counts: Int64Array
    first_values: Int64Array
    first_rows: Int64Array
    goes_on: npt.NDArray[np.bool_]
    dictionary: Block | None

    @property
    def size_bytes(self) -> int:
        """Return how much memory it takes."""
        dictionary = 0 if self.dictionary is None else block_bytes(self.dictionary)
        return 33 * len(self.counts) + dictionary + 256

    def table(self, position: int) -> ChunkTable:
        """Return what kernels need of it; the first chunk lies at ``position`` of the file."""
        marks = self.goes_on.view(np.uint8)
        return ChunkTable(position, self.offsets, self.first_values, self.first_rows, marks)


def parse_chunk_index(
    layout: MiniBlock,
    rows: int,
    words: Bytes,
    data_bytes: int,
    row_index: Bytes | None,
    dictionary: Block | None = None,
) -> ChunkIndex:
    """Return the index of a page of ``rows`` rows, whose chunks have ``data_bytes`` together.

    Raises FormatError if chunks leave their buffer or do not hold the page's items or rows.
    """
    width = 4 if layout.is_large else 2
    try:
        found = index_chunks(words, width, layout.num_items, MOST_CHUNK_VALUES)
    except ValueError as error:
        raise FormatError(str(error)) from None
    except OverflowError as error:
        raise TooLargeError(str(error)) from None
    offsets, counts, first_values = found
    if offsets[-1] > data_bytes:
        message = f"chunks of {offsets[-1]} bytes in a buffer of {data_bytes}"
        raise FormatError(message)
    if row_index is None:
        first_rows, goes_on = first_values, np.zeros(len(counts), np.bool_)
    else:
        first_rows, goes_on = _rows(layout, row_index, len(counts))
    if first_rows[-1] != rows:
        message = f"chunks of {first_rows[-1]} rows in a page of {rows}"
        raise FormatError(message)
    return ChunkIndex(offsets, counts, first_values, first_rows, goes_on, dictionary)


def join_indices(indices: Sequence[ChunkIndex]) -> ChunkIndex:
    """Return one index of the chunks of several pages, as if they lay side by side."""
    return ChunkIndex(
        _running(np.concatenate([np.diff(index.offsets) for index in indices])),
        np.concatenate([index.counts for index in indices]),
        _running(np.concatenate([index.counts for index in indices])),
        _running(np.concatenate([np.diff(index.first_rows) for index in indices])),
        np.concatenate([index.goes_on for index in indices]),
        None,
    )


def _running(numbers: Int64Array) -> Int64Array:
    """Return 0 and the running sums."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(numbers, dtype=np.int64)])


def _rows(
    layout: MiniBlock, row_index: Bytes, count: int
) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
    """Return the first row of each chunk, and which chunks begin within a row."""
    try:
        return index_rows(row_index, count, layout.index_depth + 1)
    except ValueError as error:
        raise FormatError(str(error)) from None
