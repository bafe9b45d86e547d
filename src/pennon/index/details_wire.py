"""The messages of index details, for kinds whose details hold more than the kind's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pennon.proto import index_pb2


def zone_map_details(parameters: Mapping[str, Any]) -> bytes:
    """Return the details of a ZONEMAP that knows which rows are NULL."""
    rows = parameters.get("rows_per_zone") or 8192
    message = index_pb2.ZoneMapIndexDetails(rows_per_zone=rows, has_null_rows=True)
    return message.SerializeToString()
