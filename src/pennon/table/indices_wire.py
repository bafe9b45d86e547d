"""Indices as messages of table.proto, both ways.

An index is changed through its message, so that what Pennon does not know of it stays.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import numpy as np
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet

from pennon.core.units import FieldId, FragmentId
from pennon.errors import FormatError
from pennon.proto import table_pb2
from pennon.table.indices import Index, IndexFile, RewrittenIndex
from pennon.table.message_wire import parse_message, serialize_message
from pennon.table.roaring import parse_roaring, serialize_roaring

_MOST_FRAGMENTS = 1 << 21
"""No index covers more; the bitmap of a damaged one could name billions."""

_SECTIONS = 8
"""So many sections of manifests are remembered: one commit asks for that of a version many times."""
_HNSW = 3
_QUANTIZERS = {4: "PQ", 5: "SQ", 6: "RQ"}
"""Fields of VectorIndexDetails, by their numbers.  Source: measured on pylance 14.0.2."""


def parse_index(message: table_pb2.IndexMetadata) -> Index:
    """Return the index that a message stands for; raises FormatError."""
    has, details = message.HasField, message.index_details
    return Index(
        parse_uuid(message.uuid),
        message.name,
        tuple(FieldId(number) for number in message.fields),
        _parse_fragments(message.fragment_bitmap),
        message.dataset_version,
        message.index_version,
        message.created_at if has("created_at") else None,
        message.base_id if has("base_id") else None,
        (details.type_url, details.value) if has("index_details") else None,
        tuple(map(parse_index_file, message.files)),
        serialize_message(message),
    )


def parse_index_bytes(data: bytes) -> Index:
    """Return the index whose serialized message this is, `Index.wire`; raises FormatError."""
    return parse_index(parse_message(table_pb2.IndexMetadata, data))


def serialize_index(index: Index) -> table_pb2.IndexMetadata:
    """Return the message of an index."""
    return parse_message(table_pb2.IndexMetadata, index.wire)


def serialize_index_bytes(index: Index) -> bytes:
    """Return the bytes that `parse_index_bytes` takes."""
    return index.wire


@lru_cache(maxsize=_SECTIONS)
def parse_indices(section: bytes) -> tuple[Index, ...]:
    """Return the indices in a manifest's IndexSection; raises FormatError."""
    return tuple(map(parse_index, parse_message(table_pb2.IndexSection, section).indices))


def serialize_indices(indices: Iterable[Index]) -> bytes:
    """Return the IndexSection of a manifest, empty where there is no index."""
    section = table_pb2.IndexSection(indices=map(serialize_index, indices))
    return serialize_message(section)


def rewritten(index: Index) -> Index:
    """Return an index whose message says all that its other fields do."""
    message = serialize_index(index)
    message.uuid.CopyFrom(serialize_uuid(index.uuid))
    message.name, message.dataset_version = index.name, index.dataset_version
    message.fields[:] = index.field_ids
    message.fragment_bitmap = _serialize_fragments(index.fragment_ids or ())
    message.index_version = index.index_version
    if index.created_at_ms is not None:
        message.created_at = index.created_at_ms
    if index.base_id is not None:
        message.base_id = index.base_id
    if index.details is not None:
        message.index_details.type_url, message.index_details.value = index.details
    del message.files[:]
    message.files.extend(map(serialize_index_file, index.files))
    return parse_index(message)


def covering(index: Index, fragment_ids: frozenset[FragmentId]) -> Index:
    """Return the same index, said to cover these fragments."""
    if fragment_ids == index.fragment_ids:
        return index
    message = serialize_index(index)
    message.fragment_bitmap = _serialize_fragments(fragment_ids)
    return replace(index, fragment_ids=fragment_ids, wire=serialize_message(message))


def based(index: Index, base_id: int) -> Index:
    """Return an index whose files lie in a base path, unless they lie in one already."""
    if index.base_id is not None:
        return index
    message = serialize_index(index)
    message.base_id = base_id
    return replace(index, base_id=base_id, wire=serialize_message(message))


def unbased(index: Index) -> Index:
    """Return an index whose files lie in the table's own folder."""
    message = serialize_index(index)
    message.ClearField("base_id")
    return replace(index, base_id=None, wire=serialize_message(message))


def renamed(index: Index, new: RewrittenIndex, dataset_version: int | None = None) -> Index:
    """Return the index that was made anew of this one, for the same fragments; its files lie in the table's own folder.

    ``dataset_version``: the version that it is of from now on, if not the one that it was of before.
    """
    message = serialize_index(index)
    message.uuid.CopyFrom(serialize_uuid(new.new_id))
    message.ClearField("base_id")
    if dataset_version is not None:
        message.dataset_version = dataset_version
    if new.details_url:
        message.index_details.type_url = new.details_url
        message.index_details.value = new.details
        message.index_version = new.index_version
    del message.files[:]
    message.files.extend(map(serialize_index_file, new.new_files))
    return parse_index(message)


def kind_of(index: Index) -> tuple[str, str]:
    """Return the type URL of an index, and its kind as pylance names it, e.g. ``BTree``, ``IVF_PQ``.

    Vector indices of early writers do not say which kind they are: ``Vector``.
    """
    url, details = index.details or ("", b"")
    name = index.type_name.removesuffix("IndexDetails")
    if name != "Vector" or not details:
        return url, name
    found = UnknownFieldSet(parse_message(Empty, details))
    parts = {found[at].field_number for at in range(len(found))}
    graph = "HNSW_" if _HNSW in parts else ""
    values = next((kind for number, kind in _QUANTIZERS.items() if number in parts), "FLAT")
    return url, f"IVF_{graph}{values}"


def parse_uuid(message: table_pb2.UUID) -> str:
    """Return a uuid as text; raises FormatError."""
    if len(message.uuid) != 16:
        text = f"a uuid of an index has {len(message.uuid)} bytes; it must have 16"
        raise FormatError(text)
    return str(uuid.UUID(bytes=message.uuid))


def serialize_uuid(text: str) -> table_pb2.UUID:
    """Return the message of a uuid."""
    return table_pb2.UUID(uuid=uuid.UUID(text).bytes)


def parse_index_file(message: table_pb2.IndexFile) -> IndexFile:
    """Return the file of an index that a message stands for."""
    return IndexFile(message.path, message.size_bytes)


def serialize_index_file(file: IndexFile) -> table_pb2.IndexFile:
    """Return the message of a file of an index."""
    return table_pb2.IndexFile(path=file.path, size_bytes=file.size_bytes)


def _parse_fragments(bitmap: bytes) -> frozenset[FragmentId] | None:
    if not bitmap:
        return None
    return frozenset(map(FragmentId, parse_roaring(bitmap, _MOST_FRAGMENTS).tolist()))


def _serialize_fragments(fragment_ids: Iterable[FragmentId]) -> bytes:
    return serialize_roaring(np.array(sorted(fragment_ids), np.uint32))
