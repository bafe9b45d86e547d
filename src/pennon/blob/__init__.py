"""Blobs as files, with the names of ``lance.blob``: bytes are read when they are asked for."""

from __future__ import annotations

from pennon.blob.file import (
    DEFAULT_BLOB_BUFFER_SIZE,
    BlobColumn,
    BlobFile,
    check_buffer_size,
    check_range,
)

__all__ = [
    "DEFAULT_BLOB_BUFFER_SIZE",
    "BlobColumn",
    "BlobFile",
    "check_buffer_size",
    "check_range",
]
