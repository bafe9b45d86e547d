"""Checks of blobs of version 2: the files that their descriptions name are there, and long enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.encoding.rows import Rows
from pennon.errors import Breadcrumb, FormatError, LanceError, NotFoundError
from pennon.io.paths import check_path
from pennon.ops.doctor.findings import Finding, Severity, finding_of
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.run.blobs import BlobKind, sidecar_path
from pennon.scan.snapshot import Snapshot
from pennon.schema.blob import describe_v2, with_blobs_v2
from pennon.schema.blob_arrays import RowNumbers, change_blobs
from pennon.schema.field import Field
from pennon.table.base_paths import open_outside
from pennon.table.fragment import DataFileRef

_BATCH_ROWS: Final = 1 << 16
_MOST_OUTSIDE: Final = 10_000
"""The number of files outside of the table that are examined for one fragment."""
_FAR: Final = np.uint64(62)
_LOST: Final = "restore the file from a copy; the rows stay, but these values cannot be read"


@dataclass(slots=True)
class _Ends:
    """The last byte that descriptions name in each file: inline, beside the data file, outside of the table."""

    ref: DataFileRef
    inline: int = 0
    beside: dict[int, int] = field(default_factory=dict)
    outside: dict[tuple[int, str], int] = field(default_factory=dict)
    wrong: str | None = None


def check_blobs(
    snapshot: Snapshot, reader: FragmentReader, top: Field, rows: int
) -> Iterator[Finding]:
    """Yield a finding for each file of blobs that a column names and that is missing, or too short.

    Raises what reading the descriptions raises.
    """
    found: dict[int, _Ends] = {}
    for start in range(0, rows, _BATCH_ROWS):
        some = Rows.between(start, min(start + _BATCH_ROWS, rows))
        (chunks,) = reader.read([with_blobs_v2(top, describe_v2)], some)
        for chunk in chunks:
            change_blobs(chunk, top, _Gather(reader, found).look)
    for ends in found.values():
        for each in (_inline, _beside, _outside):
            yield from each(snapshot, top.name, ends)


@dataclass(frozen=True, slots=True)
class _Gather:
    reader: FragmentReader
    found: dict[int, _Ends]

    def look(self, array: pa.StructArray, column: Field, _: RowNumbers) -> pa.StructArray:
        """Take down what descriptions name, and return them."""
        ref = next((f.ref for f in self.reader.files if column.id in f.column_of), None)
        if ref is None or not len(array):
            return array
        ends = self.found.setdefault(column.id, _Ends(ref))
        described = array.drop_null()
        kinds, positions, sizes, ids = (
            described.field(number).fill_null(0).to_numpy() for number in range(4)
        )
        if ((positions | sizes) >> _FAR).any():
            ends.wrong = "a blob leaves any file"
            return array
        if (kinds > max(BlobKind)).any():
            ends.wrong = f"a blob is of the unknown kind {int(kinds.max())}"
            return array
        last = np.where(kinds == BlobKind.DEDICATED, 0, positions).astype(np.int64)
        last += sizes.astype(np.int64)
        inline = last[(kinds == BlobKind.INLINE) & (sizes > 0)]
        ends.inline = max(ends.inline, int(inline.max(initial=0)))
        is_beside = np.isin(kinds, (BlobKind.PACKED, BlobKind.DEDICATED))
        for blob_id in np.unique(ids[is_beside]):
            most = int(last[is_beside & (ids == blob_id)].max(initial=0))
            ends.beside[int(blob_id)] = max(ends.beside.get(int(blob_id), 0), most)
        self._outside(described, ends, np.flatnonzero(kinds == BlobKind.EXTERNAL), last, ids)
        return array

    @staticmethod
    def _outside(described: Any, ends: _Ends, rows: Any, last: Any, ids: Any) -> None:
        uris = described.field(4)
        for row in rows.tolist():
            key = (int(ids[row]), uris[row].as_py() or "")
            if key in ends.outside or len(ends.outside) < _MOST_OUTSIDE:
                ends.outside[key] = max(ends.outside.get(key, 0), int(last[row]))


def _inline(snapshot: Snapshot, column: str, ends: _Ends) -> Iterator[Finding]:
    if ends.wrong is not None:
        error = FormatError(ends.wrong, where=Breadcrumb(ends.ref.store_path, column))
        yield finding_of(error)
    size_bytes = snapshot.open_file(ends.ref).source.size_bytes
    if ends.inline > size_bytes:
        yield _too_short(ends.ref.store_path, column, ends.inline, size_bytes)


def _beside(snapshot: Snapshot, column: str, ends: _Ends) -> Iterator[Finding]:
    if not ends.beside:
        return
    folder = ends.ref.store_path.removesuffix(".lance")
    there = {info.path: info.size_bytes for info in snapshot.store.list(folder)}
    for blob_id, last in ends.beside.items():
        path = sidecar_path(ends.ref, blob_id)
        if path not in there:
            message = f"a file of blobs is missing, which {ends.ref.store_path} names"
            error = NotFoundError(message, where=Breadcrumb(path, column))
            yield finding_of(error, code="missing-blobs", advice=_LOST)
        elif last > there[path]:
            yield _too_short(path, column, last, there[path])


def _outside(snapshot: Snapshot, column: str, ends: _Ends) -> Iterator[Finding]:
    for (base_id, uri), last in ends.outside.items():
        try:
            store, path = open_outside(snapshot.store, base_id, uri)
            size_bytes = store.info(check_path(path)).size_bytes
        except (LanceError, OSError) as error:
            shown = f"@{base_id}/{uri}" if base_id else uri
            if isinstance(error, LanceError):
                error.where = Breadcrumb(shown, column)
            is_missing = isinstance(error, NotFoundError)
            code, advice = ("missing-blobs", _LOST) if is_missing else (None, None)
            yield finding_of(error, file=shown, column=column, code=code, advice=advice)
            continue
        if last > size_bytes:
            shown = f"@{base_id}/{uri}" if base_id else uri
            yield _too_short(shown, column, last, size_bytes)


def _too_short(path: str, column: str, last: int, size_bytes: int) -> Finding:
    what = f"a blob ends at {last}, beyond the {size_bytes} bytes of its file"
    return Finding(Severity.ERROR, "short-blobs", what, _LOST, path, column=column)
