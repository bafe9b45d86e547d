"""Making an index of a column, and the version that has it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from pennon.core.loggers import MAINTENANCE
from pennon.core.units import FieldId, FragmentId
from pennon.errors import ArgumentError, FormatError, IndexExistsError, UnsupportedError
from pennon.index.kinds import kind_called
from pennon.index.vector.kind import KIND as VECTOR
from pennon.ops.commit import commit_on
from pennon.ops.index.build import Builder, IndexBuild, Origin
from pennon.ops.index.builders import THREADS, Watched
from pennon.ops.index.json_build import JsonBuild
from pennon.ops.index.progress import Watch
from pennon.ops.index.request import IndexRequest, leaf_of
from pennon.ops.index.vector_build import VectorBuild
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import Fragment
from pennon.table.indices import Index, check_index_name
from pennon.table.indices_wire import parse_indices, rewritten
from pennon.table.json_index_wire import JSON_DETAILS, json_target
from pennon.table.manifest import Manifest
from pennon.table.operations import CreateIndex

AnyBuild = TypeVar("AnyBuild", bound=IndexBuild)

_BUILDS: Final[Mapping[str, type[IndexBuild]]] = {
    JSON_DETAILS: JsonBuild,
    VECTOR.details: VectorBuild,
}
"""The builds that do more than the functions of a kind say, by the details of their indices; all others are `IndexBuild`."""


def create_index(
    snapshot: Snapshot,
    column: str,
    kind: str,
    name: str | None = None,
    *,
    replace: bool = True,
    train: bool = True,
    parameters: Mapping[str, Any] | None = None,
    index_uuid: str | None = None,
    builder: Builder = THREADS,
    watch: Watch | None = None,
) -> Manifest:
    """Make an index of a column, and return the version that has it.

    Without ``train`` it covers no fragment.  ``index_uuid`` names its folder.  ``watch`` is told of the stages.  Raises
    IndexExistsError for a name that is in use, and what `pennon.ops.index.build.IndexBuild.plan` raises.
    """
    if watch is not None:
        builder = Watched(builder, watch)
    build = plan_index(snapshot, column, kind, name, parameters or {}, None if train else ())
    removed = check_name(snapshot, build, replace=replace)
    if index_uuid is not None:
        build = in_folder(build, index_uuid)
    index = build_index(build, builder)
    manifest = commit_on(snapshot, CreateIndex((index,), removed))
    uri, version = snapshot.store.uri, manifest.version
    MAINTENANCE.info("%s: version %d has a new index %s (%s)", uri, version, index.name, kind)
    return manifest


def plan_index(
    snapshot: Snapshot,
    column: str,
    kind: str,
    name: str | None,
    parameters: Mapping[str, Any],
    fragments: Sequence[Fragment] | None = None,
) -> IndexBuild:
    """Plan an index, under a name of its own if none is given; raises what `IndexBuild.plan` does."""
    check_index_name(name or "")
    details = JSON_DETAILS if kind.upper() == "JSON" else kind_called(kind).details
    wanted = IndexRequest(snapshot, column, kind, name, parameters, fragments)
    return _BUILDS.get(details, IndexBuild).plan(wanted)


def build_index(build: IndexBuild, builder: Builder = THREADS) -> Index:
    """Train a build, make all its segments, and merge them."""
    return build.train(builder).made(builder)


def in_folder(build: AnyBuild, index_uuid: str) -> AnyBuild:
    """Return the build of an index in a folder of that name; raises ArgumentError if there is one in it."""
    name = folder_name(index_uuid)
    indices = parse_indices(build.snapshot.manifest.indices)
    if any(each.uuid == name for each in indices):
        message = f"index_uuid: the table has an index in _indices/{name}"
        raise ArgumentError(message)
    return replace(build, uuid=name)


def folder_name(index_uuid: str) -> str:
    """Return the name of the folder of a uuid; raises ArgumentError for what is none."""
    try:
        return str(uuid.UUID(index_uuid))
    except (ValueError, AttributeError, TypeError):
        message = f"Invalid UUID string for index_uuid: {index_uuid!r}"
        raise ArgumentError(message) from None


def merge_segments(snapshot: Snapshot, segments: Sequence[Index]) -> Index:
    """Merge segments of one kind and column, committed or not; return the entry of the new one."""
    first = segments[0] if segments else None
    if first is None or any(_values_of(each) != _values_of(first) for each in segments):
        message = "only segments of one kind on one column can be merged, and at least one"
        raise ArgumentError(message)
    return plan_like(snapshot, first, ()).merge(segments)


def _values_of(segment: Index) -> tuple[Any, ...]:
    """Return what segments have to be alike in to be merged: kind, column, and path of a JSON column."""
    path, target = json_target(segment)
    return segment.field_ids, path, target.type_name


def commit_segments(
    snapshot: Snapshot, name: str, column: str, segments: Sequence[Index]
) -> Manifest:
    """Make segments part of the index of that name; return the version made.

    They replace the segments that share a fragment with them, as in pylance 14, and those that do not say
    which they cover.  Raises ArgumentError for segments of another column, and for a kind that is not that of
    the segments that stay.
    """
    check_index_name(name)
    leaf = leaf_of(snapshot.manifest.schema, column)
    if not segments or any(each.field_ids != (leaf.id,) for each in segments):
        message = f"the segments of {name!r} are not of {column}"
        raise ArgumentError(message)
    same = tuple(i for i in parse_indices(snapshot.manifest.indices) if i.name == name)
    _check_field(name, same, leaf.id)
    covered = frozenset[FragmentId]().union(*(each.fragment_ids or () for each in segments))
    replaced = tuple(i for i in same if i.fragment_ids is None or i.fragment_ids & covered)
    staying = tuple(i for i in same if i not in replaced)
    other = {i.type_name for i in staying} - {each.type_name for each in segments}
    if other:
        new = ", ".join(sorted({each.type_name for each in segments}))
        message = (
            f"cannot change index {name!r} from type {', '.join(sorted(other))} to {new} while segments of other "
            "fragments stay: replace all fragments at once, or drop the index first"
        )
        raise ArgumentError(message)
    named = tuple(rewritten(replace(each, name=name)) for each in segments)
    # New entries replace all of their name (pylance applies them so, too): those that stay are among the new ones.
    return commit_on(snapshot, CreateIndex((*staying, *named), replaced))


def plan_like(
    snapshot: Snapshot,
    like: Index,
    fragments: Sequence[Fragment] | None,
    origin: Origin = Origin.FILES,
) -> IndexBuild:
    """Return the plan of an index like another one: of its column, kind and parameters.

    Raises FormatError if its entry does not fit the column, UnsupportedError for a kind that Pennon does not make.
    """
    return _build_of(like).plan_like(snapshot, like, fragments, origin)


def fits_column(snapshot: Snapshot, index: Index) -> bool:
    """Return whether the entry of an index is of one column, and of a kind that its type has."""
    try:
        _build_of(index).check_entry(snapshot, index)
    except (FormatError, UnsupportedError):
        return False
    return True


def _build_of(index: Index) -> type[IndexBuild]:
    return _BUILDS.get(index.type_name, IndexBuild)


def fragments_of(snapshot: Snapshot, numbers: Iterable[int]) -> list[Fragment]:
    """Return the fragments of some numbers; raises ArgumentError for one that is not there."""
    known = {int(each.id): each for each in snapshot.manifest.fragments}
    missing = sorted(set(numbers) - known.keys())
    if missing:
        message = f"the table has no fragment {', '.join(map(str, missing))}"
        raise ArgumentError(message)
    return [known[number] for number in sorted(set(numbers))]


def check_name(snapshot: Snapshot, build: IndexBuild, *, replace: bool) -> tuple[Index, ...]:
    """Return the indices that a new one replaces; raises IndexExistsError if it must not.

    Raises ArgumentError for a name that is reserved.
    """
    check_index_name(build.name)
    same = tuple(i for i in parse_indices(snapshot.manifest.indices) if i.name == build.name)
    _check_field(build.name, same, build.field_id)
    if same and not replace:
        message = f"Index name '{build.name}' already exists, please specify a different name or use replace=True"
        raise IndexExistsError(message)
    return same


def _check_field(name: str, same: Iterable[Index], field_id: FieldId) -> None:
    if any(each.field_ids != (field_id,) for each in same):
        message = f"Index name '{name}' already exists with different fields, please specify a different name"
        raise IndexExistsError(message)
