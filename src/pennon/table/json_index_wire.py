"""The details of an index on what lies at a path of a JSON column: the path, and the index's own details."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from google.protobuf.any_pb2 import Any as AnyMessage

from pennon.errors import FormatError
from pennon.proto import index_pb2
from pennon.table.indices import Index
from pennon.table.message_wire import parse_message

JSON_DETAILS: Final = "JsonIndexDetails"


def json_target(index: Index) -> tuple[str | None, Index]:
    """Return the path, and the index as it were on a column of what lies there; any other index without a path.

    One whose details cannot be read has an empty path, and is of no other kind.  Source: reference index-scalar, 12.
    """
    if index.type_name != JSON_DETAILS or index.details is None:
        return None, index
    try:
        message = parse_message(index_pb2.JsonIndexDetails, index.details[1])
    except FormatError:
        return "", index
    if not message.path or not message.HasField("target"):
        return "", index
    return message.path, replace(index, details=(message.target.type_url, message.target.value))


def json_details(path: str, target: tuple[str, bytes]) -> tuple[str, bytes]:
    """Return the details of an index on what lies at a path, given those of an index of such values."""
    url, value = target
    message = index_pb2.JsonIndexDetails(path=path, target=AnyMessage(type_url=url, value=value))
    return f"/lance.index.pb.{JSON_DETAILS}", message.SerializeToString()
