"""The positions and rows of the chunks of a mini-block page.

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
from pennon.encoding.kernels.chunk_lookup import ChunkTable, flat_table
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

    numbers: Int64Array
    """See `pennon.encoding.kernels.chunk_index.index_chunks`."""
    dictionary: Block | None
    lists: tuple[Int64Array, npt.NDArray[np.bool_]] | None = None
    """``first_rows`` and ``goes_on``; None if each row is one value."""

    @property
    def offsets(self) -> Int64Array:
        """Return where chunks begin in their buffer."""
        found: Int64Array = self.numbers[0]
        return found

    @property
    def first_values(self) -> Int64Array:
        """Return the first value of each chunk."""
        found: Int64Array = self.numbers[1]
        return found

    @property
    def counts(self) -> Int64Array:
        """Return how many values each chunk has."""
        return self.numbers[2, :-1]

    @property
    def first_rows(self) -> Int64Array:
        """Return the first row of each chunk."""
        return self.numbers[1] if self.lists is None else self.lists[0]

    @property
    def goes_on(self) -> npt.NDArray[np.bool_]:
        """Return which chunks begin within a row."""
        return self.numbers[3, :-1] > 0 if self.lists is None else self.lists[1]

    @property
    def size_bytes(self) -> int:
        """Return how much memory it takes."""
        dictionary = 0 if self.dictionary is None else block_bytes(self.dictionary)
        lists = 0 if self.lists is None else 9 * len(self.lists[0])
        return self.numbers.nbytes + lists + dictionary + 256

    def table(self, position: int) -> ChunkTable:
        """Return what kernels need of it; the first chunk lies at ``position`` of the file."""
        if self.lists is None:
            return flat_table(position, self.numbers)
        first_rows, goes_on = self.lists
        offsets, first_values = self.offsets, self.first_values
        return ChunkTable(position, offsets, first_values, first_rows, goes_on.view(np.uint8))


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
        numbers, size_bytes = index_chunks(words, width, layout.num_items, MOST_CHUNK_VALUES)
    except ValueError as error:
        raise FormatError(str(error)) from None
    except OverflowError as error:
        raise TooLargeError(str(error)) from None
    if size_bytes > data_bytes:
        message = f"chunks of {size_bytes} bytes in a buffer of {data_bytes}"
        raise FormatError(message)
    lists, found_rows = None, layout.num_items
    if row_index is not None:
        lists = _rows(layout, row_index, numbers.shape[1] - 1)
        found_rows = int(lists[0][-1])
    if found_rows != rows:
        message = f"chunks of {found_rows} rows in a page of {rows}"
        raise FormatError(message)
    return ChunkIndex(numbers, dictionary, lists)


def join_indices(indices: Sequence[ChunkIndex]) -> ChunkIndex:
    """Return one index of the chunks of several pages, as if they lay side by side."""
    counts = np.concatenate([index.counts for index in indices])
    offsets = _running(np.concatenate([np.diff(index.offsets) for index in indices]))
    nothing = np.zeros(len(offsets), np.int64)
    numbers = np.stack([offsets, _running(counts), np.append(counts, 0), nothing])
    if all(index.lists is None for index in indices):
        return ChunkIndex(numbers, None)
    first_rows = _running(np.concatenate([np.diff(index.first_rows) for index in indices]))
    goes_on = np.concatenate([index.goes_on for index in indices])
    return ChunkIndex(numbers, None, (first_rows, goes_on))


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
