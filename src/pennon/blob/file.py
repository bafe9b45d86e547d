"""Blobs as files, with the names of ``lance.blob``: bytes are read when they are asked for."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import IO, Any, Final

import pyarrow as pa

from pennon.core.units import KIB
from pennon.errors import ArgumentError
from pennon.scan.run.blobs import BlobRange

DEFAULT_BLOB_BUFFER_SIZE: Final = 512 * KIB
"""So many bytes are read at once where a caller reads less, front to back."""


class BlobFile(io.BufferedIOBase):
    """A blob as a readable, seekable file; see `LanceDataset.take_blobs`.

    Opening reads nothing.  It pickles, as a file at its start.

    >>> rows = pa.table([pennon.blob_array([b"abcdef"])], pa.schema([pennon.blob_field("b")]))
    >>> ds = pennon.write_dataset(rows, uri, data_storage_version="2.2")
    >>> with ds.take_blobs("b", indices=[0])[0] as file:
    ...     file.seek(2), file.read(3), file.size()
    (2, b'cde', 6)
    """

    def __init__(self, inner: BlobRange, buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE) -> None:
        """Take what `pennon.scan.run.blobs` found; ``buffer_size`` 0 reads nothing ahead."""
        super().__init__()
        self.inner = inner
        self._buffer_size = check_buffer_size(buffer_size)
        self._position = 0
        self._ahead_from = 0
        self._ahead = pa.py_buffer(b"")

    def __reduce__(self) -> tuple[type[BlobFile], tuple[BlobRange, int]]:
        """Pickle where the bytes lie."""
        return BlobFile, (self.inner, self._buffer_size)

    def __repr__(self) -> str:
        """Return the size."""
        return f"<BlobFile size={self.size()}>"

    def size(self) -> int:
        """Return the number of bytes."""
        return self.inner.size_bytes

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte to be read."""
        self._check_open("tell")
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to another position, also beyond the end; return it."""
        self._check_open("seek")
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size()}
        if whence not in bases:
            message = f"Invalid whence: {whence}"
            raise ArgumentError(message)
        position = bases[whence] + offset
        if position < 0:
            message = f"negative seek value {position}"
            raise ArgumentError(message)
        self._position = position
        return position

    def read(self, size: int | None = -1) -> bytes:
        """Return the next ``size`` bytes, less at the end; None or less than 0: all that are left."""
        self._check_open("read")
        left = max(self.size() - self._position, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        data: bytes = self._take(wanted).to_pybytes()
        self._position += wanted
        return data

    def read1(self, size: int = -1) -> bytes:
        """Return the next ``size`` bytes, less at the end; 8 KiB where ``size`` is less than 0."""
        return self.read(io.DEFAULT_BUFFER_SIZE if size < 0 else size)

    def readall(self) -> bytes:
        """Return all bytes from here on."""
        return self.read()

    def readinto(self, b: Any) -> int:
        """Fill a buffer with the next bytes; return how many there were."""
        view = memoryview(b).cast("B")
        if view.readonly:
            kind = type(b).__name__
            message = f"readinto() argument must be read-write bytes-like object, not {kind}"
            raise TypeError(message)
        self._check_open("readinto")
        count = min(len(view), max(self.size() - self._position, 0))
        view[:count] = memoryview(self._take(count)).cast("B")
        self._position += count
        return count

    def readinto1(self, buffer: Any, /) -> int:
        """Fill a buffer with the next bytes; return how many there were."""
        return self.readinto(buffer)

    def read_range(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset`` on; the position stays."""
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return several (offset, length) ranges, read in one round; the position stays.

        Raises OverflowError for a number below 0, ArgumentError for a range beyond the end.
        """
        self._check_open("read_range")
        for offset, length in ranges:
            check_range(self.size(), offset, length)
        return [buffer.to_pybytes() for buffer in self.inner.read(ranges)]

    def _take(self, count: int) -> pa.Buffer:
        """Return bytes from the position on; reads ahead where few are asked for."""
        start = self._position - self._ahead_from
        if 0 <= start <= self._ahead.size - count:
            return self._ahead.slice(start, count)
        if not count:
            return pa.py_buffer(b"")
        length = min(max(count, self._buffer_size), self.size() - self._position)
        (buffer,) = self.inner.read([(self._position, length)])
        if length > count:
            self._ahead_from, self._ahead = self._position, buffer
        return buffer.slice(0, count)

    def _check_open(self, what: str) -> None:
        if self.closed:
            message = f"{what} of closed file"
            raise ArgumentError(message)


class BlobColumn:
    """A column of binaries as an iterable of in-memory files, None for NULL.

    >>> column = pennon.BlobColumn(pa.array([b"abc", None], pa.large_binary()))
    >>> [file and file.read() for file in column]
    [b'abc', None]
    """

    def __init__(self, blob_column: pa.Array[Any] | pa.ChunkedArray[Any]) -> None:
        """Take an array; raises ArgumentError unless it is one of binaries."""
        if not isinstance(blob_column, (pa.Array, pa.ChunkedArray)):
            message = f"Expected a pyarrow.Array or pyarrow.ChunkedArray, got {type(blob_column)}"
            raise ArgumentError(message)
        if not pa.types.is_binary(blob_column.type) and not pa.types.is_large_binary(
            blob_column.type
        ):
            message = f"Expected a binary array, got {blob_column.type}"
            raise ArgumentError(message)
        self.blob_column = blob_column

    def __iter__(self) -> Iterator[IO[bytes] | None]:
        """Yield a file for each value."""
        for value in self.blob_column:
            yield io.BytesIO(value.as_py()) if value.is_valid else None


def check_range(size_bytes: int, offset: int, length: int) -> None:
    """Raise OverflowError for a number below 0, ArgumentError for a range beyond the blob's end."""
    if offset < 0 or length < 0:
        message = f"a range of {length} bytes at {offset}"
        raise OverflowError(message)
    if offset + length > size_bytes:
        message = f"a range that ends at {offset + length} in a blob of {size_bytes} bytes"
        raise ArgumentError(message)


def check_buffer_size(buffer_size: object) -> int:
    """Return a number of bytes; raises TypeError, or ArgumentError if it is below 0."""
    if isinstance(buffer_size, bool) or not isinstance(buffer_size, int):
        message = f"buffer_size must be an int, got {type(buffer_size).__name__}"
        raise TypeError(message)
    if buffer_size < 0:
        message = "buffer_size must be non-negative"
        raise ArgumentError(message)
    return buffer_size
