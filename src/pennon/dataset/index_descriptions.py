"""Descriptions of a table's indices: columns, kinds, coverage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from pennon.dataset.operation_fields import from_index as from_index
from pennon.dataset.operation_fields import to_index as to_index
from pennon.dataset.vector_models import IvfModel
from pennon.errors import (
    ArgumentError,
    FormatError,
    IndexNotFoundError,
    NoColumnError,
    NotFoundError,
    UnsupportedError,
)
from pennon.index import kinds
from pennon.index.base import OpenIndex
from pennon.index.files import IndexFiles, made_now
from pennon.index.text.inverted import Inverted
from pennon.index.vector.build.opened_index import StoredIndex, open_stored
from pennon.index.vector.rows import as_array
from pennon.scan.plan.index_lookup import open_index
from pennon.scan.plan.known_indices import known_indices, why_not_asked
from pennon.scan.plan.moved_rows import indices_now
from pennon.scan.read.tasks import live_row_count
from pennon.scan.search.vector_indices import why_not_searched
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.project import find_path, walk_paths
from pennon.table.indices import SYSTEM, Index
from pennon.table.indices_wire import kind_of
from pennon.table.json_index_wire import json_target


@dataclass(frozen=True)
class IndexSegmentDescription:
    """A segment: the fragments that it names, and the version and time that it was made at.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> ds.create_scalar_index("id", "BTREE")
    >>> [segment.fragment_ids for segment in ds.describe_indices()[0].segments]
    [{0}]
    """

    uuid: str
    dataset_version_at_last_update: int
    fragment_ids: set[int]
    index_version: int
    created_at: datetime | None
    size_bytes: int | None
    base_id: int | None


IndexSegment: TypeAlias = IndexSegmentDescription
"""pylance's name of a segment: its UUID, the fragments that it covers, its version."""


class SupportedDistributedIndices(StrEnum):
    """The kinds that pylance merges from segments of several machines; Pennon merges those of every kind.

    >>> from pennon.indices import SupportedDistributedIndices
    >>> SupportedDistributedIndices("IVF_PQ").value
    'IVF_PQ'
    """

    BTREE = "BTREE"
    INVERTED = "INVERTED"
    IVF_FLAT = "IVF_FLAT"
    IVF_PQ = "IVF_PQ"
    IVF_SQ = "IVF_SQ"
    VECTOR = "VECTOR"


@dataclass(frozen=True)
class IndexDescription:
    """An index: what it is of, and how much of the table it covers.

    ``details``: of a full-text index its settings; where nobody asks it, or one of its segments, ``not_asked``
    says why.
    """

    name: str
    type_url: str
    index_type: str
    num_rows_indexed: int
    fields: list[int]
    field_names: list[str]
    segments: list[IndexSegmentDescription]
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def total_size_bytes(self) -> int | None:
        """Return the bytes of all files of the index; None for one that is made of none."""
        sizes = [each.size_bytes for each in self.segments if each.size_bytes is not None]
        return sum(sizes) if sizes else None


def describe(snapshot: Snapshot) -> list[IndexDescription]:
    """Return all indices of a version, ordered by name; their folders are listed for the sizes."""
    named: dict[str, list[Index]] = defaultdict(list)
    for index in indices_now(snapshot):
        named[index.name].append(index)
    return [_description(snapshot, named[name]) for name in sorted(named)]


def _description(snapshot: Snapshot, segments: list[Index]) -> IndexDescription:
    first, manifest = segments[0], snapshot.manifest
    covered = frozenset().union(*(index.fragment_ids or () for index in segments))
    alive = [fragment for fragment in manifest.fragments if fragment.id in covered]
    paths = {field.id: path for path, field in walk_paths(manifest.schema)}
    url, kind = kind_of(first)
    return IndexDescription(
        first.name,
        url,
        kind or "Unknown",
        sum(live_row_count(snapshot, fragment) for fragment in alive),
        list(first.field_ids),
        [paths.get(number, "") for number in first.field_ids],
        [_segment(snapshot, index) for index in segments],
        _details(snapshot, segments),
    )


def _details(snapshot: Snapshot, segments: list[Index]) -> dict[str, Any]:
    """Return what the details of an index say, and why an index is not asked, if it is not."""
    told = {index.uuid: index for index in known_indices(snapshot)}
    whys = [_why(snapshot, told[index.uuid]) for index in segments]
    why = next((why for why in whys if why is not None), None)
    found = {} if why is None else {"not_asked": why}
    path, first = json_target(segments[0])
    if path is not None:
        return {"path": path, "target_details": {}, **found}
    kind = kinds.kind_of(first)
    if kind is None or first.details is None:
        return found
    return {**kind.parameters.shown(first.details[1]), **found}


def _why(snapshot: Snapshot, index: Index) -> str | None:
    if index.is_vector:
        return why_not_searched(snapshot, index)
    return why_not_asked(snapshot, index)


def _segment(snapshot: Snapshot, index: Index) -> IndexSegmentDescription:
    shown = from_index(index)
    files = [] if index.name in SYSTEM else snapshot.store.list(index.folder)
    return IndexSegmentDescription(
        index.uuid,
        index.dataset_version,
        set(index.fragment_ids or ()),
        shown.index_version,
        shown.created_at,
        None if index.name in SYSTEM else sum(info.size_bytes for info in files),
        shown.base_id,
    )


def statistics_of(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """Return what `LanceDataset.index_statistics` does."""
    segments, manifest = _segments(snapshot, name), snapshot.manifest
    covered = [index.fragment_ids or frozenset() for index in segments]
    every = frozenset().union(*covered)
    rows = {each.id: live_row_count(snapshot, each) for each in manifest.fragments}
    known = [_said(snapshot, segment) for segment in segments]
    _, first = json_target(segments[0])
    return {
        "index_type": kind_of(first)[1],
        "name": name,
        "num_indices": len(segments),
        "num_segments": len(segments),
        "indices": known,
        "segments": known,
        "num_indexed_fragments": sum(number in every for number in rows),
        "num_indexed_rows": sum(count for number, count in rows.items() if number in every),
        "num_unindexed_fragments": sum(number not in every for number in rows),
        "num_unindexed_rows": sum(count for number, count in rows.items() if number not in every),
        "num_indexed_rows_per_delta": [
            sum(count for number, count in rows.items() if number in each) for each in covered
        ],
        "updated_at_timestamp_ms": max((i.created_at_ms or 0 for i in segments), default=0),
    }


def stored_vectors(snapshot: Snapshot, name: str) -> list[StoredIndex]:
    """Open the segments of an index of vectors, those that have files, as they are stored.

    Raises IndexNotFoundError if there is none of that name, ArgumentError if it is of something else, FormatError,
    NotFoundError and UnsupportedError as `open_stored` does.
    """
    segments = _segments(snapshot, name)
    if not all(each.is_vector for each in segments):
        message = f"Index {name} is not vector index"
        raise ArgumentError(message)
    return [
        open_stored(_files(snapshot, each)) for each in segments if each.files or each.fragment_ids
    ]


def ivf_model_of(snapshot: Snapshot, name: str) -> IvfModel | None:
    """Return the centroids of an index of vectors, of its first segment; None if it is not trained."""
    found = stored_vectors(snapshot, name)
    if not found:
        return None
    model = found[0].model
    return IvfModel(as_array(model.centroids), model.settings.metric.name)


def vector_index_of(snapshot: Snapshot, column: str) -> str:
    """Return the name of the first index of vectors on a column.  Raises NoColumnError if there is none."""
    leaf = find_path(snapshot.manifest.schema, column)[-1]
    for index in sorted(indices_now(snapshot), key=lambda each: each.name):
        if index.is_vector and index.field_ids == (leaf.id,):
            return index.name
    message = f"No IVF index for column '{column}'"
    raise NoColumnError(message)


def _files(snapshot: Snapshot, segment: Index) -> IndexFiles:
    """Return the files of a segment without any cached part."""
    return snapshot.index_files(segment, made_now)


def warm(
    snapshot: Snapshot,
    name: str,
    uuids: Collection[str] | None = None,
    *,
    with_position: bool = False,
) -> None:
    """Read what searches of an index, or of some segments of it, will read; phrases, if ``with_position``."""
    for segment in _segments(snapshot, name):
        opened = None if uuids and segment.uuid not in uuids else _opened(snapshot, segment)
        if opened is None:
            continue
        if not with_position:
            opened.warm()
            continue
        if not isinstance(opened, Inverted):
            message = f"FTS prewarm options are only supported for inverted indices, got {kind_of(segment)[1]}"
            raise ArgumentError(message)
        if not opened.parameters.with_position:
            message = (
                "cannot prewarm positions for an inverted index that was built without positions; recreate "
                "the index with with_position=true"
            )
            raise ArgumentError(message)
        opened.warm(places=True)


def _segments(snapshot: Snapshot, name: str) -> list[Index]:
    found = [each for each in indices_now(snapshot) if each.name == name]
    if not found:
        message = f'Index "{name}" not found'
        raise IndexNotFoundError(message)
    return found


def _said(snapshot: Snapshot, segment: Index) -> dict[str, Any]:
    """Return what a segment says of itself; nothing, if it cannot be read."""
    kind = kinds.kind_of(segment)
    try:
        if kind is not None and kind.statistics is not None:
            return dict(kind.statistics(_files(snapshot, segment), snapshot.store.uri))
        opened = _opened(snapshot, segment)
    except (FormatError, NotFoundError, UnsupportedError):
        return {}
    return {} if opened is None else opened.statistics


def _opened(snapshot: Snapshot, segment: Index) -> OpenIndex | None:
    """Return a segment of an index; None for a kind that Pennon does not read, or that only a search opens."""
    kind = kinds.kind_of(segment)
    fields = {each.id: each for each in snapshot.manifest.schema.walk()}
    if (
        kind is None
        or kind.open is None
        or len(segment.field_ids) != 1
        or segment.field_ids[0] not in fields
    ):
        return None
    column = field_to_arrow(fields[segment.field_ids[0]]).type
    return open_index(snapshot, segment, kind, column)
