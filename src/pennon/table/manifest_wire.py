"""The bytes of a manifest file.

::

    dictionaries                    in tables of version 0.1 only (`pennon.table.dictionaries_wire`)
    [u32 length | IndexSection]?    the table's indices
    [u32 length | Transaction]?     what made this version (writers since late 2025)
    [u32 length | Manifest]         at ``position``
    [u64 position][u16 major][u16 minor]["LANC"]

All numbers are little endian.  The manifest ends where the footer of 16 bytes starts; it names the
two sections before it by their absolute positions (fields ``index_section``, and
``inline_transaction`` or, for a short time in 2025, ``transaction_section``).  There is no
checksum, so a torn file is known by its magic and its lengths only.

Source: ledger, "Manifest file"; measured on files of Lance 0.5.9 to pylance 14.0.2.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pennon.core.units import DatasetVersion, FieldId
from pennon.errors import FormatError
from pennon.proto import table_pb2
from pennon.schema.version import check_not_newer
from pennon.schema.wire import parse_fields, serialize_fields
from pennon.table.flags import check_readable
from pennon.table.fragment import Fragment
from pennon.table.fragment_wire import parse_base_path, serialize_base_path
from pennon.table.fragments import Fragments
from pennon.table.manifest import DataFormat, Manifest, Summary, WriterVersion
from pennon.table.message_wire import parse_message, serialize_message, unknown_fields

_FOOTER = struct.Struct("<QHH4s")
_LENGTH = struct.Struct("<I")
_MAGIC = b"LANC"
_FILE_VERSION = (0, 2)
_NANOSECONDS = 1_000_000_000
_LAST_SECOND = 253_402_300_799  # 9999-12-31T23:59:59Z
_SMALL, _MOST_BESIDE = 1 << 16, 0.25
"""A manifest keeps the bytes of its file if they are so few, or if what lies beside its message is at most that part of the
message; else it keeps the message alone.
"""


def parse_manifest_file(data: pa.Buffer | bytes) -> Manifest:
    """Return the manifest in a manifest file.

    Raises FormatError if the bytes are damaged, UnsupportedError if the table needs a feature that
    Pennon cannot read.
    """
    view = memoryview(data).cast("B")
    fragments, proto, position = _parse_message(view)
    return Manifest(
        schema=parse_fields(proto.fields, proto.schema_metadata),
        fields_wire=tuple([f.SerializeToString(deterministic=True) for f in proto.fields]),
        version=DatasetVersion(proto.version),
        fragments=_checked(fragments, proto),
        timestamp_ns=_parse_timestamp(proto),
        writer=_parse_writer(proto),
        reader_flags=proto.reader_feature_flags,
        writer_flags=proto.writer_feature_flags,
        max_fragment_id=proto.max_fragment_id if proto.HasField("max_fragment_id") else None,
        transaction_file=proto.transaction_file or None,
        next_row_id=proto.next_row_id,
        data_format=_parse_format(proto),
        config=dict(proto.config) if proto.config else {},
        table_metadata=dict(proto.table_metadata) if proto.table_metadata else {},
        base_paths=tuple([parse_base_path(base) for base in proto.base_paths]),
        branch=proto.branch if proto.HasField("branch") else None,
        tag=proto.tag,
        indices=_indices(proto, view, position),
        transaction=_transaction(proto, view, position),
        dictionaries=_dictionaries(proto, data),
        unknown=unknown_fields(proto),
    )


def summarize_manifest_file(data: pa.Buffer | bytes) -> Summary:
    """Return the little that a list of versions shows of a manifest; raises the same.

    A table of thousands of versions and fragments has millions of entries in all its manifests, so
    no object is made for any of them.
    """
    fragments, proto, _ = _parse_message(memoryview(data).cast("B"))
    counts_are_known = proto.HasField("writer_version")
    files, size_bytes = fragments.total_files()
    rows, deleted = fragments.total_rows()
    return Summary(
        version=DatasetVersion(proto.version),
        timestamp_ns=_parse_timestamp(proto),
        fragments=len(fragments),
        files=files,
        size_bytes=size_bytes,
        deletion_files=fragments.deletion_files(),
        physical_rows=rows if counts_are_known else 0,
        deleted_rows=deleted if counts_are_known else 0,
    )


def _parse_message(view: memoryview) -> tuple[Fragments, table_pb2.Manifest, int]:
    """Return the fragments, the message of all else, checked for features, and its position."""
    if len(view) < _FOOTER.size + _LENGTH.size:
        message = f"a manifest file of {len(view)} bytes is cut off"
        raise FormatError(message)
    position, _, _, magic = _FOOTER.unpack_from(view, len(view) - _FOOTER.size)
    if magic != _MAGIC:
        message = "the manifest file does not end in LANC"
        raise FormatError(message)
    body = _section(view, position, len(view) - _FOOTER.size)
    if position + _LENGTH.size + len(body) + _FOOTER.size != len(view):
        message = f"{len(body)} bytes of manifest do not end at the footer"
        raise FormatError(message)
    beside = len(view) - len(body)
    keeps_file = len(view) <= _SMALL or beside <= _MOST_BESIDE * len(body)
    fragments = Fragments(body if keeps_file else bytes(body))
    proto = parse_message(table_pb2.Manifest, fragments.rest())
    check_readable(proto.reader_feature_flags)
    return fragments, proto, position


def parse_messages(data: pa.Buffer | bytes) -> tuple[table_pb2.Manifest, table_pb2.IndexSection]:
    """Return the messages of a manifest file whole.

    Raises FormatError, and UnsupportedError for a table with features that Pennon does not know.
    """
    view = memoryview(data).cast("B")
    _, rest, position = _parse_message(view)
    body = _section(view, position, len(view) - _FOOTER.size)
    section = parse_message(table_pb2.IndexSection, _indices(rest, view, position))
    return parse_message(table_pb2.Manifest, bytes(body)), section


def serialize_manifest_file(manifest: Manifest) -> bytes:
    """Return the manifest file of a manifest, its indices and its transaction."""
    proto, fields = _serialize_rest(manifest), _serialize_fields(manifest)
    parts = [_serialize_dictionaries(fields, manifest.dictionaries)]
    if manifest.indices:
        proto.index_section = len(parts[0])
        parts += [_LENGTH.pack(len(manifest.indices)), manifest.indices]
    if manifest.transaction is not None:
        proto.inline_transaction = sum(map(len, parts))
        parts += [_LENGTH.pack(len(manifest.transaction)), manifest.transaction]
    position = sum(map(len, parts))
    fragments = Fragments.of(manifest.fragments).wire_parts()
    body: list[bytes | memoryview] = [serialize_message(fields), *fragments]
    body.append(serialize_message(proto))
    footer = _FOOTER.pack(position, *_FILE_VERSION, _MAGIC)
    return b"".join([*parts, _LENGTH.pack(sum(map(len, body))), *body, footer])


def _checked(fragments: Fragments, proto: table_pb2.Manifest) -> Sequence[Fragment]:
    """Return the fragments of a manifest, without what its writer is known to say wrong."""
    fragments.check_bounds()
    if proto.reader_feature_flags & 2 and fragments.with_row_ids() < len(fragments):
        message = "the table has stable row ids, but not all its fragments have them"
        raise FormatError(message)
    if proto.HasField("writer_version"):
        return fragments
    return tuple(map(_without_counts, fragments))


def _serialize_fields(manifest: Manifest) -> table_pb2.Manifest:
    """Return the message with nothing but the fields, which come first; then the fragments do."""
    if manifest.fields_wire is None:
        return table_pb2.Manifest(fields=serialize_fields(manifest.schema))
    proto = table_pb2.Manifest()
    for field in manifest.fields_wire:
        proto.fields.add().MergeFromString(field)
    return proto


def _serialize_rest(manifest: Manifest) -> table_pb2.Manifest:
    """Return the message without fields and fragments, and without the positions of sections."""
    proto = parse_message(table_pb2.Manifest, manifest.unknown)
    for key, value in manifest.schema.metadata.items():
        proto.schema_metadata[key] = value
    proto.version = manifest.version
    proto.timestamp.seconds, proto.timestamp.nanos = divmod(manifest.timestamp_ns, _NANOSECONDS)
    proto.reader_feature_flags = manifest.reader_flags
    proto.writer_feature_flags = manifest.writer_flags
    proto.next_row_id = manifest.next_row_id
    proto.config.update(manifest.config)
    proto.table_metadata.update(manifest.table_metadata)
    proto.base_paths.extend(serialize_base_path(base) for base in manifest.base_paths)
    _serialize_optional(manifest, proto)
    return proto


def _serialize_optional(manifest: Manifest, proto: table_pb2.Manifest) -> None:
    if manifest.max_fragment_id is not None:
        proto.max_fragment_id = manifest.max_fragment_id
    proto.transaction_file = manifest.transaction_file or ""
    proto.tag = manifest.tag
    if manifest.branch is not None:
        proto.branch = manifest.branch
    if manifest.data_format is not None:
        proto.data_format.file_format = manifest.data_format.file_format
        proto.data_format.version = manifest.data_format.version
    writer = manifest.writer
    if writer is not None:
        proto.writer_version.CopyFrom(
            table_pb2.Manifest.WriterVersion(
                library=writer.library,
                version=writer.version,
                prerelease=writer.prerelease,
                build_metadata=writer.build_metadata,
            )
        )


def _section(view: memoryview, position: int, end: int) -> memoryview:
    """Return the length-prefixed bytes at ``position``, which must end at or before ``end``."""
    if position + _LENGTH.size > end:
        message = f"a section at {position} starts after its end, {end}"
        raise FormatError(message)
    (size_bytes,) = _LENGTH.unpack_from(view, position)
    start = position + _LENGTH.size
    if start + size_bytes > end:
        message = f"a section of {size_bytes} bytes at {position} ends after {end}"
        raise FormatError(message)
    return view[start : start + size_bytes]


def _indices(proto: table_pb2.Manifest, view: memoryview, end: int) -> bytes:
    if not proto.HasField("index_section"):
        return b""
    section = bytes(_section(view, proto.index_section, end))
    parse_message(table_pb2.IndexSection, section)
    return section


def _transaction(proto: table_pb2.Manifest, view: memoryview, end: int) -> bytes | None:
    if proto.HasField("inline_transaction"):
        return bytes(_section(view, proto.inline_transaction, end))
    if proto.HasField("transaction_section"):
        return bytes(_section(view, proto.transaction_section, end))
    return None


def _dictionaries(
    proto: table_pb2.Manifest, data: pa.Buffer | bytes
) -> dict[FieldId, pa.Array[Any]]:
    if not any(field.HasField("dictionary") for field in proto.fields):
        return {}
    from pennon.table.dictionaries_wire import parse_dictionaries  # noqa: PLC0415 - saves version 0.1

    return parse_dictionaries(proto, data)


def _serialize_dictionaries(
    proto: table_pb2.Manifest, dictionaries: Mapping[FieldId, pa.Array[Any]]
) -> bytes:
    if not dictionaries:
        return b""
    from pennon.table.dictionaries_wire import serialize_dictionaries  # noqa: PLC0415 - as above

    return serialize_dictionaries(proto, dictionaries)


def _without_counts(fragment: Fragment) -> Fragment:
    """Forget the counts of writers that did not sign: before Lance 0.8.15 they can be wrong."""
    deletion = fragment.deletion_file
    if deletion is not None:
        deletion = replace(deletion, num_deleted_rows=None)
    return replace(fragment, physical_rows=None, deletion_file=deletion)


def _parse_writer(proto: table_pb2.Manifest) -> WriterVersion | None:
    if not proto.HasField("writer_version"):
        return None
    it = proto.writer_version
    return WriterVersion(
        it.library,
        it.version,
        it.prerelease if it.HasField("prerelease") else None,
        it.build_metadata if it.HasField("build_metadata") else None,
    )


def _parse_format(proto: table_pb2.Manifest) -> DataFormat | None:
    if not proto.HasField("data_format"):
        return None
    check_not_newer(proto.data_format.version)
    return DataFormat(proto.data_format.file_format, proto.data_format.version)


def _parse_timestamp(proto: table_pb2.Manifest) -> int:
    seconds, nanos = proto.timestamp.seconds, proto.timestamp.nanos
    if not (0 <= seconds <= _LAST_SECOND and 0 <= nanos < _NANOSECONDS):
        message = f"timestamp {seconds} s + {nanos} ns is no time of the common era"
        raise FormatError(message)
    return seconds * _NANOSECONDS + nanos
