"""Blobs to be written, and blobs as files, read when they are asked: the names of ``lance.blob``."""

from __future__ import annotations

from pennon.blob.file import (
    DEFAULT_BLOB_BUFFER_SIZE,
    BlobColumn,
    BlobFile,
    check_buffer_size,
    check_range,
)
from pennon.schema.blob_type import Blob, BlobArray, BlobType, blob_array, blob_field

__all__ = [
    "DEFAULT_BLOB_BUFFER_SIZE",
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobFile",
    "BlobType",
    "blob_array",
    "blob_field",
    "check_buffer_size",
    "check_range",
]
