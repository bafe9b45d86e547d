"""Chunks: a column read from several pages is several arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import pyarrow as pa


def align(columns: Sequence[Sequence[pa.Array]]) -> Iterator[tuple[pa.Array, ...]]:
    """Yield the chunks of several columns cut to equal lengths; nothing is copied."""
    if all(len(chunks) == 1 for chunks in columns):
        yield tuple(chunks[0] for chunks in columns)
        return
    borders = sorted({end for chunks in columns for end in accumulate(map(len, chunks)) if end})
    cursors = [_Cursor(chunks) for chunks in columns]
    done = 0
    for border in borders:
        yield tuple(cursor.take(border - done) for cursor in cursors)
        done = border


class _Cursor:
    """Walks along the chunks of one column."""

    __slots__ = ("_chunks", "_number", "_used")

    def __init__(self, chunks: Sequence[pa.Array]) -> None:
        self._chunks = [chunk for chunk in chunks if len(chunk)]
        self._number = 0
        self._used = 0

    def take(self, count: int) -> pa.Array:
        """Return the next ``count`` rows, which never cross the end of a chunk."""
        chunk = self._chunks[self._number]
        part = chunk.slice(self._used, count)
        self._used += count
        if self._used == len(chunk):
            self._number, self._used = self._number + 1, 0
        return part


def join(chunks: Sequence[pa.Array], data_type: pa.DataType) -> pa.Array:
    """Return all chunks as one array; copied only if there are several."""
    if len(chunks) == 1:
        return chunks[0]
    return pa.concat_arrays(chunks) if chunks else pa.nulls(0, data_type)
