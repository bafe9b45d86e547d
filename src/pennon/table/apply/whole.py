"""Operations that make all of a table: overwrite, restore, clone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pennon.core.units import FieldId
from pennon.errors import ArgumentError, UnsupportedError
from pennon.schema.version import DEFAULT_VERSION, FileVersion
from pennon.table.apply.checks import check_one_version
from pennon.table.apply.context import ApplyContext
from pennon.table.apply.ids import with_fresh_ids, with_new_row_ids, without_row_ids
from pennon.table.apply.settings import with_new_bases
from pennon.table.blob_table import check_no_blob_table, without_blob_version
from pennon.table.flags import STABLE_ROW_IDS, check_writable
from pennon.table.fragment import BasePath, Fragment
from pennon.table.fragments import file_versions
from pennon.table.indices_wire import based, parse_indices, serialize_indices
from pennon.table.manifest import DataFormat, Manifest
from pennon.table.operations import Clone, Overwrite, Restore
from pennon.table.storage_version import storage_version


def overwrite(head: Manifest, operation: Overwrite, around: ApplyContext) -> Manifest:
    """Replace schema and fragments; the blank head of version 0 stands for no table."""
    if around.repaired is not None:
        return replace(around.repaired, fragments=around.completed(around.repaired))
    is_new = head.version == 0
    if operation.base_paths and not is_new:
        message = "base paths come with a new table, or are added to one; an overwrite keeps them"
        raise ArgumentError(message)
    stable = around.stable_row_ids if is_new else head.has_stable_row_ids
    if around.stable_row_ids and not stable:
        message = "stable row ids can be chosen for a new table only"
        raise UnsupportedError(message)
    fragments = _with_ids(head, operation.fragments, keeps_rows=around.keeps_rows)
    new, next_row_id = with_new_row_ids(fragments, head, stable=stable)
    return replace(
        head,
        schema=operation.schema,
        fields_wire=operation.fields_wire,
        fragments=new,
        data_format=DataFormat("lance", str(_chosen_version(head, operation, around))),
        next_row_id=next_row_id,
        reader_flags=STABLE_ROW_IDS if stable else 0,
        dictionaries=around.dictionaries,
        config={**head.config, **operation.config_upserts},
        indices=b"",
        base_paths=with_new_bases(head.base_paths, operation.base_paths),
        unknown=without_blob_version(head.unknown),
    )


def restore(head: Manifest, operation: Restore, around: ApplyContext) -> Manifest:
    """Make an old version the newest again; ids that were given out since stay taken."""
    past = around.past
    if past is None or past.version != operation.version:
        message = f"version {operation.version} is needed to restore it"
        raise ArgumentError(message)
    check_writable(past)
    check_no_blob_table(past)
    if past.has_stable_row_ids != head.has_stable_row_ids:
        message = f"version {past.version} has no stable row ids, as the table has them now"
        if past.has_stable_row_ids:
            message = f"version {past.version} has stable row ids, which the table has given up"
        raise UnsupportedError(message)
    last = max(head.last_fragment_id, past.last_fragment_id)
    return replace(
        past,
        fragments=around.completed(past),
        max_fragment_id=last if last >= 0 else None,
        next_row_id=max(head.next_row_id, past.next_row_id),
        branch=head.branch,
        dictionaries=past.dictionaries if past.fragments else _kept_dictionaries(head, past),
    )


def _kept_dictionaries(head: Manifest, past: Manifest) -> Mapping[FieldId, pa.Array[Any]]:
    """Return the dictionaries of a version without rows, and those that its columns got since."""
    return {**head.dictionaries, **past.dictionaries}


def clone(operation: Clone, around: ApplyContext) -> Manifest:
    """Return the version of another table as one of this one.

    The files of a shallow clone stay where they are; those of a deep one have been copied, and
    ``around.past`` names the copies.
    """
    past = around.past
    if past is None or past.version != operation.ref_version:
        message = f"version {operation.ref_version} of {operation.ref_path!r} is needed to clone it"
        raise ArgumentError(message)
    check_writable(past)
    check_no_blob_table(past)
    if not operation.is_shallow:
        return replace(past, fragments=around.completed(past), branch=None, tag="")
    number = max((base.id for base in past.base_paths), default=-1) + 1
    origin = BasePath(number, operation.ref_path, operation.ref_name, is_dataset_root=True)
    return replace(
        past,
        fragments=tuple(_based(fragment, number) for fragment in around.completed(past)),
        base_paths=(*past.base_paths, origin),
        branch=operation.branch_name,
        tag="",
        indices=serialize_indices(based(index, number) for index in parse_indices(past.indices)),
    )


def _based(fragment: Fragment, number: int) -> Fragment:
    """Say of each file that lies in the other table that it does."""
    files = tuple(
        replace(file, base_id=number) if file.base_id is None else file for file in fragment.files
    )
    deletion = fragment.deletion_file
    if deletion is not None and deletion.base_id is None:
        deletion = replace(deletion, base_id=number)
    return replace(fragment, files=files, deletion_file=deletion)


def _with_ids(
    head: Manifest, fragments: tuple[Fragment, ...], *, keeps_rows: bool
) -> tuple[Fragment, ...]:
    """Give fresh ids, except to fragments of the head that stay, or whose deletion file names them.

    Fresh fragments lose row ids that they bring from elsewhere, unless these are those of the rows.
    """
    known = {(f.id, f.files) for f in head.fragments}
    stays = [(f.id, f.files) in known or f.deletion_file is not None for f in fragments]
    kept = [f.id for f, keep in zip(fragments, stays, strict=True) if keep]
    if len(set(kept)) != len(kept):
        message = f"two fragments have one id: {sorted(kept)[:20]}"
        raise ArgumentError(message)
    others = tuple(f for f, keep in zip(fragments, stays, strict=True) if not keep)
    others = others if keeps_rows else without_row_ids(others)
    fresh = iter(with_fresh_ids(others, max([head.last_fragment_id, *kept])))
    return tuple(f if keep else next(fresh) for f, keep in zip(fragments, stays, strict=True))


def _chosen_version(head: Manifest, operation: Overwrite, around: ApplyContext) -> FileVersion:
    found = file_versions(operation.fragments)
    if found:
        version = around.file_version or max(found)
        check_one_version(operation.fragments, version)
        return version
    if around.file_version is not None:
        return around.file_version
    return DEFAULT_VERSION if head.version == 0 else storage_version(head)
