"""Rows with blobs of version 2 on their way from one data file to another: compacted, updated, converted.

What a data file says of a blob holds for that file alone, so blobs are read and written again, and those
outside of the table are named again as they were.  Memory holds `MOST_BYTES` of blobs, or one blob.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.units import MIB
from pennon.errors import UnsupportedError
from pennon.ops.blob_files import keep_place
from pennon.scan.projection import MetaColumn, OutputColumn, Projection
from pennon.scan.run.blobs import BlobKind, locate_blobs, read_ranges
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.blob import described_v2, has_blobs_v2
from pennon.schema.blob_arrays import RowNumbers, change_batch
from pennon.schema.blob_parts import STORAGE
from pennon.schema.field import Field

MOST_BYTES: Final = 32 * MIB
_ADDRESS: Final = MetaColumn.ROW_ADDRESS.value

Batches: TypeAlias = Iterable[pa.RecordBatch]
Addresses: TypeAlias = npt.NDArray[np.uint64]


def to_rewrite(
    snapshot: Snapshot, projection: Projection
) -> tuple[Projection, Callable[[Batches], Batches]]:
    """Return what to read instead of some columns, and what makes rows to be written of that.

    Raises UnsupportedError for parts of columns.
    """
    if not has_blobs_v2(projection.read):
        return projection, iter
    if any(column.path for column in projection.columns):
        message = "parts of columns with blobs cannot be computed with; `to_table` shows them"
        raise UnsupportedError(message)
    rows = RewrittenBlobs(snapshot, projection)
    shown = rows.described
    address = OutputColumn(pa.field(_ADDRESS, pa.uint64()), MetaColumn.ROW_ADDRESS)
    return Projection(shown.read, (*shown.columns, address)), rows.addressed


@dataclass(frozen=True, slots=True)
class RewrittenBlobs:
    """Rows of a version, whose blobs are to be written again."""

    snapshot: Snapshot
    projection: Projection

    @property
    def described(self) -> Projection:
        """Return the columns with descriptions in place of blobs."""
        read = described_v2(self.projection.read)
        columns = tuple(
            column
            if column.meta is not None or column.path
            else replace(column, arrow=field_to_arrow(read.fields[column.top]))
            for column in self.projection.columns
        )
        return Projection(read, columns)

    def addressed(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield rows as a writer takes them, given those with descriptions and their addresses."""
        for batch in batches:
            addresses = batch.column(_ADDRESS).to_numpy()
            yield from self.whole(batch.drop_columns([_ADDRESS]), addresses)

    def whole(self, batch: pa.RecordBatch, addresses: Addresses) -> Iterator[pa.RecordBatch]:
        """Yield rows as a writer takes them, in pieces: blobs are bytes, or told where they stay."""
        schema = self.projection.read
        sizes = np.zeros(batch.num_rows, np.float64)
        change_batch(batch, schema, partial(_add_sizes, sizes))
        for start, end in _cuts(sizes):
            fill = partial(self._fill, addresses[start:end])
            yield change_batch(batch.slice(start, end - start), schema, fill)

    def _fill(
        self, addresses: Addresses, array: pa.StructArray, column: Field, rows: RowNumbers
    ) -> pa.StructArray:
        """Return descriptions of blobs as what a caller would write."""
        stays = _kinds(array) == BlobKind.EXTERNAL
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        moved = np.flatnonzero(valid & ~stays)
        chosen: Any = array.take(pa.array(moved))
        found = locate_blobs(self.snapshot, column, addresses[rows[moved]].tolist(), chosen)
        wanted = [(blob, 0, blob.size_bytes) for blob in found if blob is not None]
        data = _binaries(len(array), moved, read_ranges(wanted))
        places: tuple[list[Any], ...] = tuple([None] * len(array) for _ in range(3))
        for row in np.flatnonzero(valid & stays):
            said = array[row].as_py()
            places[0][row] = keep_place(said["blob_id"], said["blob_uri"])
            if said["size"]:
                places[1][row], places[2][row] = said["position"], said["size"]
        parts = zip(places, list(STORAGE)[1:], strict=True)
        children = [data, *(pa.array(part, field.type) for part, field in parts)]
        return pa.StructArray.from_arrays(children, fields=list(STORAGE), mask=pa.array(~valid))


def _kinds(array: pa.StructArray) -> npt.NDArray[np.uint8]:
    kinds: npt.NDArray[np.uint8] = array.field(0).fill_null(0).to_numpy()
    return kinds


def _add_sizes(
    sizes: npt.NDArray[np.float64], array: pa.StructArray, _: Field, rows: RowNumbers
) -> pa.StructArray:
    """Add the bytes of blobs that are to be read to those of their rows."""
    stays = _kinds(array) == BlobKind.EXTERNAL
    mine = array.field(2).fill_null(0).to_numpy().astype(np.float64)
    np.add.at(sizes, rows, np.where(stays, 0, mine))
    return array


def _cuts(sizes: npt.NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with at most `MOST_BYTES` of blobs, or one row."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = ends[start - 1] if start else 0.0
        end = max(int(np.searchsorted(ends, before + MOST_BYTES, "right")), start + 1)
        yield start, end
        start = end


def _binaries(rows: int, at: RowNumbers, values: list[pa.Buffer]) -> pa.Array[Any]:
    """Return large binaries: values at some rows, NULL at all others."""
    offsets = np.zeros(rows + 1, np.int64)
    offsets[at + 1] = [value.size for value in values]
    is_there = np.zeros(rows, bool)
    is_there[at] = True
    buffers = [
        pa.py_buffer(np.packbits(is_there, bitorder="little")),
        pa.py_buffer(np.cumsum(offsets)),
        values[0] if len(values) == 1 else pa.py_buffer(b"".join(values)),
    ]
    made: pa.Array[Any] = pa.Array.from_buffers(pa.large_binary(), rows, buffers)
    return made
