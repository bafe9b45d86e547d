"""Embedding on the executors: each task reads a fragment, calls the model, and writes a file; one commit.

What is added is a backfill like any other (`pennon.spark.changes.backfill`).  A refresh reads sources and fingerprints of all
fragments, and writes those that have stale rows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pennon.io import open_store
from pennon.ops.columns.finished import Notes
from pennon.ops.embed.embed import result_names
from pennon.ops.embed.refresh import RefreshRequest, commit_refreshed, plan_refresh
from pennon.ops.embed.refresh_task import RefreshedFragment, RefreshTask
from pennon.spark.conflicts import with_conflict_retries
from pennon.spark.history import HistoryEntry
from pennon.spark.run_tasks import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pennon.scan.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The result of a refresh: the version, rows that were embedded, and fragments that were written."""

    version: int
    rows: int
    fragments: int


def refresh_embeddings(
    spark: SparkSession,
    snapshot: Snapshot,
    request: RefreshRequest,
    checkpoint: str | None,
    storage_options: Mapping[str, str],
) -> Refreshed:
    """Embed the stale rows of a column, as one version; ``checkpoint`` is a folder that all executors see.

    Raises what `pennon.ops.embed.refresh.plan_refresh` raises, and RetryableConflict if others changed the table again and
    again.
    """
    started = time.monotonic()
    store = None if checkpoint is None else open_store(checkpoint, dict(storage_options) or None)
    done: dict[str, RefreshedFragment] = {}

    def execute(now: Snapshot) -> Refreshed:
        task = plan_refresh(now, request)
        said = repr((task.rule, request.batch_rows))
        notes = Notes(store, task.columns.files, said)
        task = replace(task, notes=notes, written=notes.find(now))
        names = result_names(task.columns, said)
        rest = [number for number, name in enumerate(names) if name not in done]
        found = run_tasks(spark, _only(task, rest), len(rest))
        done.update({names[number]: each for number, each in zip(rest, found, strict=True)})
        results = [done[name] for name in names]
        written = sum(bool(each.rows) for each in results)
        entry = HistoryEntry(
            "REFRESH EMBEDDINGS",
            {"columns": ", ".join(task.columns.files.schema.names)},
            {
                "numUpdatedRows": sum(each.rows for each in results),
                "numAddedFiles": written,
                "executionTimeMs": round(1000 * (time.monotonic() - started)),
            },
        )
        manifest, rows = commit_refreshed(task, results, entry.properties())
        notes.forget(now.manifest.fragments)
        return Refreshed(manifest.version, rows, written)

    return with_conflict_retries(spark, execute, snapshot)


def _only(task: RefreshTask, numbers: list[int]) -> RefreshTask:
    """Return the task for some fragments of the version."""
    snapshot = task.columns.snapshot
    fragments = snapshot.manifest.fragments
    few = snapshot.at(replace(snapshot.manifest, fragments=tuple(fragments[n] for n in numbers)))
    return replace(
        task,
        columns=replace(task.columns, snapshot=few),
        change=replace(task.change, snapshot=few),
    )
