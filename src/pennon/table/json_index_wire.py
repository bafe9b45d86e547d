"""The details of an index on what lies at a path of a JSON column: the path, and the index's own details."""

from __future__ import annotations

from dataclasses import replace

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet

from pennon.errors import FormatError
from pennon.table.indices import Index
from pennon.table.message_wire import parse_message

_TYPE = "JsonIndexDetails"
_PATH, _TARGET = 1, 2


def json_target(index: Index) -> tuple[str, Index] | None:
    """Return the path, and the index as it were on a column of what lies there; None for any other index.

    One whose details cannot be read has no path, and is of no other kind.  Source: reference index-scalar, 12.
    """
    if index.type_name != _TYPE or index.details is None:
        return None
    try:
        found = UnknownFieldSet(parse_message(Empty, index.details[1]))
        parts = {found[at].field_number: found[at].data for at in range(len(found))}
        path, target = parts.get(_PATH), parts.get(_TARGET)
        if not (isinstance(path, bytes) and isinstance(target, bytes)):
            return "", index
        message = parse_message(AnyMessage, target)
        return path.decode(), replace(index, details=(message.type_url, message.value))
    except (FormatError, UnicodeDecodeError):
        return "", index
