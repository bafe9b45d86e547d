"""Validate that the blobs of version 2 of a fragment lie within their files, and that these exist."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.encoding.rows import Rows
from pennon.errors import Breadcrumb, FormatError, NotFoundError
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.run.blobs import BlobKind, sidecar_path
from pennon.scan.snapshot import Snapshot
from pennon.schema.blob import describe_v2, holds_blobs_v2, with_blobs_v2
from pennon.schema.blob_arrays import RowNumbers, change_blobs
from pennon.schema.field import Field
from pennon.table.fragment import DataFileRef


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
