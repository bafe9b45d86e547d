"""Deletion files: which rows of a fragment are dead.

A fragment has at most one.  Small sets are an Arrow IPC file of one batch with one column,
``row_id: uint32 not null``, in any order (Lance writes it from a hash set); large ones are a
Roaring bitmap.  "Row id" is the offset of a row in its fragment.

Source: ledger F-43, F-44; rust/lance-table/src/io/deletion.rs in the Lance repository.
"""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ascending
from pennon.core.units import FragmentId
from pennon.errors import Breadcrumb, FormatError, LanceError, TooLargeError
from pennon.io.store import Opens, Writes
from pennon.table.fragment import MAX_ROWS, DeletionFileRef, DeletionKind, Fragment
from pennon.table.roaring import Offsets, parse_roaring, serialize_roaring

_ARROW_MAX_ROWS = 5000
"""Up to so many deleted rows Lance writes the Arrow kind."""

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
        offsets = parse_deletions(data, deletion.kind)
        _check_fits(offsets, fragment, deletion)
    except LanceError as error:
        raise error.located(Breadcrumb(file=path)) from error.__cause__
    return offsets


def parse_deletions(data: pa.Buffer, kind: DeletionKind) -> Offsets:
    """Return the row offsets in a deletion file, ascending, without repeats."""
    if kind is DeletionKind.BITMAP:
        return parse_roaring(data.to_pybytes())
    return ascending(_parse_arrow(data))


def serialize_deletions(offsets: Offsets, kind: DeletionKind) -> bytes:
    """Return the bytes of a deletion file; the offsets ascend without repeats."""
    if kind is DeletionKind.BITMAP:
        return serialize_roaring(offsets)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
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
    dead = ascending(offsets).astype(np.uint32)
    if not len(dead):
        return None
    kind = DeletionKind.ARROW if len(dead) <= _ARROW_MAX_ROWS else DeletionKind.BITMAP
    number = int.from_bytes(os.urandom(8), "little")
    deletion = DeletionFileRef(kind, read_version, number, len(dead))
    store.put(deletion.store_path(fragment_id), serialize_deletions(dead, kind))
    return deletion


def _parse_arrow(data: pa.Buffer) -> Offsets:
    try:
        with pa.ipc.open_file(data) as file:
            if file.num_record_batches != 1 or not _is_offsets(file.schema):
                message = (
                    "a deletion file holds one batch of one column row_id: uint32, not "
                    f"{file.num_record_batches} of {file.schema.to_string()[:200]}"
                )
                raise FormatError(message)
            column = file.get_batch(0).column(0)
            column.validate(full=True)
    except MemoryError as error:
        message = "a deletion file asks for more memory than there is"
        raise TooLargeError(message) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, LanceError):
            raise
        message = f"a deletion file is no Arrow file: {error}"
        raise FormatError(message) from error
    if column.null_count:
        message = "a deletion file has nulls"
        raise FormatError(message)
    offsets: Offsets = column.to_numpy(zero_copy_only=False)
    return offsets


def _is_offsets(schema: pa.Schema) -> bool:
    return len(schema) == 1 and schema.field(0).type == pa.uint32()


def _check_fits(offsets: Offsets, fragment: Fragment, deletion: DeletionFileRef) -> None:
    stated = deletion.num_deleted_rows
    if stated is not None and stated != len(offsets):
        message = f"the deletion file holds {len(offsets)} rows, the manifest says {stated}"
        raise FormatError(message)
    rows = MAX_ROWS if fragment.physical_rows is None else fragment.physical_rows
    if len(offsets) and int(offsets[-1]) >= rows:
        message = f"row {offsets[-1]} is deleted of fragment {fragment.id}, which has {rows} rows"
        raise FormatError(message)
