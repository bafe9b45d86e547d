"""Z-order and sort without Spark: its tasks, one after another in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pennon.ops.cluster.plan import plan_clusterings
from pennon.ops.compact.options import CompactOptions
from pennon.ops.compact.task import Rewritten, commit_compact
from pennon.scan.read.tasks import plan_tasks
from pennon.table.fragment import Fragment


def cluster(dataset: Any, columns: Sequence[str], *, curved: bool, **options: Any) -> None:
    """Put the rows of a table in order, and commit that."""
    snapshot = dataset.snapshot
    version = snapshot.manifest.version
    done = []
    for plan in plan_clusterings(snapshot, columns, CompactOptions(**options), curved=curved):
        shares = [(task,) for task in plan_tasks(snapshot, plan.fragments)]
        numbers = range(len(shares))
        if not shares:
            done.append(Rewritten(version, plan.fragments, (), keeps_order=False))
            continue
        split = plan.split(shares, map(plan.sample(shares).run, numbers))
        blocks = sorted((b for n in numbers for b in split.run(n)), key=lambda block: block[0])
        new: list[Fragment] = []
        for file in range(plan.files):
            mine = [block for block in blocks if block[0] // plan.slices_per_file == file]
            new += plan.gather(split).run(mine).fragments
        plan.check(new)
        done.append(Rewritten(version, plan.fragments, tuple(new), keeps_order=False))
    if done:
        commit_compact(snapshot.store, done)
