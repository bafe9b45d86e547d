"""Fragments and their parts: protobuf messages of table.proto to values, and back.

What a message holds beyond the fields that Pennon knows is kept as bytes (`unknown_fields`), and
put back first when the message is made anew.
"""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from pennon.errors import ArgumentError, FormatError
from pennon.proto import table_pb2
from pennon.table.manifest import (
    BasePath,
    DataFileRef,
    DeletionFileRef,
    DeletionKind,
    ExternalFile,
    Fragment,
    Sequence,
)
from pennon.units import FieldId, FragmentId

M = TypeVar("M", bound=Message)

MAX_ROWS = 1 << 32
"""A fragment has no more rows than a row address can tell apart."""

MAX_FRAGMENT_ID = (1 << 32) - 1


def parse_message(kind: type[M], data: bytes) -> M:
    """Parse one message; raises FormatError."""
    try:
        return kind.FromString(data)
    except DecodeError as error:
        message = f"these {len(data)} bytes are no {kind.DESCRIPTOR.name} message"
        raise FormatError(message) from error


def serialize_message(message: Message) -> bytes:
    """Serialize a message; the same value gives the same bytes."""
    try:
        return message.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        text = f"a {message.DESCRIPTOR.name} message cannot be written: {error}"
        raise ArgumentError(text) from error


def unknown_fields(message: Message) -> bytes:
    """Return, serialized, the fields of a message that Pennon does not know."""
    if not len(UnknownFieldSet(message)):
        return b""
    rest = type(message)()
    rest.CopyFrom(message)
    for known in message.DESCRIPTOR.fields:
        rest.ClearField(known.name)
    return rest.SerializeToString()


def parse_fragment(message: table_pb2.DataFragment) -> Fragment:
    """Return the fragment that a message stands for; raises FormatError."""
    if message.id > MAX_FRAGMENT_ID or message.physical_rows > MAX_ROWS:
        text = f"fragment {message.id} of {message.physical_rows} rows does not fit a row address"
        raise FormatError(text)
    deletion = message.deletion_file if message.HasField("deletion_file") else None
    return Fragment(
        id=FragmentId(message.id),
        files=tuple(_parse_file(file) for file in message.files),
        physical_rows=message.physical_rows or None,
        deletion_file=None if deletion is None else _parse_deletion(deletion),
        row_ids=_parse_sequence(message, "row_ids"),
        last_updated_at_versions=_parse_sequence(message, "last_updated_at_versions"),
        created_at_versions=_parse_sequence(message, "created_at_versions"),
        unknown=unknown_fields(message),
    )


def serialize_fragment(fragment: Fragment) -> table_pb2.DataFragment:
    """Return the message of a fragment."""
    message = parse_message(table_pb2.DataFragment, fragment.unknown)
    message.id = fragment.id
    message.files.extend(_serialize_file(file) for file in fragment.files)
    message.physical_rows = fragment.physical_rows or 0
    if fragment.deletion_file is not None:
        message.deletion_file.CopyFrom(_serialize_deletion(fragment.deletion_file))
    _put_sequence(message, "row_ids", fragment.row_ids)
    _put_sequence(message, "last_updated_at_versions", fragment.last_updated_at_versions)
    _put_sequence(message, "created_at_versions", fragment.created_at_versions)
    return message


def parse_base_path(message: table_pb2.BasePath) -> BasePath:
    """Return the base path that a message stands for."""
    name = message.name if message.HasField("name") else None
    return BasePath(message.id, message.path, name, message.is_dataset_root)


def serialize_base_path(base: BasePath) -> table_pb2.BasePath:
    """Return the message of a base path."""
    return table_pb2.BasePath(
        id=base.id, path=base.path, name=base.name, is_dataset_root=base.is_dataset_root
    )


def _parse_file(message: table_pb2.DataFile) -> DataFileRef:
    columns = tuple(message.column_indices)
    if columns and len(columns) != len(message.fields):
        text = f"data file {message.path!r}: {len(message.fields)} fields, {len(columns)} columns"
        raise FormatError(text)
    return DataFileRef(
        path=message.path,
        field_ids=tuple(FieldId(number) for number in message.fields),
        column_indices=columns,
        major=message.file_major_version,
        minor=message.file_minor_version,
        size_bytes=message.file_size_bytes or None,
        base_id=message.base_id if message.HasField("base_id") else None,
        unknown=unknown_fields(message),
    )


def _serialize_file(file: DataFileRef) -> table_pb2.DataFile:
    message = parse_message(table_pb2.DataFile, file.unknown)
    message.path = file.path
    message.fields.extend(file.field_ids)
    message.column_indices.extend(file.column_indices)
    message.file_major_version = file.major
    message.file_minor_version = file.minor
    message.file_size_bytes = file.size_bytes or 0
    if file.base_id is not None:
        message.base_id = file.base_id
    return message


def _parse_deletion(message: table_pb2.DeletionFile) -> DeletionFileRef:
    if message.file_type not in (0, 1):
        text = f"deletion files of type {message.file_type} are not known"
        raise FormatError(text)
    return DeletionFileRef(
        kind=DeletionKind(message.file_type),
        read_version=message.read_version,
        id=message.id,
        num_deleted_rows=message.num_deleted_rows or None,
        base_id=message.base_id if message.HasField("base_id") else None,
        unknown=unknown_fields(message),
    )


def _serialize_deletion(deletion: DeletionFileRef) -> table_pb2.DeletionFile:
    message = parse_message(table_pb2.DeletionFile, deletion.unknown)
    message.file_type = (
        table_pb2.DeletionFile.ARROW_ARRAY
        if deletion.kind is DeletionKind.ARROW
        else table_pb2.DeletionFile.BITMAP
    )
    message.read_version = deletion.read_version
    message.id = deletion.id
    message.num_deleted_rows = deletion.num_deleted_rows or 0
    if deletion.base_id is not None:
        message.base_id = deletion.base_id
    return message


def _parse_sequence(message: table_pb2.DataFragment, name: str) -> Sequence | None:
    """Read one of the fragment's sequences, which lie inline or in a file."""
    if message.HasField(f"inline_{name}"):  # type: ignore[arg-type]
        inline: bytes = getattr(message, f"inline_{name}")
        return inline
    if message.HasField(f"external_{name}"):  # type: ignore[arg-type]
        external: table_pb2.ExternalFile = getattr(message, f"external_{name}")
        return ExternalFile(external.path, external.offset, external.size)
    return None


def _put_sequence(message: table_pb2.DataFragment, name: str, value: Sequence | None) -> None:
    if isinstance(value, ExternalFile):
        external = table_pb2.ExternalFile(
            path=value.path, offset=value.offset, size=value.size_bytes
        )
        getattr(message, f"external_{name}").CopyFrom(external)
    elif value is not None:
        setattr(message, f"inline_{name}", value)
