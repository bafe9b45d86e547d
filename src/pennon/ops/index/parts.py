"""An index whose parts are made in one folder, by as many processes as like, and merged there; then it is committed.

That is how pylance's users make full-text indices on many machines, and how they made BTREEs until release 14: `create_scalar_index` with ``fragment_ids``
and the same ``index_uuid`` makes parts, `merge_index_metadata` merges them, and the caller commits a `CreateIndex`.
`create_index_uncommitted` does the same for every kind, without a folder that is shared.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from pennon.errors import ArgumentError, NotFoundError, UnsupportedError
from pennon.index.kinds import kind_called
from pennon.index.new_files import OldIndex
from pennon.index.row_map import RowMap
from pennon.index.row_set import ALL
from pennon.index.text.parameters import METADATA
from pennon.index.text.parts import STAGING, settings_of_parts
from pennon.ops.index.build import Builder, files_in, new_folder
from pennon.ops.index.builders import THREADS
from pennon.ops.index.create import folder_name, in_folder, plan_index
from pennon.scan.read.tasks import plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.project import walk_paths
from pennon.table.fragment import Fragment

_IN_PARTS = frozenset({"INVERTED", "FTS"})
_BTREE = "BTREE"
_PART = re.compile(r"([0-9]{1,9})-[0-9a-f]{32}")
"""The folder of a part of a BTREE: the field's id, and a name of its own."""
_MERGED = frozenset({"BTREE", "INVERTED", "IVF_FLAT", "IVF_PQ", "IVF_SQ", "VECTOR"})
"""The kinds that pylance merged once; now just one."""


def build_parts(
    snapshot: Snapshot,
    column: str,
    kind: str,
    name: str | None,
    parameters: Mapping[str, Any],
    fragments: Sequence[Fragment],
    index_uuid: str | None,
    builder: Builder = THREADS,
) -> None:
    """Build parts of a full-text index, or of a BTREE, for some fragments; merged and committed, they become visible.

    Raises ArgumentError for other kinds, and what `pennon.ops.index.build.IndexBuild.plan` raises.
    """
    if kind.upper() not in {*_IN_PARTS, _BTREE}:
        message = (
            f"{kind.upper()} distributed indexing uses create_index_uncommitted(..., "
            f'index_type="{kind.upper()}", fragment_ids=...)'
        )
        raise ArgumentError(message)
    if not fragments:
        message = "fragment_ids names no fragment, and a part is of one at least"
        raise ArgumentError(message)
    build = plan_index(snapshot, column, kind, name, parameters, fragments)
    folder = str(uuid.uuid4()) if index_uuid is None else index_uuid
    build = in_folder(build, folder)
    if kind.upper() == _BTREE:
        has_ids = snapshot.manifest.has_stable_row_ids
        for group in build.groups:
            name = f"{build.uuid}/{STAGING}/{build.field_id}-{uuid.uuid4().hex}"
            part = replace(build, groups=(group,), uuid=name)
            # Callers commit an entry of version 0, which means stable row ids where the table has them.
            values = part.read(plan_tasks(snapshot, group), by_row_ids=has_ids)
            part.kind.build(part.values_of(values), part.type, part.new_files())
        return
    builder.segments(replace(build, is_part=True))


def merge_parts(snapshot: Snapshot, index_uuid: str, kind: str) -> None:
    """Merge the parts of an index in its folder, and delete them; nothing is committed.

    Nothing happens where they were merged.  Raises ArgumentError for other kinds, for parts that were made
    with different settings, and where there are parts beside the index that they would become.
    """
    _check_kind(kind)
    folder = f"_indices/{folder_name(index_uuid)}"
    paths = [path for path, _ in snapshot.store.list_names(folder)]
    if kind.upper() == _BTREE:
        _merge_btree(snapshot, folder, paths)
        return
    staged = [path for path in paths if PurePosixPath(path).parent.name == STAGING]
    settings = settings_of_parts(staged)
    is_merged = f"{folder}/{METADATA}" in paths
    if is_merged and settings:
        message = (
            f"{folder} has an index, and parts beside it, in {STAGING}: commit the index as it is, or make all "
            "parts anew with another index_uuid"
        )
        raise ArgumentError(message)
    if is_merged:
        return
    if not settings:
        message = f"there are no parts of an index in {folder}/{STAGING}"
        raise NotFoundError(message)
    _merge(snapshot, folder, settings)
    for path in staged:
        snapshot.store.delete(path)


def _merge(snapshot: Snapshot, folder: str, settings: Sequence[str]) -> None:
    from pennon.index.text import merge  # noqa: PLC0415 - saves text indices: few tables have any

    new = new_folder(snapshot, PurePosixPath(folder).name, {})
    merge.merge_parts(files_in(snapshot, f"{folder}/{STAGING}"), settings, new)


def _merge_btree(snapshot: Snapshot, folder: str, paths: Sequence[str]) -> None:
    """Merge the parts of a BTREE, each in a folder of its own, and delete them; nothing happens where they were merged."""
    folders = dict.fromkeys(PurePosixPath(path).parent for path in paths)
    staging = PurePosixPath(folder, STAGING)
    staged = [part for part in folders if part.parent == staging and _PART.fullmatch(part.name)]
    if not staged:
        if any(str(PurePosixPath(path).parent) == folder for path in paths):
            return
        message = f"there are no parts of an index in {folder}/{STAGING}"
        raise NotFoundError(message)
    fields = {int(part.name.partition("-")[0]) for part in staged}
    columns = [path for path, each in walk_paths(snapshot.manifest.schema) if each.id in fields]
    if len(fields) != 1 or not columns:
        message = f"{folder}/{STAGING} has parts of indices of the fields {sorted(fields)}, and one column is indexed"
        raise ArgumentError(message)
    files = [files_in(snapshot, str(part)) for part in staged]
    parameters = kind_called(_BTREE).parameters.of_files(files[0])
    build = plan_index(snapshot, columns[0], _BTREE, None, parameters)
    new = new_folder(snapshot, PurePosixPath(folder).name, parameters)
    build.kind.merge([OldIndex(each, RowMap.keeping(ALL)) for each in files], build.type, new)
    for path in paths:
        if PurePosixPath(path).parent in staged:
            snapshot.store.delete(path)


def _check_kind(kind: str) -> None:
    name = kind.upper()
    if name not in _MERGED:
        message = f"Only {', '.join(sorted(_MERGED))} are supported, received {kind}"
        raise UnsupportedError(message)
    if name not in {"INVERTED", _BTREE}:
        message = (
            "Vector distributed indexing no longer supports merge_index_metadata; build segments with "
            "create_index_uncommitted, merge_existing_index_segments, and commit_existing_index_segments"
        )
        raise ArgumentError(message)
