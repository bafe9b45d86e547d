"""Arrow extension types: a name and a parameter string beside a storage type.

In a Lance schema both live in the field's metadata, and the storage type is the logical type.
pyarrow shows the two strings of the types that it knows in Python only as an object, so they are
read through the Arrow C data interface, which carries them for every type:

    metadata = int32 count, then per pair: int32 length, key bytes, int32 length, value bytes
"""

from __future__ import annotations

import ctypes
import struct
from importlib import import_module
from typing import Any

import pyarrow as pa

from pennon.schema.types import BLOB_V2, EXTENSION_METADATA, EXTENSION_NAME

JSON_STORED = "lance.json"
"""The extension name under which a JSON column is stored; users see ``arrow.json``."""


class _ArrowSchema(ctypes.Structure):
    """The first members of ``struct ArrowSchema``, as far as the metadata."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)


def extension_metadata(t: pa.BaseExtensionType) -> dict[str, bytes]:
    """Return the two metadata entries that stand for an extension type in a schema."""
    if t.extension_name == "arrow.json":
        return {EXTENSION_NAME: JSON_STORED.encode(), EXTENSION_METADATA: b""}
    pairs = _exported_metadata(pa.field("", t))
    parameters = pairs.get(EXTENSION_METADATA.encode(), b"")
    return {EXTENSION_NAME: t.extension_name.encode(), EXTENSION_METADATA: parameters}


def _exported_metadata(field: pa.Field[Any]) -> dict[bytes, bytes]:
    """Return the metadata of a field as the C data interface exports it."""
    capsule = field.__arrow_c_schema__()
    exported = _ArrowSchema.from_address(_pointer_of(capsule, b"arrow_schema"))
    if not exported.metadata:
        return {}
    position = exported.metadata
    pairs = {}
    (count,) = struct.unpack("=i", ctypes.string_at(position, 4))
    position += 4
    for _ in range(count):
        key, position = _sized_string(position)
        pairs[key], position = _sized_string(position)
    return pairs


def _sized_string(position: int) -> tuple[bytes, int]:
    """Return the string at ``position`` behind its int32 length, and the position after it."""
    (length,) = struct.unpack("=i", ctypes.string_at(position, 4))
    return ctypes.string_at(position + 4, length), position + 4 + length


def restore_extension(field: pa.Field[Any]) -> pa.Field[Any]:
    """Return a field whose extension types are those that pyarrow has registered.

    The names are in the metadata of ``field`` and of the fields below it.  A type that nobody
    registered, or whose parameters its class does not take, stays storage plus metadata, so that
    nothing is lost when it is written again.
    """
    message = pa.schema([field]).serialize()
    if BLOB_V2 in message.to_pybytes():
        import_module("pennon.schema.blob_type")  # registers the type; most tables have no blobs
    try:
        # pyarrow's own way from metadata to types is behind its readers; the smallest is this one.
        return pa.ipc.read_schema(message).field(0)
    except Exception:  # noqa: BLE001 - a registered class is foreign code and raises what it likes
        return field
