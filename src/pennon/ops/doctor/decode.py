"""Decodes a column of a fragment from its first row to its last, in batches of about the same size in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.units import MIB
from pennon.encoding.rows import Rows
from pennon.errors import Breadcrumb, FormatError, LanceError
from pennon.scan.read.fragment_reader import FragmentReader, PreparedRead
from pennon.schema.field import Field

_FIRST_ROWS: Final = 1024
_BATCH_BYTES: Final = 8 * MIB
_MOST_ROWS: Final = 1 << 20
_GROWTH: Final = 8
_MOST_ERRORS: Final = 8
"""The number of different errors that are kept for one column."""
_TAKEN: Final = 16
_WIDE_BYTES: Final = 64
_MOST_FAILURES: Final = 16
"""After so many batches in a row that cannot be decoded, the rest of the column is given up."""


@dataclass(slots=True)
class DecodedColumn:
    """The number of rows of a column that were decoded; the first of each kind of error, and the rows that failed by it."""

    rows: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    first: dict[str, Exception] = field(default_factory=dict)

    def failed(self, error: Exception, rows: int) -> None:
        """Count rows that cannot be decoded."""
        text = getattr(error, "message", str(error))
        if text not in self.errors and len(self.errors) >= _MOST_ERRORS:
            text = next(iter(self.errors))
        self.first.setdefault(text, error)
        self.errors[text] = self.errors.get(text, 0) + rows


def decode_column(reader: FragmentReader, top: Field, rows: int, into: DecodedColumn) -> None:
    """Decode a column, as scans show it, and let Arrow check the arrays; go on behind what cannot be decoded.

    Raises what opening the files raises.
    """
    prepared = reader.prepare([top])
    start, size, failures = 0, _FIRST_ROWS, 0
    while start < rows:
        end = min(start + size, rows)
        before = into.rows
        found = _decode(prepared, reader, top, range(start, end), into)
        failures = 0 if into.rows > before else failures + 1
        if failures == _MOST_FAILURES:
            into.failed(next(reversed(into.first.values())), rows - end)
            return
        wanted = (end - start) * _BATCH_BYTES // max(found, 1)
        size = max(1, min(wanted, size * _GROWTH, _MOST_ROWS))
        start = end


def _decode(
    prepared: PreparedRead, reader: FragmentReader, top: Field, rows: range, into: DecodedColumn
) -> int:
    """Decode some rows, and return how many bytes they have in memory."""
    try:
        (chunks,) = prepared.read(Rows.between(rows.start, rows.stop))
        _check(chunks, reader, top, rows)
        _check_takes(prepared, chunks, rows)
    except (LanceError, pa.ArrowException, MemoryError, ValueError, OverflowError) as error:
        into.failed(_typed(error), len(rows))
        return _BATCH_BYTES
    into.rows += len(rows)
    return sum(chunk.nbytes for chunk in chunks)


def _typed(error: Exception) -> Exception:
    """Return what Arrow says of an array as an error of the bytes."""
    if isinstance(error, pa.ArrowException) and not isinstance(error, LanceError):
        return FormatError(f"the values break Arrow's rules: {error}")
    return error


def _check(chunks: list[pa.Array[Any]], reader: FragmentReader, top: Field, rows: range) -> None:
    if sum(map(len, chunks)) != len(rows):
        message = f"{len(rows)} rows from {rows.start} on gave {sum(map(len, chunks))} values"
        raise FormatError(message)
    for chunk in chunks:
        chunk.validate(full=True)
    if not top.nullable and any(chunk.null_count for chunk in chunks):
        nulls = np.concatenate([np.asarray(each.is_null()) for each in chunks])
        alive = ~reader.live_rows().is_deleted(np.arange(rows.start, rows.stop))
        if (nulls & alive).any():
            message = f"{int((nulls & alive).sum())} rows are NULL in a column that must not be"
            raise FormatError(message)
    for chunk in chunks:
        _check_positions(chunk, reader, top)


def _check_takes(prepared: PreparedRead, chunks: list[pa.Array[Any]], rows: range) -> None:
    """Raise FormatError if takes of rows give other values than the scan: they go by an index in the page.

    Pages of wide values have an entry for each row: every other row is taken, which reads all of them.
    """
    is_wide = sum(chunk.nbytes for chunk in chunks) >= _WIDE_BYTES * len(rows)
    step = 2 if is_wide else max(len(rows) // _TAKEN, 1)
    offsets = np.arange(0, len(rows), step, dtype=np.int64)
    (taken,) = prepared.read(Rows.at(offsets + rows.start))
    found, wanted = pa.chunked_array(taken), pa.chunked_array(chunks).take(pa.array(offsets))
    if not found.equals(wanted) and str(found.to_pylist()) != str(wanted.to_pylist()):  # NaNs
        message = f"takes of rows {rows.start} to {rows.stop} give other values than a scan"
        raise FormatError(message)


def _check_positions(chunk: pa.Array[Any], reader: FragmentReader, top: Field) -> None:
    """Raise FormatError for a description of a blob of version 1 that leaves its file."""
    for array in _descriptions(chunk):
        kept = array.drop_null()
        position, size = (kept.field(at).fill_null(0).to_numpy() for at in (0, 1))
        place = next((each for each in reader.files if top.id in each.column_of), None)
        if place is None or not len(kept):
            return
        size_bytes = reader.snapshot.open_file(place.ref).source.size_bytes
        over = (position > size_bytes) | (size > size_bytes) | (position + size > size_bytes)
        over &= size > 0
        if over.any():
            at = int(np.flatnonzero(over)[0])
            message = (
                f"a blob of {size[at]} bytes at {position[at]} leaves its file of {size_bytes}"
            )
            raise FormatError(message, where=Breadcrumb(place.ref.store_path, top.name))


def _descriptions(array: pa.Array[Any]) -> Iterator[Any]:
    """Yield the arrays that describe blobs of version 1, at the top of a column."""
    if pa.types.is_struct(array.type) and [part.name for part in array.type] == [
        "position",
        "size",
    ]:
        yield array
