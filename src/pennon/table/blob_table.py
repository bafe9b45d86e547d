"""The nested table of blobs that releases of pylance from 0.19 to about 0.29 wrote.

Columns with the metadata ``lance-schema:storage-class`` = ``blob`` lie in a table of their own, in the
folder ``_blobs/``.  Its rows have the stable row ids of the table's rows.  Field 17 of the manifest,
``blob_dataset_version``, says which version of it belongs to a version of the table; later releases know
neither.  The number may be that of a detached version.

Source: ledger F-795.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pennon.errors import FormatError, UnsupportedError
from pennon.schema.field import Field
from pennon.table.manifest import Manifest

FOLDER: Final = "_blobs"
_NUMBER: Final = 17
_STORAGE_CLASS: Final = "lance-schema:storage-class"
_FIXED_BYTES: Final = {1: 8, 5: 4}


def blob_version(manifest: Manifest) -> int:
    """Return the version of the nested table of blobs, 0 if there is none."""
    found = 0
    for number, data in _fields(manifest.unknown):
        if number == _NUMBER:
            found, _ = _varint(data, _varint(data, 0)[1])
    return found


def without_blob_version(unknown: bytes) -> bytes:
    """Return the unknown fields of a manifest without the version of the nested table."""
    return b"".join(data for number, data in _fields(unknown) if number != _NUMBER)


def is_stored_apart(field: Field) -> bool:
    """Return whether a field is one of those that a nested table holds, where there is one."""
    return field.metadata.get(_STORAGE_CLASS) == b"blob"


def stored_here(field: Field) -> Field:
    """Return a field as one whose values lie in the table's own data files."""
    kept = {key: value for key, value in field.metadata.items() if key != _STORAGE_CLASS}
    if len(kept) == len(field.metadata):
        return field.with_children(stored_here)
    return replace(field, metadata=kept).with_children(stored_here)


def check_no_blob_table(manifest: Manifest) -> None:
    """Raise UnsupportedError if a version has columns in a nested table, which Pennon does not write."""
    if manifest.unknown and blob_version(manifest):
        message = (
            f"version {manifest.version} of this table has columns of storage class blob, whose values lie in a "
            f"nested table ({FOLDER}/) that Pennon reads and does not write; `pennon convert` writes the table "
            "anew with the values in its own data files"
        )
        raise UnsupportedError(message)


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and all bytes of each field of a message.  Raises FormatError if it is cut off."""
    start = 0
    while start < len(data):
        tag, at = _varint(data, start)
        kind = tag & 7
        if kind == 0:
            _, end = _varint(data, at)
        elif kind == 2:
            size, at = _varint(data, at)
            end = at + size
        elif kind in _FIXED_BYTES:
            end = at + _FIXED_BYTES[kind]
        else:
            end = len(data) + 1
        if end > len(data):
            message = "the unknown fields of a manifest are cut off"
            raise FormatError(message)
        yield tag >> 3, data[start:end]
        start = end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of up to 64 bits, and where it ends."""
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at + place + 1
    message = "the unknown fields of a manifest are cut off"
    raise FormatError(message)
