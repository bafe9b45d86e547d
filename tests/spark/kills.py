"""A merge of which an executor is killed: ``python -m tests.spark.kills FOLDER``.

The program prints one line of JSON with what it saw; `test_kills` judges it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import pennon
from pennon.ops.rows.change_rows import Change, Changed, ChangeTask
from pennon.spark.merge_plan import Merge, MergeClause, When, plan_merge
from pennon.spark.row_changes import commit_changes, rows_of_clauses, run_changes
from tests.spark.modes import CONF

ROWS = 2_000
FRAGMENTS = 20
EXTRA = {"spark.sql.shuffle.partitions": "8"}


@dataclass(frozen=True, slots=True)
class SlowChangeTask(ChangeTask):
    """Changes rows, and takes a second before it says so."""

    def run(self, batches: Iterable[pa.RecordBatch]) -> Changed:
        changed = ChangeTask.run(self, batches)
        time.sleep(1.0)
        return changed


def start() -> SparkSession:
    """Start two executors of one core each."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for key, value in {**CONF, **EXTRA, "spark.executorEnv.PYTHONPATH": _python_path()}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _python_path() -> str:
    root = str(Path(__file__).parents[2])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


def executors() -> list[int]:
    """Return the processes of the executors that this one started."""
    parents = dict(_parents())
    return [pid for pid in parents if _is_ours(pid, parents) and _is_executor(pid)]


def _parents() -> Iterator[tuple[int, int]]:
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                stat = (path / "stat").read_text()
            except OSError:
                continue
            yield int(path.name), int(stat.rpartition(")")[2].split()[1])


def _is_ours(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()


def _is_executor(pid: int) -> bool:
    try:
        return b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def kill_one(folder: Path, killed: list[int]) -> None:
    """Kill an executor as soon as a deletion file is there."""
    while not any(folder.glob("_deletions/*")):
        time.sleep(0.02)
    killed.append(min(executors()))
    os.kill(killed[0], signal.SIGKILL)


def main() -> None:
    """Merge with all that happening."""
    folder = Path(sys.argv[1])
    uri = str(folder / "table.lance")
    spark = start()
    ids = pa.array(range(ROWS), pa.int64())
    pennon.write_dataset(pa.table({"id": ids, "v": ids}), uri, max_rows_per_file=ROWS // FRAGMENTS)
    source = spark.range(0, ROWS, 1, 4).selectExpr("id * 2 AS k", "-id AS w")
    clauses = (
        MergeClause(When.MATCHED, Change.UPDATE, None, {"v": "w"}),
        MergeClause(When.NOT_MATCHED, Change.INSERT, None, {"id": "k", "v": "w"}),
        MergeClause(When.NOT_MATCHED_BY_SOURCE, Change.DELETE, "id % 5 = 0"),
    )
    plan = plan_merge(pennon.dataset(uri).snapshot, Merge(source, "id = k", None, clauses))
    task = SlowChangeTask(plan.task.snapshot, plan.task.clauses, plan.task.write)
    killed: list[int] = []
    killer = threading.Thread(target=kill_one, args=(Path(uri), killed))
    killer.start()
    changed = run_changes(task, plan.rows)
    killer.join()
    version = pennon.dataset(uri).version
    commit_changes(task, changed, {}, planned_ns=plan.planned_ns, adds_keys=True)
    named = sum(len(new.files) for each in changed for new in each.new)
    written = len(list(Path(uri, "data").iterdir())) - FRAGMENTS
    told = {
        "killed": len(killed),
        "version_before": version,
        "counts": rows_of_clauses(changed, len(clauses)),
        "orphans": written - named,
    }
    print(json.dumps(told), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
