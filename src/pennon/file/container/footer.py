"""The end of a data file: the footer, and the two tables that it points at.

::

    ... | column metadata | column table | buffer table | footer |

    footer, 40 bytes, little-endian
        u64  position of the first column's metadata
        u64  position of the column table     (position, size) of each column's metadata, u64 each
        u64  position of the buffer table     (position, size) of each global buffer, u64 each
        u32  number of global buffers
        u32  number of columns
        u16  major version
        u16  minor version
        "LANC"

Between any two parts there may be padding.  Global buffer 0 holds the schema and the row count.

Source: seed 001, "File Structure".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, overload

import numpy as np

from pennon.core.byte_ranges import ByteRange, Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError, UnsupportedError
from pennon.schema.version import READABLE, V0_1, V2_0, FileVersion

FOOTER_BYTES: Final = 40
MAGIC: Final = b"LANC"
MAX_ROWS: Final = 1 << 62
"""Far more than any file has; keeps row arithmetic within 64 bits."""

_LAYOUT: Final = struct.Struct("<QQQIIHH4s")
_VERSION: Final = struct.Struct("<HH4s")
_ENTRY: Final = struct.Struct("<QQ")
_ENTRY_BYTES: Final = _ENTRY.size
_LONG_TABLE: Final = 64 * _ENTRY_BYTES
_WRITTEN_NUMBERS: Final = {V2_0: (0, 3)}
"""What the footer of a 2.0 file says: oldest and newest readers know it (measured)."""


@dataclass(frozen=True, slots=True)
class Footer:
    """The checked content of the last 40 bytes: all parts lie in the file, in front of the footer."""

    version: FileVersion
    numbers: tuple[int, int]
    """Major and minor version as they stand in the file: 2.0 is (2, 0) or, early, (0, 3)."""
    column_metadata_position: int
    column_table: ByteRange
    buffer_table: ByteRange

    @property
    def num_columns(self) -> int:
        """Return the number of columns."""
        return self.column_table.size_bytes // _ENTRY_BYTES

    @property
    def num_global_buffers(self) -> int:
        """Return the number of global buffers."""
        return self.buffer_table.size_bytes // _ENTRY_BYTES


def parse_footer(tail: bytes, size_bytes: int) -> Footer:
    """Return the footer of a file of ``size_bytes``; ``tail`` are its last bytes, 40 if it has them.

    Raises FormatError if it is no Lance file, UnsupportedError for versions that are not read yet.
    """
    version, numbers = parse_version(tail)
    if version == V0_1:
        message = "a data file of version 0.1 has no columns and buffers of its own to show"
        raise UnsupportedError(message)
    if len(tail) < FOOTER_BYTES:
        message = f"a file of {size_bytes} bytes is too short for a Lance file of version {version}"
        raise FormatError(message)
    parts = _LAYOUT.unpack(tail[-FOOTER_BYTES:])
    metadata, column_table, buffer_table, buffers, columns = parts[:5]
    end = size_bytes - FOOTER_BYTES
    if metadata > column_table:
        message = f"column metadata at {metadata}, behind the column table at {column_table}"
        raise FormatError(message)
    return Footer(
        version,
        numbers,
        metadata,
        _table("column table", column_table, columns, end),
        _table("global buffer table", buffer_table, buffers, end),
    )


def parse_version(tail: bytes) -> tuple[FileVersion, tuple[int, int]]:
    """Return the version that the last bytes of a file tell, and the numbers as they stand there.

    Raises FormatError if it is no Lance file, UnsupportedError for versions that are not read.
    """
    if len(tail) < _VERSION.size:
        message = f"not a Lance file: it has {len(tail)} bytes"
        raise FormatError(message)
    return _parse_version(tail[-_VERSION.size :])


@lru_cache(maxsize=32)
def _parse_version(last: bytes) -> tuple[FileVersion, tuple[int, int]]:
    major, minor, magic = _VERSION.unpack(last)
    if magic != MAGIC:
        message = f"not a Lance file: it ends with {magic!r} instead of {MAGIC!r}"
        raise FormatError(message)
    version = FileVersion.from_numbers(major, minor)
    if version not in READABLE:
        oldest, newest = READABLE[0], READABLE[-1]
        message = (
            f"data file of version {version}; this release of Pennon reads versions {oldest} to"
            f" {newest} (write the table with data_storage_version={str(newest)!r})"
        )
        raise UnsupportedError(message)
    return version, (major, minor)


def _table(what: str, position: int, entries: int, end: int) -> ByteRange:
    if position + entries * _ENTRY_BYTES > end:
        message = f"{what} of {entries} entries at {position} leaves the file"
        raise FormatError(message)
    return ByteRange(position, entries * _ENTRY_BYTES)


class Extents(Sequence[ByteRange]):
    """The extents of a long table, each made of its numbers when it is looked at."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: Int64Array) -> None:
        """Take a row of position and size for each."""
        self._numbers = numbers

    def __len__(self) -> int:
        """Return the number of extents."""
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> ByteRange: ...
    @overload
    def __getitem__(self, index: slice) -> list[ByteRange]: ...
    def __getitem__(self, index: int | slice) -> ByteRange | list[ByteRange]:
        """Return one extent, or some."""
        if isinstance(index, slice):
            return [ByteRange(*both) for both in self._numbers[index].tolist()]
        return ByteRange(*self._numbers[index].tolist())


def parse_table(what: str, data: bytes, size_bytes: int) -> Sequence[ByteRange]:
    """Return the extents that a column table or buffer table lists, in a file of ``size_bytes``.

    Raises FormatError if one leaves the file.
    """
    if len(data) > _LONG_TABLE:
        numbers = np.frombuffer(data, "<u8").reshape(-1, 2)
        positions, most = numbers[:, 0], np.uint64(size_bytes)
        if (positions <= most).all() and (numbers[:, 1] <= most - positions).all():
            return Extents(numbers.view(np.int64))
    extents: list[ByteRange] = []
    for position, size in _ENTRY.iter_unpack(data):
        if position + size > size_bytes:
            message = (
                f"{what} {len(extents)} is said to be bytes {position}..{position + size} of a file"
                f" of {size_bytes}"
            )
            raise FormatError(message)
        extents.append(ByteRange(position, size))
    return tuple(extents)


def serialize_table(extents: Sequence[ByteRange]) -> bytes:
    """Return a table of (position, size), for columns or for global buffers."""
    return b"".join(_ENTRY.pack(extent.position, extent.size_bytes) for extent in extents)


def serialize_footer(
    first_column: int, column_table: ByteRange, buffer_table: ByteRange, version: FileVersion
) -> bytes:
    """Return the last 40 bytes of a file."""
    return _LAYOUT.pack(
        first_column,
        column_table.position,
        buffer_table.position,
        buffer_table.size_bytes // _ENTRY_BYTES,
        column_table.size_bytes // _ENTRY_BYTES,
        *_WRITTEN_NUMBERS.get(version, version.to_numbers()),
        MAGIC,
    )
