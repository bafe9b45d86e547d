"""Writing blobs of version 2: those that are too large for a data file go into files beside it.

``data/x.lance`` has them in ``data/x/{id}.blob``: blobs of medium size together, each
large one by itself, numbered from 1.  A blob that lies elsewhere stays there, by its place in one of the
table's base paths or by its URI, or is copied like any other (``ingest``).

A file of blobs is whole before the data file that names it is.  What a write that fails leaves behind,
no data file names.

Source: ledger F-400 to F-402.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from enum import Enum
from typing import Final, Self
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange
from pennon.core.units import MIB
from pennon.encoding.arrow_buffers import arrow_offsets
from pennon.errors import ArgumentError, Breadcrumb
from pennon.io import open_store
from pennon.io.paths import has_dot_segments
from pennon.io.store import ObjectReader, ObjectWriter, Store
from pennon.scan.run.blobs import BlobKind, sidecar_path
from pennon.schema.arrow import storage_field
from pennon.schema.blob import Thresholds, has_blobs_v2, prepare_v2
from pennon.schema.blob_arrays import change_batch
from pennon.schema.field import Field, Schema
from pennon.table.base_paths import below
from pennon.table.fragment import BasePath, DataFileRef

_KEPT: Final = f"\0{secrets.token_hex(8)}"
"""Begins the text that stands for a blob which stays where it is.  No data that comes in has it."""
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:/")
_PIECE_BYTES: Final = 16 * MIB


class ExternalBlobs(Enum):
    """The treatment of blobs that a caller names by a URI."""

    REFERENCE = "reference"
    INGEST = "ingest"

    @classmethod
    def parse(cls, name: str) -> ExternalBlobs:
        """Return the mode of that name; raises ArgumentError that lists the modes."""
        try:
            return cls(name)
        except ValueError:
            known = ", ".join(repr(mode.value) for mode in cls)
            message = f"there is no external_blob_mode {name!r}; the modes are {known}"
            raise ArgumentError(message) from None


@dataclass(frozen=True, slots=True)
class BlobRule:
    """The rule that decides how blobs are written; it pickles.

    ``bases``: base paths of the table, in which blobs may stay.  ``outside``: they may stay anywhere.
    ``pack_bytes``: how large a file of blobs gets, whatever the column says.
    """

    external: ExternalBlobs = ExternalBlobs.REFERENCE
    outside: bool = False
    pack_bytes: int | None = None
    bases: tuple[BasePath, ...] = ()
    storage_options: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if self.outside and self.external is ExternalBlobs.INGEST:
            message = (
                "allow_external_blob_outside_bases only applies when external_blob_mode='reference'"
            )
            raise ArgumentError(message)

    def place(self, uri: str) -> tuple[int, str]:
        """Return the base path that a blob lies in, 0 for none, and where it is there.

        Raises ArgumentError for a place that is not allowed.
        """
        kept = kept_place(uri)
        if kept is not None:
            return kept
        found = [
            (len(base.path), base.id, inner)
            for base in self.bases
            if not base.is_dataset_root and (inner := below(uri, base.path))
        ]
        if found:
            _, base_id, inner = max(found)
            return base_id, inner
        if not _ABSOLUTE.match(uri):
            message = f"{uri!r} is neither within a base path of the table nor an absolute URI"
            raise ArgumentError(message)
        if not self.outside:
            message = (
                f"the blob at {uri!r} lies in no base path of the table (its own root is none); "
                "allow_external_blob_outside_bases=True stores the URI as it is, and "
                "external_blob_mode='ingest' copies the bytes"
            )
            raise ArgumentError(message)
        if has_dot_segments(uri):
            message = f"the URI of a blob, {uri!r}, has dots that are ambiguous; write it without . and .."
            raise ArgumentError(message)
        return 0, quote(uri, safe=":/?#[]@!$&'()*+,;=%~")


def keep_place(base_id: int, place: str) -> str:
    """Return the text that makes a writer say again where a blob lies, as a description said it."""
    return f"{_KEPT}{base_id}:{place}"


def kept_place(uri: str) -> tuple[int, str] | None:
    """Return what `keep_place` was given; None for any other text."""
    if not uri.startswith(_KEPT):
        return None
    number, _, place = uri.removeprefix(_KEPT).partition(":")
    return int(number), place


@dataclass(slots=True)
class _Pack:
    """A file of blobs that is being written; columns that say the same of its size share it."""

    blob_id: int
    most_bytes: int
    writer: ObjectWriter

    def takes(self, most_bytes: int, size_bytes: int) -> bool:
        """Tell whether a blob of a column may be put behind the others."""
        return self.most_bytes == most_bytes >= self.writer.tell() + size_bytes


@dataclass(slots=True)
class BlobFiles:
    """The files of blobs beside one data file; a context, which gives up the open one."""

    store: Store
    ref: DataFileRef
    schema: Schema
    rule: BlobRule
    has_blobs: bool
    pack: _Pack | None = None
    last_id: int = 0

    @classmethod
    def beside(cls, store: Store, ref: DataFileRef, schema: Schema, rule: BlobRule) -> Self:
        """Return the files of blobs of a data file to be."""
        return cls(store, ref, schema, rule, has_blobs_v2(schema))

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *error: object) -> None:
        """Give up what is still being written."""
        if self.pack is not None:
            self.pack.writer.abort()
            self.pack = None

    def finish(self) -> None:
        """Make all files whole."""
        pack, self.pack = self.pack, None
        if pack is not None:
            pack.writer.close()

    def prepare(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Write the large blobs of rows; return the rows as the writer of the data file takes them.

        Raises ArgumentError for a blob that is none, or lies where none may lie.
        """
        if not self.has_blobs:
            return batch
        return change_batch(
            batch, self.schema, lambda array, column, _: _Column(self, column, array).prepare()
        )

    def write_alone(self, source: _Source) -> int:
        """Write a blob into a file of its own; return the file's number."""
        self.last_id += 1
        with self._open(self.last_id) as writer:
            source.copy(writer)
        return self.last_id

    def write_packed(self, most_bytes: int, source: _Source) -> tuple[int, int]:
        """Write a blob behind others; return the file's number, and the place there."""
        pack = self.pack
        if pack is not None and not pack.takes(most_bytes, source.size_bytes):
            self.finish()
            pack = None
        if pack is None:
            self.last_id += 1
            pack = self.pack = _Pack(self.last_id, most_bytes, self._open(self.last_id))
        position = pack.writer.tell()
        source.copy(pack.writer)
        return pack.blob_id, position

    def _open(self, blob_id: int) -> ObjectWriter:
        return self.store.open_writer(sidecar_path(self.ref, blob_id))


@dataclass(frozen=True, slots=True)
class _Source:
    """The bytes of a blob on their way: in memory, or in another file."""

    size_bytes: int
    data: pa.Buffer | None = None
    reader: ObjectReader | None = None
    position: int = 0

    def copy(self, writer: ObjectWriter) -> None:
        if self.reader is None:
            writer.write(self.data)
            return
        for start in range(0, self.size_bytes, _PIECE_BYTES):
            size = min(_PIECE_BYTES, self.size_bytes - start)
            for buffer in self.reader.read([ByteRange(self.position + start, size)]):
                writer.write(buffer)

    def read(self) -> pa.Buffer:
        if self.reader is None or not self.size_bytes:
            return self.data or pa.py_buffer(b"")
        (buffer,) = self.reader.read([ByteRange(self.position, self.size_bytes)])
        return buffer


class _Column:
    """The blobs of one column of a batch."""

    def __init__(self, files: BlobFiles, column: Field, array: pa.StructArray) -> None:
        self.files = files
        self.column = column
        self.thresholds = Thresholds.of(column)
        self.array = array
        self.rows = len(array)
        self.data, self.uri, position, size = (array.field(number) for number in range(4))
        self.valid = _truth(array.is_valid())
        self.is_named = self.valid & _truth(self.uri.is_valid())
        self.has_range = _truth(position.is_valid()), _truth(size.is_valid())
        self.range = position.fill_null(0).to_numpy(), size.fill_null(0).to_numpy()
        self.kinds = np.zeros(self.rows, np.uint8)
        self.positions, self.sizes = np.zeros(self.rows, np.uint64), np.zeros(self.rows, np.uint64)
        self.ids = np.zeros(self.rows, np.uint32)
        self.uris: dict[int, str] = {}
        self.copied: dict[int, bytes] = {}

    def prepare(self) -> pa.StructArray:
        """Return the column as the writer of the data file takes it."""
        self._check()
        offsets, values = arrow_offsets(self.data), self.data.buffers()[2]
        lengths = np.where(_truth(self.data.is_valid()), np.diff(offsets), 0)
        for row in np.flatnonzero(self.valid & (self.is_named | self._is_large(lengths))):
            if self.is_named[row]:
                self._named(int(row))
            else:
                length = int(lengths[row])
                self._place(int(row), _Source(length, values.slice(int(offsets[row]), length)))
        return self._made()

    def _is_large(self, lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        least = min(self.thresholds.inline, self.thresholds.dedicated)
        found: npt.NDArray[np.bool_] = lengths > least
        return found

    def _named(self, row: int) -> None:
        uri = self.uri[row].as_py()
        rule = self.files.rule
        has_range = bool(self.has_range[0][row])
        if kept_place(uri) is None and rule.external is ExternalBlobs.INGEST:
            self._place(row, self._opened(uri, row, has_range=has_range))
            return
        self.kinds[row] = BlobKind.EXTERNAL
        self.ids[row], self.uris[row] = rule.place(uri)
        if has_range:
            self.positions[row], self.sizes[row] = self.range[0][row], self.range[1][row]

    def _opened(self, uri: str, row: int, *, has_range: bool) -> _Source:
        folder, _, name = uri.rpartition("/")
        store = open_store(folder or "/", dict(self.files.rule.storage_options))
        reader = store.open(name)
        position, size = (int(self.range[0][row]), int(self.range[1][row]))
        if not has_range:
            position, size = 0, reader.size_bytes
        if position + size > reader.size_bytes:
            why = f"the range of {size} bytes at {position} leaves {uri!r} ({reader.size_bytes} bytes)"
            raise self._error(row, why)
        return _Source(size, reader=reader, position=position)

    def _place(self, row: int, source: _Source) -> None:
        """Put a blob where one of its size belongs."""
        size = source.size_bytes
        if size > self.thresholds.dedicated:
            self.kinds[row], self.sizes[row] = BlobKind.DEDICATED, size
            self.ids[row] = self.files.write_alone(source)
        elif size > self.thresholds.inline:
            most = self.files.rule.pack_bytes
            most = self.thresholds.pack if most is None else most
            self.kinds[row], self.sizes[row] = BlobKind.PACKED, size
            placed = self.files.write_packed(most, source)
            self.ids[row], self.positions[row] = placed
        else:
            self.copied[row] = source.read().to_pybytes()

    def _made(self) -> pa.StructArray:
        if self.uris:
            uris = pa.array([self.uris.get(row, "") for row in range(self.rows)], pa.string())
        else:
            uris = pa.array(np.full(self.rows, ""), pa.string())
        inline = self.valid & (self.kinds == BlobKind.INLINE)
        data = self.data
        if self.copied:
            values = zip(range(self.rows), data, inline, strict=True)
            data = pa.array(
                [self.copied.get(n, value.as_py() if here else None) for n, value, here in values],
                pa.large_binary(),
            )
        elif not inline.all():
            from pyarrow.compute import if_else  # noqa: PLC0415 - saves 50 ms: most writes need none

            data = if_else(pa.array(inline), data, pa.scalar(None, pa.large_binary()))
        parts = [self.kinds, self.positions, self.sizes, self.ids]
        children = [*(pa.array(part) for part in parts), uris, data]
        fields = list(storage_field(prepare_v2(self.column)).type)
        return pa.StructArray.from_arrays(children, fields=fields, mask=pa.array(~self.valid))

    def _check(self) -> None:
        """Raise ArgumentError unless each blob is either bytes or a place."""
        has_data = _truth(self.data.is_valid())
        from_, size = self.has_range
        rules = (
            (from_ != size, "must set both `position` and `size`, or neither"),
            (from_ & ~self.is_named, "sets `position` and `size` but `uri` is null"),
            (has_data == self.is_named, "must set exactly one of `data` and `uri`"),
            (size & (self.range[1] == 0), "has an external range of no bytes"),
        )
        for broken, why in rules:
            wrong = broken & self.valid
            if wrong.any():
                raise self._error(int(wrong.argmax()), why)

    def _error(self, row: int, why: str) -> ArgumentError:
        message = f"blob column {self.column.name!r}: row {row} of a batch {why}"
        return ArgumentError(message, where=Breadcrumb(column=self.column.name))


def _truth(array: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = array.to_numpy(zero_copy_only=False)
    return found
