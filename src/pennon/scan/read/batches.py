"""Cutting decoded columns into record batches.

Columns come in chunks that end where their pages end, and batches end elsewhere.  A batch that lies
in one chunk of a column is a slice of it; only where it spans two are values copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from pennon.core.memory import Streaming
from pennon.errors import ArgumentError
from pennon.scan.read.fragment_reader import Chunks, one_array


class _Cutter:
    """Hands out a column front to back."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = [chunk for chunk in chunks if len(chunk)] or chunks[:1]
        self._at = 0
        self._used = 0

    def peek(self, rows: int) -> pa.Array[Any]:
        """Return the next ``rows`` values as one array, and stay where we are.

        Raises pyarrow.ArrowInvalid if they are more than one array can hold.
        """
        pieces, at, used = [], self._at, self._used
        while rows:
            piece = self._chunks[at].slice(used, rows)
            pieces.append(piece)
            rows -= len(piece)
            at, used = at + 1, 0
        return one_array(pieces)

    def skip(self, rows: int) -> None:
        """Go past the next ``rows`` values."""
        self._used += rows
        while self._at < len(self._chunks) and self._used >= len(self._chunks[self._at]):
            self._used -= len(self._chunks[self._at])
            self._at += 1


def cut_batches(
    columns: Sequence[Chunks], parts: Sequence[int], batch_rows: int, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield batches of ``batch_rows`` rows, the last one of each part with what is left of its rows.

    A batch has fewer rows where an array of that many would have more than 2 GiB of text or items.
    """
    if columns and all(len(chunks) == 1 for chunks in columns):
        whole = pa.RecordBatch.from_arrays([chunks[0] for chunks in columns], schema=schema)
        if len(parts) == 1 and parts[0] == whole.num_rows <= batch_rows:
            yield whole
            return
        start = 0
        for rows in parts:
            end = start + rows
            while start < end:  # far less work than to slice each column
                yield whole.slice(start, min(batch_rows, end - start))
                start += min(batch_rows, end - start)
        return
    cutters = [_Cutter(chunks) for chunks in columns]
    for rows in parts:
        left = rows
        while left:
            with Streaming():
                arrays, count = _peek(cutters, min(batch_rows, left))
            for cutter in cutters:
                cutter.skip(count)
            left -= count
            if cutters:
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            else:
                yield empty_batch(schema, count)


def _peek(cutters: Sequence[_Cutter], rows: int) -> tuple[list[pa.Array[Any]], int]:
    """Return the next arrays, and how many rows of those wanted fit into them."""
    while True:
        try:
            return [cutter.peek(rows) for cutter in cutters], rows
        except pa.ArrowInvalid:
            if rows == 1:
                raise
            rows = -(-rows // 2)


def empty_batch(schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """Return a batch of ``rows`` rows without columns; it still knows how many they are."""
    nothing: Any = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(nothing).replace_schema_metadata(schema.metadata)


def rebatch(batches: Iterable[pa.RecordBatch], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of exactly ``batch_rows`` rows, the last one with what is left.

    Rows of a batch that comes from several are copied.
    Raises ArgumentError if a column of so many rows has more than 2 GiB of text or items.
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
    try:
        return pa.concat_batches(batches)
    except pa.ArrowInvalid:
        rows = sum(batch.num_rows for batch in batches)
        message = f"{rows} rows are more than one batch can hold; choose a smaller batch_size"
        raise ArgumentError(message) from None
