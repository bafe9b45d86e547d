"""When rows were created and last updated, in tables with stable row ids.

Deleting a row changes neither, and moving it, by compaction, does not either.

Source: ledger F-362 (measured on pylance 14.0.2).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pennon.errors import ArgumentError
from pennon.table.apply.context import ApplyContext
from pennon.table.fragment import Fragment
from pennon.table.roaring import parse_roaring
from pennon.table.row_ids import RowIds
from pennon.table.row_ids.decode_wire import decode_row_versions
from pennon.table.row_ids.encode_wire import encode_one_version, encode_row_versions


def created_versions(fragment: Fragment, around: ApplyContext) -> RowIds:
    """Return the version that each row of a fragment was created in; 1 if it is not stored."""
    rows = fragment.physical_rows or 0
    if fragment.created_at_versions is None:
        return np.ones(rows, np.uint64)
    return decode_row_versions(around.read_sequence(fragment.created_at_versions), rows)


def updated_versions(fragment: Fragment, around: ApplyContext) -> RowIds:
    """Return the version that each row was last updated in; that of its creation by default."""
    if fragment.last_updated_at_versions is None:
        return created_versions(fragment, around)
    data = around.read_sequence(fragment.last_updated_at_versions)
    return decode_row_versions(data, fragment.physical_rows or 0)


def all_updated(fragment: Fragment, version: int) -> Fragment:
    """Return a fragment with all rows updated in a version."""
    rows = fragment.physical_rows
    if fragment.row_ids is None or not rows:
        return fragment
    return replace(fragment, last_updated_at_versions=encode_one_version(version, rows))


def some_updated(
    fragment: Fragment, bitmap: bytes | None, version: int, around: ApplyContext
) -> Fragment:
    """Return a fragment with the rows of a roaring bitmap updated in a version."""
    if bitmap is None or fragment.row_ids is None:
        return fragment
    versions = updated_versions(fragment, around)
    offsets = parse_roaring(bitmap, len(versions))
    if len(offsets) and int(offsets[-1]) >= len(versions):
        message = f"fragment {fragment.id} of {len(versions)} rows has no row {offsets[-1]}"
        raise ArgumentError(message)
    versions = versions.copy()
    versions[offsets.astype(np.int64)] = version
    return replace(fragment, last_updated_at_versions=encode_row_versions(versions))
