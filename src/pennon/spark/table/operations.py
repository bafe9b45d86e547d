"""Operations on whole tables by Spark: a plan on the driver, tasks on the executors, one commit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pennon.io import open_store
from pennon.io.store import Store
from pennon.ops.convert import commit_convert, plan_convert
from pennon.ops.versions.branches import clone_shallow
from pennon.ops.versions.deep_clone import commit_copied, plan_copy
from pennon.ops.versions.replace_by_clone import plan_replacing_copy, replace_by_clone
from pennon.scan.snapshot import Snapshot
from pennon.schema.version import FileVersion
from pennon.spark.history import HistoryEntry
from pennon.spark.run_tasks import Progress, run_tasks
from pennon.spark.table_place import place_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def clone(spark: SparkSession, source: Snapshot, target: Store, *, is_shallow: bool) -> None:
    """Make a version the first one of a table at another place; a deep clone's files are copied there.

    Raises AlreadyExistsError if there is a table.
    """
    if is_shallow:
        clone_shallow(source, None, target)
        return
    task = plan_copy(source, target)
    run_tasks(spark, task, task.count)
    commit_copied(source, target)


def clone_over(
    spark: SparkSession,
    source: Snapshot,
    target: Snapshot,
    *,
    is_shallow: bool,
    config: Mapping[str, str],
) -> None:
    """Make a version the newest one of another table; a deep clone's files are copied there.

    Raises what `pennon.ops.versions.replace_by_clone.replace_by_clone` raises.
    """
    planned_ns = time.time_ns()
    if not is_shallow:
        task = plan_replacing_copy(source, target)
        run_tasks(spark, task, task.count)
    parameters = {
        "source": source.store.uri,
        "sourceVersion": str(source.manifest.version),
        "isShallow": str(is_shallow).lower(),
    }
    replace_by_clone(
        source,
        target,
        is_shallow=is_shallow,
        config=config,
        properties=HistoryEntry("CLONE", parameters).properties(),
        planned_ns=planned_ns,
    )


def convert(
    spark: SparkSession,
    uri: str,
    to: str,
    *,
    storage_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> int:
    """Rewrite a table's data files in the file version ``to``, and return the version made.

    The rows and their order stay; deleted rows are gone, older versions are not.  Fails if anybody
    else commits meanwhile.  ``progress`` is told how many fragments are done, of how many.

    >>> pennon.spark.convert(spark, path, "2.2")
    2
    """
    uri, options = place_of(spark, uri, storage_options)
    store = open_store(uri, options or None)
    task = plan_convert(store, FileVersion.parse(to))
    fragments = run_tasks(spark, task, task.count, progress=progress)
    return commit_convert(task, fragments).version
