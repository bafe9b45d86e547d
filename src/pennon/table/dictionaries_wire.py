"""The values of dictionaries in a manifest file of a table of version 0.1.

They stand in front of everything else in the file, and each field says where its own are.

Source: rust/lance-table/src/io/manifest.rs; measured (pylance 0.19.2 and 14.0.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest
from pennon.core.units import FieldId
from pennon.encoding.read_protocol import run
from pennon.encoding.v0_1.values import DictionaryPlace, encode_values, read_values
from pennon.errors import FormatError
from pennon.proto import table_pb2
from pennon.schema.types import arrow_type


def parse_dictionaries(
    proto: table_pb2.Manifest, whole: pa.Buffer | bytes
) -> dict[FieldId, pa.Array[Any]]:
    """Return the values of each dictionary that a manifest file holds.  Raises FormatError."""
    found = {}
    for field in proto.fields:
        if field.HasField("dictionary") and field.dictionary.length:
            data_type = arrow_type(field.logical_type)
            if not isinstance(data_type, pa.DictionaryType):
                message = f"field {field.id} of type {field.logical_type!r} has a dictionary"
                raise FormatError(message)
            place = field.dictionary.offset, field.dictionary.length
            found[FieldId(field.id)] = _read(whole, *place, data_type.value_type)
    return found


def _read(
    whole: pa.Buffer | bytes, position: int, length: int, value_type: pa.DataType
) -> pa.Array[Any]:
    data = whole if isinstance(whole, pa.Buffer) else pa.py_buffer(whole)

    def read(requests: list[ByteRequest]) -> list[pa.Buffer]:
        parts = []
        for request in requests:
            if not isinstance(request, ByteRange) or request.end > data.size:
                message = "a dictionary leaves the manifest file"
                raise FormatError(message)
            parts.append(data.slice(request.position, request.size_bytes))
        return parts

    values: pa.Array[Any] = run(
        read_values(DictionaryPlace(position, length), value_type, data.size), read
    )
    return values


def serialize_dictionaries(
    proto: table_pb2.Manifest, dictionaries: Mapping[FieldId, pa.Array[Any]]
) -> bytes:
    """Return the bytes of all dictionaries, for the begin of a file, and tell the fields so."""
    parts = b""
    for field in proto.fields:
        values = dictionaries.get(FieldId(field.id))
        if values is not None:
            data, field.dictionary.offset = encode_values(values, len(parts))
            field.dictionary.length = len(values)
            parts += data.to_pybytes()
    return parts
