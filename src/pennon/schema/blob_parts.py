"""The parts of a blob of version 2 during a write, and the metadata that decides its place."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from pennon.schema.types import arrow_type

BLOB_PARTS: Final = (
    ("data", "large_binary"),
    ("uri", "string"),
    ("position", "uint64"),
    ("size", "uint64"),
)
"""What a writer says of a blob: bytes, or where they lie, and maybe which range there.

The first two may be all.
"""
STORAGE: Final = pa.struct([pa.field(name, arrow_type(kind)) for name, kind in BLOB_PARTS])
"""The same as an Arrow type."""

INLINE_THRESHOLD: Final = "lance-encoding:blob-inline-size-threshold"
DEDICATED_THRESHOLD: Final = "lance-encoding:blob-dedicated-size-threshold"
PACK_THRESHOLD: Final = "lance-encoding:blob-pack-file-size-threshold"
