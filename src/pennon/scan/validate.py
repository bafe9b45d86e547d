"""Validate a version of a table: its files exist, agree, and hold the rows that the manifest names."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.encoding.rows import Rows
from pennon.errors import Breadcrumb, FormatError, NotFoundError
from pennon.scan.read.file_columns import FileColumns
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.run.blobs import BlobKind, sidecar_path
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import storage_field
from pennon.schema.blob import describe_v2, holds_blobs_v2, with_blobs_v2
from pennon.schema.blob_arrays import RowNumbers, change_blobs
from pennon.schema.field import Field
from pennon.table.fragment import TOMBSTONE, DataFileRef, Fragment


def validate(snapshot: Snapshot) -> None:
    """Raise FormatError or NotFoundError for the first thing that is wrong.

    Checked are: field ids and fragment ids are unique and fragments in order; data files are there,
    hold each field once, in columns that exist, and have the fragment's number of rows; at version 0.1
    their ids ascend and the manifest has their dictionaries; deletion files are there, name rows that
    exist, and as many as the manifest says; blobs lie within their files.

    Warns where the size of a file of version 0.1 is another than stated: pylance 1.0.4 states a wrong
    one, and no reader minds.
    """
    _check_field_ids(snapshot)
    _check_fragment_ids(snapshot)
    for fragment in snapshot.manifest.fragments:
        validate_fragment(snapshot, fragment)


def _check_field_ids(snapshot: Snapshot) -> None:
    seen: dict[int, str] = {}
    for field in snapshot.manifest.schema.walk():
        if field.id in seen:
            message = f"fields {seen[field.id]!r} and {field.name!r} have the same id, {field.id}"
            raise FormatError(message)
        seen[field.id] = field.name


def _check_fragment_ids(snapshot: Snapshot) -> None:
    last = -1
    for fragment in snapshot.manifest.fragments:
        if fragment.id == last:
            message = f"two fragments have the id {fragment.id}"
            raise FormatError(message)
        if fragment.id < last:
            message = f"fragment {fragment.id} comes after fragment {last}"
            raise FormatError(message)
        last = fragment.id


def validate_fragment(snapshot: Snapshot, fragment: Fragment) -> None:
    """Check one fragment; raises FormatError or NotFoundError."""
    reader = FragmentReader(snapshot, fragment)
    rows = reader.physical_rows()
    held: set[int] = set()
    for columns in reader.files:
        _check_fields(columns, held)
        opened = snapshot.open_file(columns.ref).data
        _check_dictionaries(snapshot, columns)
        _check_size(snapshot, columns)
        if opened.num_rows != rows:
            message = f"the file has {opened.num_rows} rows, fragment {fragment.id} has {rows}"
            raise FormatError(message, where=Breadcrumb(columns.ref.store_path))
        wrong = [at for at in columns.column_of.values() if at >= opened.num_columns]
        if wrong:
            message = f"column {wrong[0]} is named, but the file has {opened.num_columns} columns"
            raise FormatError(message, where=Breadcrumb(columns.ref.store_path))
    check_blobs(snapshot, reader)
    live = reader.live_rows()
    deletion = fragment.deletion_file
    stated = None if deletion is None else deletion.num_deleted_rows
    if stated is not None and stated != len(live.deleted):
        message = f"fragment {fragment.id} has {len(live.deleted)} deleted rows, not {stated}"
        raise FormatError(message)


def _check_size(snapshot: Snapshot, columns: FileColumns) -> None:
    stated = columns.ref.size_bytes
    actual = snapshot.open_file(columns.ref).source.size_bytes
    if stated and stated != actual:
        message = f"the file has {actual} bytes, the manifest says {stated} bytes"
        if not columns.ref.has_page_table:
            raise FormatError(message, where=Breadcrumb(columns.ref.store_path))
        warnings.warn(f"{columns.ref.store_path}: {message}", stacklevel=4)


def _check_dictionaries(snapshot: Snapshot, columns: FileColumns) -> None:
    """Raise FormatError for a dictionary of version 0.1 that the manifest lacks; the file has it."""
    if not columns.ref.has_page_table:
        return
    known = snapshot.manifest.dictionaries
    for field in snapshot.manifest.schema.walk():
        if not field.logical_type.startswith("dict:") or field.id in known:
            continue
        if field.id not in columns.column_of:
            continue
        data = snapshot.open_file(columns.ref).data
        values = data.dictionary_values(field, storage_field(field).type.value_type)
        if values is not None and len(values):
            message = (
                f"the manifest lacks the dictionary of column {field.name!r}, which the file has; "
                "validate(repair=True) takes it from there"
            )
            raise FormatError(message, where=Breadcrumb(columns.ref.store_path))


def _check_fields(columns: FileColumns, held: set[int]) -> None:
    ids = [number for number in columns.ref.field_ids if number != TOMBSTONE]
    for number in ids:
        if number in held:
            message = f"field {number} is held twice in one fragment"
            raise FormatError(message, where=Breadcrumb(columns.ref.store_path))
        held.add(number)
    if columns.ref.has_page_table and not columns.ref.has_ascending_ids:
        message = f"the field ids {ids} do not ascend; validate(repair=True) puts them in order"
        raise FormatError(message, where=Breadcrumb(columns.ref.store_path))


# --- blobs of version 2 ---------------------------------------------------------------------------


def check_blobs(snapshot: Snapshot, reader: FragmentReader) -> None:
    """Raise NotFoundError for a file of blobs that is not there, FormatError for one that is too short.

    What lies outside of the table is not looked for.
    """
    check = _Check(snapshot, reader)
    rows = Rows.between(0, reader.physical_rows())
    for top in filter(holds_blobs_v2, snapshot.manifest.schema.fields):
        (chunks,) = reader.read([with_blobs_v2(top, describe_v2)], rows)
        for chunk in chunks:
            change_blobs(chunk, top, check.look)


@dataclass(frozen=True, slots=True)
class _Check:
    snapshot: Snapshot
    reader: FragmentReader

    def look(self, array: pa.StructArray, column: Field, _: RowNumbers) -> pa.StructArray:
        """Look at the descriptions of a column, and return them."""
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        kinds, positions, sizes, ids = (
            array.field(number).fill_null(0).to_numpy()[valid] for number in range(4)
        )
        ref = next((f.ref for f in self.reader.files if column.id in f.column_of), None)
        if ref is None:
            return array
        if ((positions | sizes) >> np.uint64(62)).any():
            message = f"a blob of column {column.name!r} that leaves any file"
            raise FormatError(message, where=Breadcrumb(ref.store_path))
        ends = np.where(kinds == BlobKind.DEDICATED, 0, positions).astype(np.int64)
        ends += sizes.astype(np.int64)
        inline = ends[(kinds == BlobKind.INLINE) & (sizes > 0)]
        opened = self.snapshot.open_file(ref).source.size_bytes
        _check_end(ref.store_path, opened, inline)
        self._check_files(ref, ids, ends, np.isin(kinds, (BlobKind.PACKED, BlobKind.DEDICATED)))
        return array

    def _check_files(
        self,
        ref: DataFileRef,
        ids: npt.NDArray[np.uint32],
        ends: npt.NDArray[np.int64],
        beside: npt.NDArray[np.bool_],
    ) -> None:
        if not beside.any():
            return
        store = self.snapshot.store
        there = dict(store.list_names(ref.store_path.removesuffix(".lance")))
        for blob_id in np.unique(ids[beside]):
            path = sidecar_path(ref, int(blob_id))
            if path not in there:
                message = "a file of blobs is missing, which a data file names"
                raise NotFoundError(message, where=Breadcrumb(path))
            stated = there[path]
            size_bytes = store.open(path).size_bytes if stated is None else stated
            _check_end(path, size_bytes, ends[beside & (ids == blob_id)])


def _check_end(path: str, size_bytes: int, ends: npt.NDArray[np.int64]) -> None:
    last = int(ends.max(initial=0))
    if last > size_bytes:
        message = f"a blob ends at {last}, beyond the {size_bytes} bytes of its file"
        raise FormatError(message, where=Breadcrumb(path))
