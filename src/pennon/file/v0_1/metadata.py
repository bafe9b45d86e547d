"""The end of a data file of version 0.1.

::

    pages | page table | statistics | dictionaries | manifest | metadata | footer

    footer, 16 bytes, little-endian
        u64  position of the metadata
        u16  major version, u16  minor version         (0, 0), (0, 1) or (0, 2)
        "LANC"

    metadata          u32 length | Metadata      row groups, and where the other parts lie
    manifest          u32 length | Manifest      of which only the schema counts
    page table        (position, length), i64 each, for each field and row group:
                      all groups of the first field, then all of the next

The table has an entry for every field id from the smallest to the greatest of the file, also for ids
in between that the file does not have, and for structs, whose entries are zeros.

Source: seeds 000 and 002; measured (Lance 0.7.5 to 14.0.2).
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from pennon.core.byte_ranges import ByteRange
from pennon.encoding.read_protocol import Steps
from pennon.encoding.v0_1.pages import Pages
from pennon.errors import FormatError
from pennon.file.container.tail import Tail
from pennon.file.v0_1.wire import Metadata, parse_file_metadata

FOOTER_BYTES: Final = 16
ENTRY_BYTES: Final = 16

_FOOTER: Final = struct.Struct("<QHH4s")
_LENGTH: Final = struct.Struct("<I")


def read_metadata(tail: Tail) -> Steps[Metadata]:
    """Return the steps that read the metadata; none if it is in the tail.

    Raises FormatError if it is damaged.
    """
    footer = tail.last(FOOTER_BYTES)
    if len(footer) < FOOTER_BYTES:
        message = f"a file of {tail.file_bytes} bytes is too short for a Lance file"
        raise FormatError(message)
    position = _FOOTER.unpack(footer)[0]
    metadata = parse_file_metadata((yield from read_message(tail, position, "metadata")))
    if metadata.num_groups * ENTRY_BYTES > tail.file_bytes:
        message = f"the page table of {metadata.num_groups} row groups does not fit in the file"
        raise FormatError(message)
    return metadata


def read_message(tail: Tail, position: int, what: str) -> Steps[bytes]:
    """Return the steps that read a message that stands behind its length.

    Raises FormatError if it leaves the file.
    """
    room = tail.file_bytes - FOOTER_BYTES - position
    if room < _LENGTH.size:
        message = f"the {what} at {position} of a file of {tail.file_bytes} bytes"
        raise FormatError(message)
    (data,) = yield from tail.read_extents([ByteRange(position, _LENGTH.size)])
    (size_bytes,) = _LENGTH.unpack(data.to_pybytes())
    if size_bytes > room - _LENGTH.size:
        message = f"the {what} at {position} has {size_bytes} bytes, and leaves the file"
        raise FormatError(message)
    (data,) = yield from tail.read_extents([ByteRange(position + _LENGTH.size, size_bytes)])
    found: bytes = data.to_pybytes()
    return found


def plan_pages(metadata: Metadata, position: int, row: int, file_bytes: int) -> ByteRange:
    """Return where the entries of a row of the page table at ``position`` lie.

    Raises FormatError if they leave the file.
    """
    size_bytes = metadata.num_groups * ENTRY_BYTES
    extent = ByteRange(position + row * size_bytes, size_bytes)
    if row < 0 or extent.end > file_bytes:
        message = f"row {row} of the page table at {position} leaves the file of {file_bytes} bytes"
        raise FormatError(message)
    return extent


def parse_pages(data: bytes, file_bytes: int) -> Pages:
    """Return the pages that entries of the page table list.

    Raises FormatError for a page outside the file, or of a negative length.
    """
    entries = np.frombuffer(data, "<i8").reshape(-1, 2).astype(np.int64)
    positions, lengths = entries[:, 0].copy(), entries[:, 1].copy()
    if ((positions < 0) | (positions > file_bytes) | (lengths < 0)).any():
        message = f"the page table names a page outside the file of {file_bytes} bytes"
        raise FormatError(message)
    return Pages(positions, lengths, file_bytes)
