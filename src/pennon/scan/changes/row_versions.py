"""Row changes between two versions of a table: which rows were inserted, updated, deleted.

Tables with stable row ids note of each row the version that made it and the version that last changed it::

    inserted    begin < created <= end
    updated     created <= begin < last updated <= end
    deleted     the row's id is in version begin, and not in version end

Inserted and updated rows are a query with a task for each fragment: it pickles, and any of its tasks may run by
itself.  Deleted rows are looked for only in fragments whose rows differ between the two versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.exact_batches import exact_batches
from pennon.errors import ArgumentError
from pennon.scan.plan.query import (
    BoundQuery,
    ScanOptions,
    batch_rows,
    bind_query,
    parse_predicate,
    plan_query,
)
from pennon.scan.projection import MetaColumn
from pennon.scan.run.filter import read_query, read_query_batches
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.row_ids import RowIds

ROW_ID: Final = MetaColumn.ROW_ID.value
CREATED: Final = MetaColumn.CREATED_AT.value
UPDATED: Final = MetaColumn.UPDATED_AT.value


@dataclass(frozen=True, slots=True)
class VersionRange:
    """The versions after ``begin``, up to and with ``end``."""

    begin: int
    end: int


def plan_inserted_rows(snapshot: Snapshot, versions: VersionRange) -> BoundQuery:
    """Return the query for the live rows that the versions made, with their ids and versions."""
    return _plan(snapshot, f"{CREATED} > {versions.begin} AND {CREATED} <= {versions.end}")


def plan_updated_rows(snapshot: Snapshot, versions: VersionRange) -> BoundQuery:
    """Return the query for the live rows made before the versions and changed by them, as they are now."""
    begin, end = versions.begin, versions.end
    return _plan(snapshot, f"{CREATED} <= {begin} AND {UPDATED} > {begin} AND {UPDATED} <= {end}")


def _plan(snapshot: Snapshot, condition: str) -> BoundQuery:
    columns = (*snapshot.manifest.schema.names, ROW_ID, CREATED, UPDATED)
    options = ScanOptions(columns, parse_predicate(snapshot, condition))
    return plan_query(bind_query(snapshot, options))


def read_changed_rows(query: BoundQuery) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a planned query, in batches of their own memory."""
    return exact_batches(read_query_batches(query, batch_rows(query, ScanOptions())))


def deleted_row_ids(before: Snapshot, after: Snapshot) -> RowIds:
    """Return the ids, ascending, of rows that live in one version and not in a later one.

    Raises ArgumentError for a version without stable row ids.
    """
    for each in (before, after):
        if not each.manifest.has_stable_row_ids:
            version = each.manifest.version
            message = f"deleted row ids need stable row ids, which version {version} does not have"
            raise ArgumentError(message)
    gone = _row_ids(before, changed_fragments(before.manifest, after.manifest))
    there = _row_ids(after, changed_fragments(after.manifest, before.manifest))
    return np.setdiff1d(gone, there, assume_unique=True)


def changed_fragments(manifest: Manifest, other: Manifest) -> tuple[Fragment, ...]:
    """Return the fragments of a version whose live rows another version does not have in the same place."""
    same = {_rows_of(each) for each in other.fragments}
    return tuple(each for each in manifest.fragments if _rows_of(each) not in same)


def _rows_of(fragment: Fragment) -> tuple[object, ...]:
    """Return what tells the live rows of a fragment: their ids, and which of them are deleted."""
    return fragment.id, fragment.physical_rows, fragment.row_ids, fragment.deletion_file


def _row_ids(snapshot: Snapshot, fragments: tuple[Fragment, ...]) -> RowIds:
    query = plan_query(bind_query(snapshot, ScanOptions((ROW_ID,))), fragments)
    ids: RowIds = read_query(query).column(0).to_numpy()
    return ids
