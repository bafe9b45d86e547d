"""Deletion files: which rows of a fragment are dead.

A fragment has at most one.  Small sets are an Arrow IPC file of one batch with one column,
``row_id: uint32 not null``, in any order (Lance writes it from a hash set); large ones are a
Roaring bitmap.  "Row id" is the offset of a row in its fragment.

Source: ledger F-43, F-44; rust/lance-table/src/io/deletion.rs in the Lance repository.
"""

from __future__ import annotations

import os
import struct
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.runs import distinct
from pennon.core.units import KIB, MIB, FragmentId
from pennon.errors import Breadcrumb, FormatError, LanceError, TooLargeError
from pennon.io.store import Opens, Writes
from pennon.table.fragment import MAX_ROWS, DeletionFileRef, DeletionKind, Fragment
from pennon.table.roaring import Offsets, parse_roaring, serialize_roaring

_ARROW_MAX_ROWS = 5000
"""Up to so many deleted rows Lance writes the Arrow kind."""

_TAIL_BYTES: Final = 10
_MOST_BUFFERS: Final = 8
_MOST_INFLATED: Final = 128 * MIB
_MOST_RATIO: Final = 255
_SLACK_BYTES: Final = 4 * KIB
"""For a bit for each row, and padding."""

_U64: Final = (1 << 64) - 1

_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])


def read_deletions(store: Opens, fragment: Fragment) -> Offsets:
    """Return the offsets of a fragment's deleted rows, ascending, without repeats.

    Raises NotFoundError if the deletion file is gone, FormatError if it is damaged or does not
    fit the fragment.
    """
    deletion = fragment.deletion_file
    if deletion is None:
        return np.empty(0, np.uint32)
    path = deletion.store_path(fragment.id)
    data = store.read_whole(path)
    try:
        offsets = parse_deletions(data, deletion.kind, _most(fragment))
        _check_fits(offsets, fragment, deletion)
    except LanceError as error:
        raise error.located(Breadcrumb(file=path)) from error.__cause__
    return offsets


def parse_deletions(data: pa.Buffer, kind: DeletionKind, most: int = MAX_ROWS) -> Offsets:
    """Return the row offsets in a deletion file, ascending, without repeats.

    Raises TooLargeError for more than ``most`` rows, before they are decompressed.
    """
    if kind is DeletionKind.BITMAP:
        return parse_roaring(data.to_pybytes(), most)
    return distinct(_parse_arrow(data, most))


def serialize_deletions(offsets: Offsets, kind: DeletionKind) -> bytes:
    """Return the bytes of a deletion file; the offsets ascend without repeats."""
    if kind is DeletionKind.BITMAP:
        return serialize_roaring(offsets)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
    with pa.ipc.new_file(sink, _SCHEMA, options=options) as writer:
        writer.write_batch(pa.record_batch([pa.array(offsets, pa.uint32())], schema=_SCHEMA))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def write_deletions(
    store: Writes, fragment_id: FragmentId, read_version: int, offsets: Offsets
) -> DeletionFileRef | None:
    """Write a new deletion file of a fragment, and return its reference; None if no row is dead.

    The kind follows the number of rows, as Lance chooses it.
    """
    dead = distinct(offsets).astype(np.uint32)
    if not len(dead):
        return None
    kind = DeletionKind.ARROW if len(dead) <= _ARROW_MAX_ROWS else DeletionKind.BITMAP
    number = int.from_bytes(os.urandom(8), "little")
    deletion = DeletionFileRef(kind, read_version, number, len(dead))
    store.put(deletion.store_path(fragment_id), serialize_deletions(dead, kind))
    return deletion


def _parse_arrow(data: pa.Buffer, most: int) -> Offsets:
    try:
        with pa.ipc.open_file(data) as file:
            if file.num_record_batches != 1 or not _is_offsets(file.schema):
                message = (
                    "a deletion file holds one batch of one column row_id: uint32, not "
                    f"{file.num_record_batches} of {file.schema.to_string()[:200]}"
                )
                raise FormatError(message)
        column = _read_batch(data, most).column(0)
        column.validate(full=True)
    except MemoryError as error:
        message = "a deletion file asks for more memory than there is"
        raise TooLargeError(message) from error
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        if isinstance(error, LanceError):
            raise
        message = f"a deletion file cannot be read as an Arrow file: {error}"
        raise FormatError(message) from error
    if column.null_count:
        message = "a deletion file has nulls"
        raise FormatError(message)
    offsets: Offsets = column.to_numpy(zero_copy_only=False)
    return offsets


def _read_batch(data: pa.Buffer, most: int) -> pa.RecordBatch:
    """Return the batch of a file that has one; what it claims to hold is looked at first."""
    message = pa.ipc.read_message(data.slice(_batch_position(data)))
    rows, size_bytes = _claimed(message)
    limit = max(_MOST_INFLATED, _MOST_RATIO * data.size)
    if rows > most or size_bytes > min(limit, 4 * most + _SLACK_BYTES):
        claimed = f"{rows} deleted rows in {size_bytes} bytes"
        text = (
            f"a deletion file of {data.size} bytes claims {claimed}; its fragment has {most} rows"
        )
        raise TooLargeError(text)
    return pa.ipc.read_record_batch(message, _SCHEMA)


def _batch_position(data: pa.Buffer) -> int:
    """Return where the batch of a file lies, which the footer tells (File.fbs of Arrow)."""
    view = memoryview(data)
    try:
        (size,) = struct.unpack_from("<i", view, len(view) - _TAIL_BYTES)
        footer = view[len(view) - _TAIL_BYTES - size :]
        blocks = _follow(footer, _table_field(footer, _follow(footer, 0), 3))
        (position,) = struct.unpack_from("<q", footer, blocks + 4)
    except struct.error as error:
        message = f"a deletion file has no footer: {error}"
        raise FormatError(message) from error
    if not 0 <= position < len(view):
        message = f"the batch of a deletion file of {len(view)} bytes lies at {position}"
        raise FormatError(message)
    return int(position)


def _claimed(message: pa.Message) -> tuple[int, int]:
    """Return how many rows a batch says that it has, and the bytes that it decompresses to.

    Source: Message.fbs and Schema.fbs of Arrow, "RecordBatch" and "BodyCompressionMethod": a buffer that is
    compressed begins with its size before (int64), or -1 if it is not.
    """
    try:
        metadata, body = memoryview(message.metadata), memoryview(message.body)
        header = _follow(metadata, _table_field(metadata, _follow(metadata, 0), 2))
        stated_rows = _table_field(metadata, header, 0)
        (rows,) = struct.unpack_from("<q", metadata, stated_rows) if stated_rows else (0,)
        buffers = _follow(metadata, _table_field(metadata, header, 2))
        (count,) = struct.unpack_from("<I", metadata, buffers)
        compressed = _table_field(metadata, header, 3)
        if count > _MOST_BUFFERS:
            message = f"a deletion file has {count} buffers, of one column"
            raise FormatError(message)
        total = 0
        for number in range(count):
            at, size = struct.unpack_from("<qq", metadata, buffers + 4 + 16 * number)
            (stated,) = struct.unpack_from("<q", body, at) if compressed and size else (-1,)
            total += size if stated == -1 else stated & _U64
    except (struct.error, TypeError, ValueError) as error:
        if isinstance(error, LanceError):
            raise
        message = f"a deletion file has no record batch behind its schema: {error}"
        raise FormatError(message) from error
    return rows, total


def _follow(data: memoryview, position: int) -> int:
    """Return where a flatbuffer's offset leads."""
    (offset,) = struct.unpack_from("<I", data, position)
    return position + int(offset)


def _table_field(data: memoryview, table: int, number: int) -> int:
    """Return where a field of a flatbuffer's table lies, 0 if it has its default."""
    (back,) = struct.unpack_from("<i", data, table)
    size, _ = struct.unpack_from("<HH", data, table - back)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = struct.unpack_from("<H", data, table - back + 4 + 2 * number)
    return table + int(offset) if offset else 0


def _is_offsets(schema: pa.Schema) -> bool:
    return len(schema) == 1 and schema.field(0).type == pa.uint32()


def _most(fragment: Fragment) -> int:
    """Return how many rows a deletion file may hold."""
    return MAX_ROWS if fragment.physical_rows is None else fragment.physical_rows


def _check_fits(offsets: Offsets, fragment: Fragment, deletion: DeletionFileRef) -> None:
    stated = deletion.num_deleted_rows
    if stated is not None and stated != len(offsets):
        message = f"the deletion file holds {len(offsets)} rows, the manifest says {stated}"
        raise FormatError(message)
    rows = _most(fragment)
    if len(offsets) and int(offsets[-1]) >= rows:
        message = f"row {offsets[-1]} is deleted of fragment {fragment.id}, which has {rows} rows"
        raise FormatError(message)
