"""The indices of a version, each with its kind, and why some are not asked.

Releases up to 0.19 do not say of what kind an index is: its files and its column tell it.

Source: reference index-scalar, 1.2.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

import pyarrow as pa
from pyarrow import types as t

from pennon.core.units import FieldId
from pennon.errors import FormatError, NotFoundError, UnsupportedError
from pennon.index.kinds import kind_of, kind_of_any_version
from pennon.index.text.parameters import METADATA
from pennon.scan.plan.moved_rows import moved_rows
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.table.indices import SYSTEM, Index
from pennon.table.indices_wire import parse_indices
from pennon.table.json_index_wire import json_target

_BITMAP: Final = "bitmap_page_lookup.lance"
_KINDS: Final = {
    "page_lookup.lance": "BTree",
    _BITMAP: "Bitmap",
    "tokens.lance": "Inverted",
    METADATA: "Inverted",
}
"""A file that only indices of this kind have."""


def known_indices(snapshot: Snapshot) -> tuple[Index, ...]:
    """Return all indices, with details that say their kinds; the folders of those without are listed."""
    return tuple(_with_kind(snapshot, each) for each in parse_indices(snapshot.manifest.indices))


def _with_kind(snapshot: Snapshot, index: Index) -> Index:
    if index.details is not None or len(index.field_ids) != 1:
        return index
    names = {PurePosixPath(path).name for path, _ in snapshot.store.list_names(index.folder)}
    kind = next((kind for name, kind in _KINDS.items() if name in names), None)
    if kind is None:
        return index
    column = _type_of(snapshot, index.field_ids[0])
    is_list = column is not None and (t.is_list(column) or t.is_large_list(column))
    name = "LabelList" if kind == "Bitmap" and is_list else kind
    return replace(index, details=(f"/lance.table.{name}IndexDetails", b""))


def why_not_asked(snapshot: Snapshot, index: Index) -> str | None:
    """Return why no filter asks a segment of an index; None where some do.  Opens its files."""
    if index.name in SYSTEM:
        return None
    kind, (path, target) = kind_of(index), json_target(index)
    if path is not None and kind is not None and not kind.tells_type:
        return f"a {kind.name} on a path of JSON does not record the type of its values"
    if kind is None:
        newest = kind_of_any_version(index)
        name = target.type_name or "an unknown kind"
        if newest is None:
            return f"Pennon searches no index of {name}"
        return f"it is of version {index.index_version}; Pennon knows {newest.name} up to {newest.reads}"
    column = _type_of(snapshot, index.field_ids[0]) if len(index.field_ids) == 1 else None
    if column is None or index.fragment_ids is None:
        return "it does not say which column, or which fragments, it is of"
    try:
        moved_rows(snapshot)
        if kind.open is not None:
            kind.open(snapshot.index_files(index, snapshot.session.index_parts), column)
    except (FormatError, NotFoundError, UnsupportedError) as error:
        return str(error)
    return None


def _type_of(snapshot: Snapshot, field_id: FieldId) -> pa.DataType | None:
    fields = snapshot.manifest.schema.walk()
    return next((field_to_arrow(each).type for each in fields if each.id == field_id), None)
