"""Making an index of a column, and the version that has it."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pennon.core.units import FieldId
from pennon.errors import ArgumentError, FormatError, IndexExistsError, UnsupportedError
from pennon.index.kinds import kind_called, kind_of_any_version, scalar_kind
from pennon.index.text.documents import is_json
from pennon.ops.commit import commit_on
from pennon.ops.index.build import (
    THREADS,
    Builder,
    IndexBuild,
    leaf_of,
    leaf_of_index,
    path_of,
    plan_build,
)
from pennon.ops.index.json_build import JsonChoices, plan_json
from pennon.ops.index.vector_build import plan_vectors_like
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field, Schema
from pennon.schema.project import quoted, walk_names
from pennon.schema.types import storage_type
from pennon.table.fragment import Fragment
from pennon.table.indices import Index, check_index_name
from pennon.table.indices_wire import parse_indices, rewritten
from pennon.table.json_index_wire import json_target
from pennon.table.manifest import Manifest
from pennon.table.operations import CreateIndex

AnyBuild = TypeVar("AnyBuild", bound=IndexBuild)


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
) -> Manifest:
    """Make an index of a column, and return the version that has it.

    Without ``train`` it covers no fragment.  ``index_uuid`` names its folder.  Raises IndexExistsError for a name that is in use, and what
    `pennon.ops.index.build.plan_build` raises.
    """
    build = plan_index(snapshot, column, kind, name, parameters or {}, None if train else ())
    removed = check_name(snapshot, build, replace=replace)
    if index_uuid is not None:
        build = in_folder(build, index_uuid)
    return commit_on(snapshot, CreateIndex((build_index(build, builder),), removed))


def plan_index(
    snapshot: Snapshot,
    column: str,
    kind: str,
    name: str | None,
    parameters: Mapping[str, Any],
    fragments: Sequence[Fragment] | None = None,
) -> IndexBuild:
    """Plan an index, under a name of its own if none is given; see `plan_build`."""
    check_index_name(name or "")
    schema = snapshot.manifest.schema
    leaf = leaf_of(schema, column)
    indices = parse_indices(snapshot.manifest.indices)
    if kind.upper() == "JSON":
        choices = JsonChoices.of(parameters)
        others = [each for each in indices if (json_target(each) or ("",))[0] != choices.path]
        name = name or new_name(schema, leaf, "", others)
        planned = plan_json(snapshot, column, name, choices, fragments)
        return planned if fragments is not None and not fragments else planned.inferred()
    chosen = kind_called(kind)
    if name is None:
        ending = chosen.parameters.name_ending(parameters)
        name = new_name(schema, leaf, chosen.details, indices, ending)
    return plan_build(snapshot, column, chosen.details, name, parameters, fragments)


def build_index(build: IndexBuild, builder: Builder = THREADS) -> Index:
    """Make all segments of an index, and merge them."""
    segments = builder.segments(build)
    return segments[0] if len(segments) == 1 else builder.merge(build, segments)


def in_folder(build: AnyBuild, index_uuid: str) -> AnyBuild:
    """Return the build of an index in a folder of that name; raises ArgumentError if there is one in it."""
    name = folder_name(index_uuid)
    indices = parse_indices(build.snapshot.manifest.indices)
    if any(each.uuid == name for each in indices):
        message = f"index_uuid: the table has an index in _indices/{name}"
        raise ArgumentError(message)
    return dataclasses.replace(build, uuid=name)


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
    json = json_target(segment)
    kind = segment.type_name if json is None else (json[0], json[1].type_name)
    return segment.field_ids, kind


def commit_segments(
    snapshot: Snapshot, name: str, column: str, segments: Sequence[Index]
) -> Manifest:
    """Make segments an index of that name, which replaces one that there is; return the version made."""
    check_index_name(name)
    leaf = leaf_of(snapshot.manifest.schema, column)
    if not segments or any(each.field_ids != (leaf.id,) for each in segments):
        message = f"the segments of {name!r} are not of {column}"
        raise ArgumentError(message)
    same = tuple(i for i in parse_indices(snapshot.manifest.indices) if i.name == name)
    _check_field(name, same, leaf.id)
    named = tuple(rewritten(dataclasses.replace(each, name=name)) for each in segments)
    return commit_on(snapshot, CreateIndex(named, same))


def plan_like(
    snapshot: Snapshot,
    like: Index,
    fragments: Sequence[Fragment] | None,
    *,
    with_parameters: bool = True,
) -> IndexBuild:
    """Return the plan of an index like another one: of its column, kind and parameters.

    Those are in its files; without ``with_parameters`` they are what its details say.

    Raises FormatError if its entry does not fit the column, UnsupportedError for a kind that Pennon does not make.
    """
    if like.is_vector:
        return plan_vectors_like(snapshot, like, fragments, with_model=with_parameters)
    _check_entry(snapshot, like)
    path = path_of(snapshot.manifest.schema, leaf_of_index(snapshot.manifest.schema, like))
    json = json_target(like)
    if json is not None:
        return _plan_like_json(snapshot, path, like, json, fragments, with_parameters)
    parameters = scalar_kind(like.type_name).parameters
    found = parameters.of_details(b"" if like.details is None else like.details[1])
    build = plan_build(snapshot, path, like.type_name, like.name, found, fragments)
    if not with_parameters:
        return build
    found = parameters.of_files(build.files(like))
    return plan_build(snapshot, path, like.type_name, like.name, found, fragments)


def fits_column(snapshot: Snapshot, index: Index) -> bool:
    """Return whether the entry of a scalar index is of one column, and of a kind that its type has."""
    try:
        _check_entry(snapshot, index)
    except (FormatError, UnsupportedError):
        return False
    return True


def _check_entry(snapshot: Snapshot, index: Index) -> None:
    kind = field_to_arrow(leaf_of_index(snapshot.manifest.schema, index)).type
    json = json_target(index)
    message = index.type_name if json is None else json[1].type_name
    made = kind_of_any_version(index)
    if made is None:
        text = f"the index {index.name!r} is of a kind that Pennon does not make: {message}"
        raise UnsupportedError(text)
    fits = made.takes(storage_type(kind)) if json is None else is_json(kind)
    if not fits:
        text = f"the index {index.name!r} is of kind {message}, which no column of {kind} has"
        raise FormatError(text)


def _plan_like_json(
    snapshot: Snapshot,
    path: str,
    like: Index,
    json: tuple[str, Index],
    fragments: Sequence[Fragment] | None,
    with_parameters: bool,
) -> IndexBuild:
    message = json[1].type_name
    build = plan_json(snapshot, path, like.name, JsonChoices(json[0], message, {}), fragments)
    if with_parameters:
        parameters = scalar_kind(message).parameters.of_files(build.files(like))
        build = dataclasses.replace(build, parameters=dict(parameters))
    return build.inferred() if any(build.groups) else build


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


def new_name(
    schema: Schema, leaf: Field, message: str, indices: Iterable[Index], ending: str = ""
) -> str:
    """Return the name of an index without one: that of the same kind on the same column is replaced."""
    taken = {index.name: (index.field_ids, index.type_name) for index in indices}
    start = _name_of(schema, leaf) + ending
    name, number = f"{start}_idx", 1
    while taken.get(name, ((leaf.id,), message)) != ((leaf.id,), message):
        number += 1
        name = f"{start}_idx_{number}"
    return name


def _name_of(schema: Schema, leaf: Field) -> str:
    """Return the names along a field's path, as pylance begins the name of an index with them.

    They are joined by dots; if one of them has a dot, those that are no identifiers are quoted.  Source: ledger F-760.
    """
    names = next(names for names, each in walk_names(schema) if each.id == leaf.id)
    if not any("." in name for name in names):
        return ".".join(names)
    return ".".join(name if name.replace("_", "a").isalnum() else quoted(name) for name in names)
