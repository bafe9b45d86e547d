"""Cutting decoded columns into record batches.

Columns come in chunks that end where their pages end, and batches end elsewhere.  A batch that lies
in one chunk of a column is a slice of it; only where it spans two are values copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from pennon.scan.fragment_reader import Chunks, one_array


class _Cutter:
    """Hands out a column front to back."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = [chunk for chunk in chunks if len(chunk)] or chunks[:1]
        self._at = 0
        self._used = 0

    def next(self, rows: int) -> pa.Array[Any]:
        """Return the next ``rows`` values as one array."""
        pieces = []
        while rows:
            chunk = self._chunks[self._at]
            piece = chunk.slice(self._used, rows)
            pieces.append(piece)
            rows -= len(piece)
            self._used += len(piece)
            if self._used == len(chunk):
                self._at, self._used = self._at + 1, 0
        return one_array(pieces)


def cut_batches(
    columns: Sequence[Chunks], rows: int, batch_rows: int, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield batches of ``batch_rows`` rows, the last one with what is left."""
    cutters = [_Cutter(chunks) for chunks in columns]
    for first in range(0, rows, batch_rows):
        count = min(batch_rows, rows - first)
        if cutters:
            arrays = [cutter.next(count) for cutter in cutters]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        else:
            yield empty_batch(schema, count)


def empty_batch(schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """Return a batch of ``rows`` rows without columns; it still knows how many they are."""
    nothing: Any = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(nothing).replace_schema_metadata(schema.metadata)


def rebatch(batches: Iterable[pa.RecordBatch], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of exactly ``batch_rows`` rows, the last one with what is left.

    Rows of a batch that comes from several are copied.
    """
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        while rows >= batch_rows:
            whole = _one_batch(waiting)
            yield whole.slice(0, batch_rows)
            waiting = [whole.slice(batch_rows)]
            rows -= batch_rows
    if rows:
        yield _one_batch(waiting)


def _one_batch(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    whole = pa.Table.from_batches(batches).combine_chunks()
    return whole.to_batches()[0]
