"""Positions of the blobs of chosen rows, and reads of their bytes.

A description (`pennon.schema.blob`) says where a value is, as seen from the data file that holds the
description.  Blobs of version 2 are of four kinds:

====  =========  =================================================================
kind             bytes
====  =========  =================================================================
0     inline     in the data file, as all blobs of version 1
1     packed     in ``<data file>/<blob_id>.blob``, with others
2     dedicated  ``<data file>/<blob_id>.blob``, the whole file
3     external   under ``blob_uri``, in the base path ``blob_id`` or, if that is 0, anywhere that
                 `pennon.io.trust` allows; all that is there, if the size is 0
====  =========  =================================================================

Blobs of a nested table (`pennon.table.blob_table`) have no description: they are read with their rows.

The name of such a file is the id's 32 binary digits in reverse, so that object stores spread them.

Source: ledger F-113.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.errors import (
    ArgumentError,
    Breadcrumb,
    FormatError,
    LanceError,
    OutOfRangeError,
    UnsupportedError,
)
from pennon.io.mapped import MappedReader
from pennon.io.memory import MemoryStore
from pennon.io.paths import check_path
from pennon.io.store import ObjectReader, Store
from pennon.scan.plan.take_plan import TakePlan, plan_take
from pennon.scan.read.columns import UInt64Array
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.run.take import take_addresses, take_offsets, take_row_ids
from pennon.scan.snapshot import Snapshot
from pennon.schema.blob import NULL_POSITION, is_description
from pennon.schema.check import is_blob, is_blob_v2
from pennon.schema.field import Field
from pennon.schema.project import resolve
from pennon.table.base_paths import open_outside
from pennon.table.blob_table import FOLDER, blob_version, is_stored_apart
from pennon.table.fragment import DataFileRef


class BlobKind(IntEnum):
    """The storage place of a blob of version 2."""

    INLINE = 0
    PACKED = 1
    DEDICATED = 2
    EXTERNAL = 3


class BlobSource:
    """A file that has blobs in it, opened when the first of them is read; it pickles.

    ``opened`` is the file, where this process has it open already.
    """

    __slots__ = ("_opened", "_path", "_size_bytes", "_store")

    def __init__(
        self, store: Store, path: str, size_bytes: int | None, opened: ObjectReader | None = None
    ) -> None:
        self._store = store
        self._path = path
        self._size_bytes = size_bytes
        self._opened = None if opened is None else (os.getpid(), opened)

    def __reduce__(self) -> tuple[type[BlobSource], tuple[Store, str, int | None]]:
        """Pickle without what is open."""
        return BlobSource, (self._store, self._path, self._size_bytes)

    def open(self) -> ObjectReader:
        """Return the file, opened by this process.  Raises NotFoundError if it is not there."""
        opened = self._opened
        if opened is None or opened[0] != os.getpid():
            opened = self._opened = (os.getpid(), self._store.open(self._path, self._size_bytes))
        return opened[1]


class ReadBlob(BlobSource):
    """The bytes of one blob, which were read with its row; they pickle."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        super().__init__(MemoryStore(), FOLDER, len(data))
        self._data = data

    def __reduce__(self) -> tuple[type[ReadBlob], tuple[bytes]]:  # type: ignore[override]
        """Pickle the bytes."""
        return ReadBlob, (self._data,)

    def open(self) -> ObjectReader:
        """Return the bytes as a file."""
        return MappedReader(MemoryStore(), FOLDER, pa.py_buffer(self._data))


@dataclass(frozen=True, slots=True, eq=False)
class BlobRange:
    """The bytes of one blob."""

    source: BlobSource
    position: int
    size_bytes: int

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[pa.Buffer]:
        """Return (offset, length) ranges of the blob, read in one round.

        Raises FormatError if the blob leaves its file.
        """
        wanted = [(self, offset, length) for offset, length in ranges]
        return read_ranges(wanted)


Wanted: TypeAlias = tuple[BlobRange, int, int]
"""A blob, an offset in it, and a length."""


def read_ranges(wanted: Sequence[Wanted]) -> list[pa.Buffer]:
    """Return ranges of blobs, all those of one file in one round.

    Raises FormatError if a blob leaves its file.
    """
    found = [pa.py_buffer(b"")] * len(wanted)
    by_source: dict[BlobSource, list[int]] = {}
    for number, (blob, _, length) in enumerate(wanted):
        if length:
            by_source.setdefault(blob.source, []).append(number)
    for source, numbers in by_source.items():
        reader = source.open()
        extents = [_extent(reader, *wanted[number]) for number in numbers]
        for number, buffer in zip(numbers, reader.read(extents), strict=True):
            found[number] = buffer
    return found


def _extent(reader: ObjectReader, blob: BlobRange, offset: int, length: int) -> ByteRange:
    if blob.position + blob.size_bytes > reader.size_bytes:
        message = f"a blob of {blob.size_bytes} bytes that leaves its file"
        place = (blob.position, blob.position + blob.size_bytes)
        raise FormatError(message, where=Breadcrumb(reader.path, byte_range=place))
    return ByteRange(blob.position + offset, length)


@dataclass(frozen=True, slots=True, eq=False)
class BlobRows:
    """The rows that were asked for: where each lies, and its blob; None stands for NULL."""

    addresses: list[int]
    blobs: list[BlobRange | None]


def blobs_by_indices(snapshot: Snapshot, column: str, indices: Int64Array) -> BlobRows:
    """Return the blobs of rows by their number.  Raises OutOfRangeError if there is no such row."""
    return _find(snapshot, column, partial(take_offsets, snapshot), indices)


def blobs_by_addresses(snapshot: Snapshot, column: str, addresses: UInt64Array) -> BlobRows:
    """Return the blobs of rows by their address.

    Raises OutOfRangeError if there is no such row, UnsupportedError if one is deleted.
    """
    found = _find(snapshot, column, partial(take_addresses, snapshot), addresses)
    if len(found.addresses) != len(addresses):
        alive = np.isin(addresses, np.array(found.addresses, np.uint64))
        missing = int(addresses[~alive][0])
        message = (
            "A take operation that includes row addresses must not target deleted rows: the row at "
            f"address {missing} is deleted"
        )
        raise UnsupportedError(message)
    return found


def blobs_by_ids(snapshot: Snapshot, column: str, ids: UInt64Array) -> BlobRows:
    """Return the blobs of rows by their id.  Raises as `blobs_by_addresses`, or OutOfRangeError."""
    if not snapshot.manifest.has_stable_row_ids:
        return blobs_by_addresses(snapshot, column, ids)
    found = _find(snapshot, column, partial(take_row_ids, snapshot), ids)
    if len(found.addresses) != len(ids):
        message = f"only {len(found.addresses)} of the {len(ids)} row ids exist in this version"
        raise OutOfRangeError(message)
    return found


def _find(
    snapshot: Snapshot,
    column: str,
    take: Callable[[TakePlan, npt.NDArray[Any]], pa.RecordBatch],
    rows: npt.NDArray[Any],
) -> BlobRows:
    path = resolve(snapshot.manifest.schema, column)
    if is_stored_apart(path[-1]) and blob_version(snapshot.manifest):
        batch = take(plan_take(snapshot, {"blob": column, "_rowaddr": "_rowaddr"}), rows)
        blobs = [_in_memory(value.as_buffer()) for value in batch.column(0)]
        return BlobRows(batch.column(1).to_pylist(), blobs)
    described = next((each for each in path if is_blob(each) or is_blob_v2(each)), None)
    if described is not path[-1]:
        message = f"column {column!r} is not a blob column"
        raise ArgumentError(message)
    shown = resolve(snapshot.shown_schema, column)[-1]
    if not is_description(shown):
        message = (
            f"column {column!r} holds no blobs, but bytes among its rows, for the table is of file "
            "version 0.1; scans and takes give them"
        )
        raise UnsupportedError(message)
    batch = take(plan_take(snapshot, {"blob": column, "_rowaddr": "_rowaddr"}), rows)
    addresses = batch.column(1).to_pylist()
    return BlobRows(addresses, locate_blobs(snapshot, path[-1], addresses, batch.column(0)))


def _in_memory(value: pa.Buffer | None) -> BlobRange | None:
    """Return a blob whose bytes were read: those of a nested table lie among its rows."""
    return None if value is None else BlobRange(ReadBlob(value.to_pybytes()), 0, value.size)


def locate_blobs(
    snapshot: Snapshot,
    column: Field,
    addresses: Sequence[int],
    descriptions: pa.StructArray | pa.ChunkedArray[Any],
) -> list[BlobRange | None]:
    """Return what descriptions describe, given the addresses of their rows; None for NULL.

    Raises UntrustedPathError for a blob outside of the table, in a place that may not be read.
    """
    locator = _Locator(snapshot, column)
    locate = locator.version_2 if is_blob_v2(column) else locator.version_1
    return [
        None if description is None else locate(address >> 32, description)
        for address, description in zip(addresses, descriptions.to_pylist(), strict=True)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _Locator:
    """Turns descriptions into ranges of files; rows share what is opened."""

    snapshot: Snapshot
    column: Field
    refs: dict[int, DataFileRef] = field(default_factory=dict)
    sources: dict[str, BlobSource] = field(default_factory=dict)

    def version_1(self, fragment_id: int, description: Mapping[str, Any]) -> BlobRange | None:
        """Return the blob of a description (position, size)."""
        position, size_bytes = description["position"], description["size"]
        if size_bytes == 0 and position == NULL_POSITION:
            return None
        return self._inline(fragment_id, position, size_bytes)

    def version_2(self, fragment_id: int, description: Mapping[str, Any]) -> BlobRange | None:
        """Return the blob of a description that says its kind."""
        kind, position, size_bytes = (description[key] for key in ("kind", "position", "size"))
        if kind == BlobKind.INLINE:
            return self._inline(fragment_id, position, size_bytes)
        if kind in {BlobKind.PACKED, BlobKind.DEDICATED}:
            path = sidecar_path(self._ref(fragment_id), description["blob_id"])
            start = position if kind == BlobKind.PACKED else 0
            return BlobRange(self._source(path), start, size_bytes)
        try:
            if kind == BlobKind.EXTERNAL:
                place = description["blob_id"], description["blob_uri"]
                return self._external(*place, position, size_bytes)
            message = f"blob of the unknown kind {kind}"
            raise FormatError(message)
        except LanceError as error:
            where = Breadcrumb(self._ref(fragment_id).store_path, self.column.name)
            raise error.located(where) from error.__cause__

    def _external(self, base_id: int, place: str, position: int, size_bytes: int) -> BlobRange:
        """Return a blob outside of the table.  Raises UntrustedPathError if that may not be read."""
        source = self.sources.get(f"{base_id}:{place}")
        if source is None:
            store, path = open_outside(self.snapshot.store, base_id, place)
            source = BlobSource(store, check_path(path), None)
            self.sources[f"{base_id}:{place}"] = source
        if position == size_bytes == 0:
            size_bytes = source.open().size_bytes
        return BlobRange(source, position, size_bytes)

    def _inline(self, fragment_id: int, position: int, size_bytes: int) -> BlobRange:
        ref = self._ref(fragment_id)
        source = self._source(ref.store_path, ref)
        return BlobRange(source, position if size_bytes else 0, size_bytes)

    def _source(self, path: str, ref: DataFileRef | None = None) -> BlobSource:
        """Return a file of blobs; ``ref`` is given for a data file, which the session has open."""
        source = self.sources.get(path)
        if source is None:
            store = self.snapshot.store
            opened = None if ref is None else self.snapshot.open_file(ref).source
            size_bytes = None if ref is None else ref.size_bytes or None
            source = self.sources[path] = BlobSource(store, path, size_bytes, opened)
        return source

    def _ref(self, fragment_id: int) -> DataFileRef:
        """Return the data file that holds the column's descriptions in a fragment."""
        ref = self.refs.get(fragment_id)
        if ref is None:
            fragment = self.snapshot.manifest.fragment(fragment_id)
            files = () if fragment is None else FragmentReader(self.snapshot, fragment).files
            ref = next((f.ref for f in files if self.column.id in f.column_of), None)
            if ref is None:
                message = f"blobs of column {self.column.name!r}, which no data file has"
                raise FormatError(message)
            self.refs[fragment_id] = ref
        return ref


def sidecar_path(ref: DataFileRef, blob_id: int) -> str:
    """Return the path of a file of blobs beside a data file, below the table's root."""
    digits = f"{blob_id:032b}"[::-1]
    return f"{ref.store_path.removesuffix('.lance')}/{digits}.blob"
