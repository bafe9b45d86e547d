"""Fragments and their parts: protobuf messages of table.proto to values, and back.

What a message holds beyond the fields that Pennon knows is kept as bytes, and put back first when the
message is made anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, cast

from pennon.core.units import FieldId, FragmentId
from pennon.errors import FormatError
from pennon.proto import table_pb2
from pennon.table.fragment import (
    MAX_FRAGMENT_ID,
    MAX_ROWS,
    BasePath,
    DataFileRef,
    DeletionFileRef,
    DeletionKind,
    ExternalFile,
    Fragment,
    Sequence,
)
from pennon.table.message_wire import parse_message, serialize_message, unknown_fields

Tuples: TypeAlias = dict[tuple[int, ...], tuple[int, ...]]
"""What the files of many fragments have in common: one object for each."""


def parse_fragment(message: table_pb2.DataFragment) -> Fragment:
    """Return the fragment that a message stands for; raises FormatError."""
    return _parse_fragment(message, {}, may_hold_unknown=True)


def parse_fragment_bytes(data: bytes) -> Fragment:
    """Return the fragment in a serialized message; raises FormatError."""
    return parse_fragment(parse_message(table_pb2.DataFragment, data))


def parse_one_of_many(data: bytes, known: Tuples, *, may_hold_unknown: bool) -> Fragment:
    """Parse one fragment of many: messages in which nothing is unknown are not asked for it."""
    message = parse_message(table_pb2.DataFragment, data)
    return _parse_fragment(message, known, may_hold_unknown)


def _parse_fragment(
    message: table_pb2.DataFragment, known: Tuples, may_hold_unknown: bool
) -> Fragment:
    number, rows, which = message.id, message.physical_rows, message.WhichOneof
    if number > MAX_FRAGMENT_ID or rows > MAX_ROWS:
        raise out_of_bounds(number, rows)
    return Fragment(  # by position: there may be very many
        FragmentId(number),
        tuple([_parse_file(file, known, may_hold_unknown) for file in message.files]),
        rows or None,
        _parse_deletion(message.deletion_file) if message.HasField("deletion_file") else None,
        _parse_sequence(message, which("row_id_sequence")),
        _parse_sequence(message, which("last_updated_at_version_sequence")),
        _parse_sequence(message, which("created_at_version_sequence")),
        unknown_fields(message) if may_hold_unknown else b"",
    )


def out_of_bounds(number: int, rows: int) -> FormatError:
    """Return the error for a fragment whose id or number of rows no writer gave it."""
    return FormatError(f"fragment {number} of {rows} rows does not fit a row address")


def serialize_fragment(fragment: Fragment) -> table_pb2.DataFragment:
    """Return the message of a fragment."""
    message = parse_message(table_pb2.DataFragment, fragment.unknown)
    message.id = fragment.id
    message.files.extend(serialize_file(file) for file in fragment.files)
    message.physical_rows = fragment.physical_rows or 0
    if fragment.deletion_file is not None:
        message.deletion_file.CopyFrom(_serialize_deletion(fragment.deletion_file))
    _put_sequence(message, "row_ids", fragment.row_ids)
    _put_sequence(message, "last_updated_at_versions", fragment.last_updated_at_versions)
    _put_sequence(message, "created_at_versions", fragment.created_at_versions)
    return message


def serialize_fragment_bytes(fragment: Fragment) -> bytes:
    """Return the serialized message of a fragment."""
    return serialize_message(serialize_fragment(fragment))


def serialize_fragments(fragments: Iterable[Fragment]) -> bytes:
    """Return fragments as they stand in a manifest message."""
    return serialize_message(table_pb2.Manifest(fragments=map(serialize_fragment, fragments)))


def parse_fragments(data: bytes) -> list[Fragment]:
    """Return the fragments of `serialize_fragments`; raises FormatError."""
    return list(map(parse_fragment, parse_message(table_pb2.Manifest, data).fragments))


def parse_base_path(message: table_pb2.BasePath) -> BasePath:
    """Return the base path that a message stands for."""
    name = message.name if message.HasField("name") else None
    return BasePath(message.id, message.path, name, message.is_dataset_root)


def serialize_base_path(base: BasePath) -> table_pb2.BasePath:
    """Return the message of a base path."""
    return table_pb2.BasePath(
        id=base.id, path=base.path, name=base.name, is_dataset_root=base.is_dataset_root
    )


def parse_file(message: table_pb2.DataFile) -> DataFileRef:
    """Return the data file that a message stands for; raises FormatError."""
    return _parse_file(message, {}, may_hold_unknown=True)


def _parse_file(message: table_pb2.DataFile, known: Tuples, may_hold_unknown: bool) -> DataFileRef:
    columns, fields = tuple(message.column_indices), tuple(message.fields)
    if columns and len(columns) != len(fields):
        text = f"data file {message.path!r}: {len(fields)} fields, {len(columns)} columns"
        raise FormatError(text)
    return DataFileRef(
        message.path,
        cast("tuple[FieldId, ...]", known.setdefault(fields, fields)),
        known.setdefault(columns, columns),
        message.file_major_version,
        message.file_minor_version,
        message.file_size_bytes or None,
        message.base_id if message.HasField("base_id") else None,
        unknown_fields(message) if may_hold_unknown else b"",
    )


def serialize_file(file: DataFileRef) -> table_pb2.DataFile:
    """Return the message of a data file."""
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


def _parse_sequence(message: table_pb2.DataFragment, name: str | None) -> Sequence | None:
    """Read one of the fragment's sequences, which lie inline or in a file, or nowhere."""
    if name is None:
        return None
    if name.startswith("inline"):
        inline: bytes = getattr(message, name)
        return inline
    external: table_pb2.ExternalFile = getattr(message, name)
    return ExternalFile(external.path, external.offset, external.size)


def _put_sequence(message: table_pb2.DataFragment, name: str, value: Sequence | None) -> None:
    if isinstance(value, ExternalFile):
        external = table_pb2.ExternalFile(
            path=value.path, offset=value.offset, size=value.size_bytes
        )
        getattr(message, f"external_{name}").CopyFrom(external)
    elif value is not None:
        setattr(message, f"inline_{name}", value)
