"""Compaction of a table that grows by small batches: `FAN` fragments of one size become one of the next size.

So each row is written anew once for each size, and not once for each batch::

    batches      1 … 15     16            …   256
    compacts     nothing    16 x 1 batch  …   16 x 16 batches
"""

from __future__ import annotations

from typing import Final

from pennon.io.store import Store
from pennon.ops.compact.options import CompactOptions
from pennon.ops.compact.task import commit_compact, plan_compact
from pennon.ops.run_tasks import run_tasks
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest

FAN: Final = 16


def compact_level(store: Store, number: int, rows: int) -> int | None:
    """Compact what batches of about ``rows`` rows left, if it is time behind batch ``number``, which counts from 0.

    Returns the version made, None if there is nothing to do.  Raises what `commit_compact` raises.
    """
    target = _target_rows(number + 1, rows)
    if target is None:
        return None
    snapshot = Snapshot(store, read_manifest(store))
    task = plan_compact(snapshot, CompactOptions(target_rows_per_fragment=target))
    if not task.count:
        return None
    rewritten = list(run_tasks(task, task.count, what="compacting"))
    return commit_compact(store, rewritten).version


def _target_rows(batches: int, rows: int) -> int | None:
    """Return how many rows fragments should have that are made now; None if none are."""
    most = CompactOptions().target_rows_per_fragment
    target = rows
    while batches % FAN == 0 and target < most:
        batches //= FAN
        target *= FAN
    return None if target == rows or not rows else min(target, most)
