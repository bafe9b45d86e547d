"""Deleting rows.

Nothing but deletion files is written: each names the rows of one fragment that are dead.  Fragments
without a living row leave the table.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow.compute as pc

from pennon.ops.commit import commit_on
from pennon.ops.rows.changed_wire import parse_removals, serialize_removals
from pennon.ops.rows.deletion_vectors import Removal, Removals, remove_each
from pennon.ops.rows.find_rows import (
    GROUP_ROWS,
    bind_search,
    find_rows,
    is_always_true,
    plan_groups,
)
from pennon.ops.run_tasks import run_tasks
from pennon.scan.plan.query import BoundQuery
from pennon.scan.predicate import Predicate
from pennon.scan.read.tasks import live_row_counts
from pennon.scan.snapshot import Snapshot
from pennon.table.commit.options import LONG_AGO
from pennon.table.manifest import Manifest
from pennon.table.operations import Delete


@dataclass(frozen=True, slots=True)
class DeleteTask:
    """The rows to find and delete, fragments in groups; it pickles.

    ``planned_ns`` is when it was made, in nanoseconds since 1970.
    """

    to_bytes = staticmethod(serialize_removals)
    from_bytes = staticmethod(parse_removals)

    search: BoundQuery
    groups: tuple[range, ...]
    planned_ns: int = field(default_factory=time.time_ns)

    @property
    def snapshot(self) -> Snapshot:
        """Return the version that rows are deleted of."""
        return self.search.snapshot

    @property
    def count(self) -> int:
        """Return how many groups there are."""
        return len(self.groups)

    def run(self, number: int) -> list[Removal]:
        """Find the rows of a group of fragments, and write their deletion files."""
        fragments = [self.snapshot.manifest.fragments[n] for n in self.groups[number]]
        return list(remove_each(self.snapshot, find_rows(self.search, fragments)))


def plan_delete(
    snapshot: Snapshot, predicate: str | pc.Expression | Predicate, group_rows: int = GROUP_ROWS
) -> DeleteTask:
    """Plan to delete the rows for which a condition is true; raises ArgumentError if it is none.

    Where it is true of all rows there is nothing to do: `commit_delete` sees it.
    """
    search = bind_search(snapshot, predicate)
    return DeleteTask(search, () if is_always_true(search) else plan_groups(snapshot, group_rows))


def delete_operation(task: DeleteTask, removals: Iterable[Removal]) -> tuple[Delete, int]:
    """Return what the commit of a delete will be, given what its tasks found, and how many rows go."""
    snapshot, condition = task.snapshot, task.search.condition
    text = "true" if condition is None else str(condition.predicate)
    if is_always_true(task.search):
        ids = tuple(fragment.id for fragment in snapshot.manifest.fragments)
        return Delete((), ids, text), sum(live_row_counts(snapshot))
    found = Removals.of(removals)
    return Delete(found.updated, found.gone, text), found.rows


def commit_delete(task: DeleteTask, removals: Iterable[Iterable[Removal]]) -> tuple[Manifest, int]:
    """Commit what all tasks found, and return the version made and how many rows went.

    A version is made even where no row was found.  Raises what `pennon.table.commit.loop.commit` raises.
    """
    operation, rows = delete_operation(task, (each for several in removals for each in several))
    return commit_on(task.snapshot, operation, planned_ns=task.planned_ns), rows


def truncate(snapshot: Snapshot) -> Manifest:
    """Delete all rows, and return the version made."""
    ids = tuple(fragment.id for fragment in snapshot.manifest.fragments)
    return commit_on(snapshot, Delete((), ids, "true"), planned_ns=LONG_AGO)


def delete(snapshot: Snapshot, predicate: str | pc.Expression) -> tuple[Manifest, int]:
    """Delete rows on this machine's threads, and commit; see `commit_delete`."""
    task = plan_delete(snapshot, predicate)
    return commit_delete(task, run_tasks(task, task.count, what="Deleting rows"))
