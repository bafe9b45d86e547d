"""The blobs of chosen rows: the part of pylance's ``LanceDataset`` that is about blobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pennon.blob.file import DEFAULT_BLOB_BUFFER_SIZE, BlobFile, check_buffer_size, check_range
from pennon.compat.arguments import row_ids, row_numbers
from pennon.errors import ArgumentError
from pennon.scan.run.blobs import (
    BlobRows,
    blobs_by_addresses,
    blobs_by_ids,
    blobs_by_indices,
    read_ranges,
)
from pennon.scan.snapshot import Snapshot

_FIND: Final[dict[str, Callable[[Snapshot, str, Any], BlobRows]]] = {
    "ids": lambda snapshot, column, rows: blobs_by_ids(snapshot, column, row_ids(rows)),
    "addresses": lambda snapshot, column, rows: blobs_by_addresses(snapshot, column, row_ids(rows)),
    "indices": lambda snapshot, column, rows: blobs_by_indices(snapshot, column, row_numbers(rows)),
}


class DatasetBlobs:
    """Methods that read blob columns.

    Rows are chosen by ``indices`` (their number in the table), ``addresses`` (``_rowaddr``) or
    ``ids`` (``_rowid``), exactly one of them, in any order, any row more than once.  A NULL is None,
    and not the same as an empty blob.

    Raise ArgumentError for a column that holds no blobs, OutOfRangeError for a row that is not there,
    UnsupportedError for a deleted row or a blob outside of the table's folder, FormatError for a blob
    that lies outside of its file.
    """

    _snapshot: Snapshot

    def take_blobs(
        self,
        blob_column: str,
        ids: Any = None,
        addresses: Any = None,
        indices: Any = None,
        *,
        buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE,
    ) -> list[BlobFile | None]:
        """Return the blobs of rows as files; no byte of them is read before it is asked for.

        >>> rows = pa.table([pennon.blob_array([b"abc", None])], pa.schema([pennon.blob_field("b")]))
        >>> ds = pennon.write_dataset(rows, uri, data_storage_version="2.2")
        >>> first, second = ds.take_blobs("b", indices=[0, 1])
        >>> first.read(), second
        (b'abc', None)
        """
        check_buffer_size(buffer_size)
        found = self._find_blobs(blob_column, ids, addresses, indices)
        return [None if blob is None else BlobFile(blob, buffer_size) for blob in found.blobs]

    def read_blobs(
        self,
        blob_column: str,
        ids: Any = None,
        addresses: Any = None,
        indices: Any = None,
        *,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, bytes | None]]:
        """Return (row address, bytes) for each row, in the order asked; a round for each file.

        >>> rows = pa.table([pennon.blob_array([b"abc", None])], pa.schema([pennon.blob_field("b")]))
        >>> ds = pennon.write_dataset(rows, uri, data_storage_version="2.2")
        >>> ds.read_blobs("b", indices=[1, 0])
        [(1, None), (0, b'abc')]
        """
        found = self._find_blobs(blob_column, ids, addresses, indices)
        filled = [blob for blob in found.blobs if blob is not None]
        data = iter(read_ranges([(blob, 0, blob.size_bytes) for blob in filled]))
        pairs = zip(found.addresses, found.blobs, strict=True)
        return [
            (address, None if blob is None else next(data).to_pybytes()) for address, blob in pairs
        ]

    def read_blob_ranges(
        self,
        blob_column: str,
        requests: Sequence[tuple[int, int, int]],
        *,
        selector: str,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, int, bytes | None]]:
        """Return (number of the request, row address, bytes) for requests (row, offset, length).

        ``selector`` says what names a row: ``ids``, ``addresses`` or ``indices``.
        Raises ArgumentError for a range beyond its blob's end.

        >>> rows = pa.table([pennon.blob_array([b"abcdef"])], pa.schema([pennon.blob_field("b")]))
        >>> ds = pennon.write_dataset(rows, uri, data_storage_version="2.2")
        >>> ds.read_blob_ranges("b", [(0, 1, 2), (0, 4, 2)], selector="indices")
        [(0, 0, b'bc'), (1, 0, b'ef')]
        """
        if selector not in _FIND:
            message = f"selector must be one of {', '.join(map(repr, _FIND))}, got {selector!r}"
            raise ArgumentError(message)
        asked = list(requests)
        found = _FIND[selector](self._snapshot, blob_column, [row for row, _, _ in asked])
        wanted = []
        for blob, (_, offset, length) in zip(found.blobs, asked, strict=True):
            if blob is not None:
                check_range(blob.size_bytes, offset, length)
                wanted.append((blob, offset, length))
        data = iter(read_ranges(wanted))
        rows = zip(found.addresses, found.blobs, strict=True)
        return [
            (number, address, None if blob is None else next(data).to_pybytes())
            for number, (address, blob) in enumerate(rows)
        ]

    def _find_blobs(self, column: str, ids: Any, addresses: Any, indices: Any) -> BlobRows:
        given = {"ids": ids, "addresses": addresses, "indices": indices}
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1:
            message = "Exactly one of ids, indices, or addresses must be specified"
            raise ArgumentError(message)
        return _FIND[named[0]](self._snapshot, column, given[named[0]])
