"""Updating rows: those that a condition finds are deleted, and written anew with other values.

::

    find     fragments in groups   the condition's columns   ->  deletion files, offsets
    move     rows in shares        the rows that were found  ->  new fragments
    commit   one version

So it costs what the rows found cost, however large the fragments are that they lie in.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow.compute as pc

from pennon.ops.commit import commit_on
from pennon.ops.rows.assignments import Assignments
from pennon.ops.rows.changed_wire import Changed, parse_changed, serialize_changed
from pennon.ops.rows.deletion_vectors import Removal, Removals, remove_each
from pennon.ops.rows.find_rows import (
    GROUP_ROWS,
    Rows,
    bind_all_rows,
    bind_search,
    find_rows,
    plan_groups,
)
from pennon.ops.rows.rewrite_rows import Moved, MoveTask, plan_move
from pennon.ops.run_tasks import run_tasks
from pennon.scan.plan.query import BoundQuery
from pennon.scan.predicate import Predicate
from pennon.scan.snapshot import Snapshot
from pennon.schema.version import FileVersion
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import Update, UpdateMode


@dataclass(frozen=True, slots=True, eq=False)
class UpdatedRows:
    """Rows of a fragment that will be updated, and the fragment without them."""

    rows: Rows
    removal: Removal


@dataclass(frozen=True, slots=True)
class UpdateTask:
    """The rows to find, fragments in groups; it pickles.

    ``planned_ns`` is when it was made, in nanoseconds since 1970.
    """

    search: BoundQuery
    assignments: Assignments
    groups: tuple[range, ...]
    version: FileVersion | None = None
    planned_ns: int = field(default_factory=time.time_ns)

    @property
    def snapshot(self) -> Snapshot:
        """Return the version whose rows are updated."""
        return self.search.snapshot

    @property
    def count(self) -> int:
        """Return how many groups there are."""
        return len(self.groups)

    def run(self, number: int) -> list[UpdatedRows]:
        """Find the rows of a group of fragments, and write their deletion files."""
        fragments = [self.snapshot.manifest.fragments[n] for n in self.groups[number]]
        found = list(find_rows(self.search, fragments))
        return list(map(UpdatedRows, found, remove_each(self.snapshot, found)))

    def plan_move(self, found: Iterable[UpdatedRows]) -> MoveTask:
        """Plan to write the rows that all groups found."""
        moved = [Moved(each.rows) for each in found]
        return plan_move(self.snapshot, self.assignments, moved, self.version)


@dataclass(frozen=True, slots=True)
class UpdateGroupsTask:
    """Finds the rows of each group of fragments, and writes them anew in the same task; it pickles.

    No row offset leaves the task, and each group has files of its own.
    """

    to_bytes = staticmethod(serialize_changed)
    from_bytes = staticmethod(parse_changed)

    update: UpdateTask

    def run(self, number: int) -> Changed:
        """Update the rows of the group of that number."""
        found = self.update.run(number)
        move = self.update.plan_move(found)
        new = [fragment for share in range(move.count) for fragment in move.run(share)]
        return Changed(tuple(each.removal for each in found), tuple(new))


def plan_update(
    snapshot: Snapshot,
    updates: Mapping[str, str] | Assignments,
    where: str | pc.Expression | Predicate | None = None,
    version: str | None = None,
    group_rows: int = GROUP_ROWS,
) -> UpdateTask:
    """Plan to give columns of the rows for which ``where`` is true (default: all) other values.

    ``version`` is that of the new data files, by default the table's.

    Raises ArgumentError if the table does not have what is named, or a type does not fit.
    """
    assignments = updates
    if not isinstance(assignments, Assignments):
        assignments = Assignments.parse(snapshot.manifest.schema, assignments)
    search = bind_all_rows(snapshot) if where is None else bind_search(snapshot, where)
    wanted = None if version is None else FileVersion.parse(version)
    task = UpdateTask(search, assignments, plan_groups(snapshot, group_rows), wanted)
    task.plan_move([])  # a version that cannot be written is refused before any work
    return task


def update_operation(
    task: UpdateTask, removals: Iterable[Removal], fragments: Iterable[Fragment]
) -> tuple[Update, int]:
    """Return what the commit of an update will be, and how many rows change.

    ``removals`` and ``fragments`` are what its tasks took away, and wrote.
    """
    found = Removals.of(removals)
    operation = Update(
        found.gone,
        found.updated,
        tuple(fragments),
        fields_preserved=task.assignments.field_ids(),
        mode=UpdateMode.REWRITE_ROWS,
    )
    return operation, found.rows


def commit_update(
    task: UpdateTask, found: Iterable[UpdatedRows], fragments: Iterable[Iterable[Fragment]]
) -> tuple[Manifest, int]:
    """Commit what the tasks found and wrote; return the version made and how many rows changed.

    A version is made even where no row was found.  Raises what `pennon.table.commit.loop.commit` raises.
    """
    new = (fragment for several in fragments for fragment in several)
    operation, rows = update_operation(task, (each.removal for each in found), new)
    return commit_on(task.snapshot, operation, planned_ns=task.planned_ns), rows


def update(
    snapshot: Snapshot,
    updates: Mapping[str, str],
    where: str | pc.Expression | None = None,
    version: str | None = None,
) -> tuple[Manifest, int]:
    """Update rows on this machine's threads, and commit; see `plan_update`, `commit_update`."""
    task = plan_update(snapshot, updates, where, version)
    groups = run_tasks(task, task.count, what="Finding rows")
    found = [each for several in groups for each in several]
    move = task.plan_move(found)
    return commit_update(task, found, run_tasks(move, move.count, what="Updating rows"))
