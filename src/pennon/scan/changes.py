"""Row changes between two versions of a table: which rows were inserted, updated, deleted.

Tables with stable row ids note of each row the version that made it and the version that last changed it::

    inserted    begin < created <= end
    updated     created <= begin < last updated <= end
    deleted     the row's id is in version begin, and not in version end

Inserted and updated rows are a query with a task for each fragment: it pickles, and any of its tasks may run by
itself.
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
    return np.setdiff1d(_row_ids(before), _row_ids(after), assume_unique=True)


def _row_ids(snapshot: Snapshot) -> RowIds:
    query = plan_query(bind_query(snapshot, ScanOptions((ROW_ID,))))
    ids: RowIds = read_query(query).column(0).to_numpy()
    return ids
