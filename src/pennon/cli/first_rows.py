"""The first rows of a table, as `LanceDataset.head` reads them, but without its bases: those import pandas."""

from __future__ import annotations

import pyarrow as pa

from pennon.io.store import Store
from pennon.scan.projection import plan_scan_projection
from pennon.scan.read.execute import Scan, read_table
from pennon.scan.read.tasks import plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest


def first_rows(store: Store, version: int | None, columns: list[str] | None, rows: int) -> pa.Table:
    """Return the first rows of a version, the newest by default; of all columns, if none are named."""
    snapshot = Snapshot(store, read_manifest(store, version))
    projection = plan_scan_projection(snapshot.shown_schema, columns)
    return read_table(Scan(snapshot, projection, tuple(plan_tasks(snapshot, limit=rows))))
