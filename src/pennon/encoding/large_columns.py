"""Columns that have more than one Arrow array holds.

Text, bytes and lists with offsets of 32 bits end at 2 GiB.  Columns have several arrays then; Arrow's
own ``combine_chunks`` and ``take`` of such columns fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.encoding import array_limit
from pennon.encoding.selection import take

Arrays: TypeAlias = "Sequence[pa.Array[Any]]"


def _size(chunk: pa.Array[Any]) -> int:
    """Return the bytes of an array; those of a dictionary's items do not grow with the rows."""
    return int(chunk.indices.nbytes if isinstance(chunk, pa.DictionaryArray) else chunk.nbytes)


def _fit(chunks: Arrays) -> bool:
    """Return whether chunks of one column fit into one array."""
    return sum(map(_size, chunks)) <= array_limit.LARGEST_ARRAY_BYTES


def fitting_arrays(column: pa.ChunkedArray[Any]) -> Iterator[pa.Array[Any]]:
    """Yield a column in as few arrays as hold it; at least one, that may be empty."""
    held: list[pa.Array[Any]] = []
    size_bytes = 0
    for chunk in column.chunks:
        if held and size_bytes + _size(chunk) > array_limit.LARGEST_ARRAY_BYTES:
            yield _joined(held)
            held, size_bytes = [], 0
        held.append(chunk)
        size_bytes += _size(chunk)
    yield _joined(held) if held else pa.array([], column.type)


def _joined(chunks: Arrays) -> pa.Array[Any]:
    found: pa.Array[Any] = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    return found


def combined(table: pa.Table) -> pa.Table:
    """Return a table whose columns have one chunk each, or a few if one cannot hold them."""
    columns = [pa.chunked_array(list(fitting_arrays(column))) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def take_rows(table: pa.Table, rows: Int64Array) -> pa.Table:
    """Return rows of a table in the order asked, in one chunk, or in several if one cannot hold them."""
    columns = [pa.chunked_array(_taken(column, rows), column.type) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _taken(column: pa.ChunkedArray[Any], rows: Int64Array) -> list[pa.Array[Any]]:
    if column.num_chunks < 2 or _fit(column.chunks):
        (whole,) = fitting_arrays(column)
        width = _size(whole) // max(len(whole), 1)
        if width * len(rows) <= array_limit.LARGEST_ARRAY_BYTES:
            try:
                return [take(whole, pa.array(rows))]
            except pa.ArrowInvalid:  # some rows are far wider than others, and come more than once
                pass
    return _taken_by_chunk(column, rows)


def _taken_by_chunk(column: pa.ChunkedArray[Any], rows: Int64Array) -> list[pa.Array[Any]]:
    """Return rows of a column whose chunks are read one by one.

    Raises pyarrow.ArrowInvalid if one row alone is more than an array holds.
    """
    if not len(rows):
        return [pa.array([], column.type)]
    ends = np.cumsum([len(chunk) for chunk in column.chunks])
    owners = np.searchsorted(ends, rows, side="right")
    parts, order = [], [np.empty(0, np.int64)]
    for owner in np.unique(owners).tolist():
        chunk = column.chunk(owner)
        places = np.flatnonzero(owners == owner)
        part = _of_chunk(chunk, rows[places] - (int(ends[owner]) - len(chunk)))
        if part is None:
            return _halves(column, rows)
        parts.append(part)
        order.append(places)
    if len(rows) > 1 and not _fit(parts):
        return _halves(column, rows)
    back = np.empty(len(rows), np.int64)
    back[np.concatenate(order)] = np.arange(len(rows))
    return [take(_joined(parts), pa.array(back))]


def _of_chunk(chunk: pa.Array[Any], rows: Int64Array) -> pa.Array[Any] | None:
    """Return rows of a chunk; None if they are too much for one array."""
    try:
        return take(chunk, pa.array(rows))
    except pa.ArrowInvalid:
        if len(rows) == 1:
            raise
        return None


def _halves(column: pa.ChunkedArray[Any], rows: Int64Array) -> list[pa.Array[Any]]:
    half = len(rows) // 2
    if not half:
        return _taken_by_chunk(column, rows)
    return [*_taken(column, rows[:half]), *_taken(column, rows[half:])]
