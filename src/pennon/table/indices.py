"""The indices of a table: how much of them a commit must understand.

Pennon uses no index, but other readers do.  A commit that moves rows, changes a column or drops one
must see to it that an index is not believed where it is no longer right.  So an index is the message
of table.proto as it was written, and beside it what the rules need: its uuid, name and fields, and
the fragments that it covers.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import field, replace

import numpy as np
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId, FragmentId
from pennon.errors import FormatError
from pennon.proto import table_pb2
from pennon.table.fragment_wire import parse_message, serialize_message
from pennon.table.roaring import parse_roaring, serialize_roaring

FRAGMENT_REUSE = "__lance_frag_reuse"
"""The name of the index that says which fragments became which; it has no field."""

SYSTEM = frozenset({FRAGMENT_REUSE, "__lance_mem_wal"})
"""The names of indices that no user made."""


_MOST_FRAGMENTS = 1 << 21
"""No index covers more; the bitmap of a damaged one could name billions."""

_HNSW = 3
_QUANTIZERS = {4: "PQ", 5: "SQ", 6: "RQ"}
"""Fields of VectorIndexDetails, by their numbers.  Source: measured on pylance 14.0.2."""

_BY_ROW_IDS = frozenset(
    f"{kind}IndexDetails" for kind in ("Bitmap", "Inverted", "LabelList", "NGram", "Vector")
)
"""Kinds of indices that name rows by their stable ids, in tables that have them.

The others hold addresses there, too.  Source: ledger F-152 (measured on pylance 14.0.2).
"""


@dataclass(frozen=True, slots=True)
class RewrittenIndex:
    """An index that was made anew for rewritten fragments; ``details`` is a protobuf Any."""

    old_id: str
    new_id: str
    details_url: str = ""
    details: bytes = field(default=b"", repr=False)
    index_version: int = 0
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Index:
    """One index, or one segment of it.

    ``fragment_ids`` are the fragments that it covers, None where its writer did not say.  ``wire``
    is its message, an IndexMetadata, which is written back as it is.
    """

    uuid: str
    name: str
    field_ids: tuple[FieldId, ...]
    fragment_ids: frozenset[FragmentId] | None
    dataset_version: int
    is_vector: bool
    wire: bytes = field(repr=False)
    goes_by_row_ids: bool = False
    """Whether it names rows by their stable ids, if the table has them."""


def parse_index(message: table_pb2.IndexMetadata) -> Index:
    """Return the index that a message stands for; raises FormatError."""
    return Index(
        parse_uuid(message.uuid),
        message.name,
        tuple(FieldId(number) for number in message.fields),
        _parse_fragments(message.fragment_bitmap),
        message.dataset_version,
        message.index_details.type_url.endswith("VectorIndexDetails"),
        serialize_message(message),
        message.index_details.type_url.rpartition(".")[2] in _BY_ROW_IDS,
    )


def serialize_index(index: Index) -> table_pb2.IndexMetadata:
    """Return the message of an index."""
    return parse_message(table_pb2.IndexMetadata, index.wire)


def parse_indices(section: bytes) -> tuple[Index, ...]:
    """Return the indices in a manifest's IndexSection; raises FormatError."""
    return tuple(map(parse_index, parse_message(table_pb2.IndexSection, section).indices))


def serialize_indices(indices: Iterable[Index]) -> bytes:
    """Return the IndexSection of a manifest, empty where there is no index."""
    section = table_pb2.IndexSection(indices=map(serialize_index, indices))
    return serialize_message(section)


def covering(index: Index, fragment_ids: frozenset[FragmentId]) -> Index:
    """Return the same index, said to cover these fragments."""
    if fragment_ids == index.fragment_ids:
        return index
    message = serialize_index(index)
    offsets = np.array(sorted(fragment_ids), np.uint32)
    message.fragment_bitmap = serialize_roaring(offsets)
    return replace(index, fragment_ids=fragment_ids, wire=serialize_message(message))


def folder_of(index: Index) -> str:
    """Return the folder of an index's files, as `pennon.table.base_paths` names places."""
    message = serialize_index(index)
    folder = f"_indices/{index.uuid}"
    return f"@{message.base_id}/{folder}" if message.HasField("base_id") else folder


def based(index: Index, base_id: int) -> Index:
    """Return an index whose files lie in a base path, unless they lie in one already."""
    message = serialize_index(index)
    if message.HasField("base_id"):
        return index
    message.base_id = base_id
    return replace(index, wire=serialize_message(message))


def unbased(index: Index) -> Index:
    """Return an index whose files lie in the table's own folder."""
    message = serialize_index(index)
    message.ClearField("base_id")
    return replace(index, wire=serialize_message(message))


def renamed(index: Index, new: RewrittenIndex) -> Index:
    """Return the index that was made anew of this one, for the same fragments."""
    message = serialize_index(index)
    message.uuid.CopyFrom(serialize_uuid(new.new_id))
    if new.details_url:
        message.index_details.type_url = new.details_url
        message.index_details.value = new.details
        message.index_version = new.index_version
    return parse_index(message)


def kind_of(index: Index) -> tuple[str, str]:
    """Return the type URL of an index, and its kind as pylance names it, e.g. ``BTree``, ``IVF_PQ``.

    Vector indices of early writers do not say which kind they are: ``Vector``.
    """
    details = serialize_index(index).index_details
    name = details.type_url.rpartition(".")[2].removesuffix("IndexDetails")
    if name != "Vector" or not details.value:
        return details.type_url, name
    found = UnknownFieldSet(parse_message(Empty, details.value))
    parts = {found[at].field_number for at in range(len(found))}
    graph = "HNSW_" if _HNSW in parts else ""
    values = next((kind for number, kind in _QUANTIZERS.items() if number in parts), "FLAT")
    return details.type_url, f"IVF_{graph}{values}"


def parse_uuid(message: table_pb2.UUID) -> str:
    """Return a uuid as text; raises FormatError."""
    if len(message.uuid) != 16:
        text = f"{len(message.uuid)} bytes are no uuid"
        raise FormatError(text)
    return str(uuid.UUID(bytes=message.uuid))


def serialize_uuid(text: str) -> table_pb2.UUID:
    """Return the message of a uuid."""
    return table_pb2.UUID(uuid=uuid.UUID(text).bytes)


def _parse_fragments(bitmap: bytes) -> frozenset[FragmentId] | None:
    if not bitmap:
        return None
    return frozenset(map(FragmentId, parse_roaring(bitmap, _MOST_FRAGMENTS).tolist()))
