"""Zone-indexed columns: plain columns with a zone map beside them.

The map only helps to skip pages, so a reader may unwrap the column and read it as it is.

Source: protos/pennon/proto/encodings_v2_0.proto (message ZoneIndex).
"""

from __future__ import annotations

from pennon.encoding.v2_0.encodings import Blob, ColumnEncoding, Values, ZoneIndex


def without_zones(encoding: ColumnEncoding) -> Values | Blob:
    """Return the encoding below any zone indices."""
    while isinstance(encoding, ZoneIndex):
        encoding = encoding.inner
    return encoding
