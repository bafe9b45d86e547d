"""Merging data into a table by a key: rows that match are updated or deleted, others are added.

::

    match    fragments in groups    key columns, conditions    ->  what becomes of each row
    move     rows in shares         rows of the data           ->  new fragments, and deletion files beside them
    commit   one version

Where the data has but some of the columns, or of a struct's fields, updated rows keep the others: they are read and written
again with the row, or, if asked, the columns of the data are written anew beside the others
(`pennon.ops.merge_insert.rewrite_columns`).

Two merges that add the same new key must not both succeed.  So a commit that adds rows is refused
if anybody else added or changed rows since, and the merge is done again on the newest version.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.errors import ArgumentError
from pennon.ops.base_paths import Targets, task_into_bases
from pennon.ops.commit import commit_on
from pennon.ops.merge_insert.clauses import Clauses, Matched, WriteMode
from pennon.ops.merge_insert.keys import ABSENT
from pennon.ops.merge_insert.match import (
    Conditions,
    FragmentMatches,
    GroupMatches,
    MatchTask,
    plan_among,
)
from pennon.ops.merge_insert.rewrite_columns import PatchTask
from pennon.ops.merge_insert.source import Source
from pennon.ops.rows.deletion_vectors import Removal, Removals, remove_each
from pennon.ops.rows.find_rows import Rows, plan_groups
from pennon.ops.rows.rewrite_rows import Moved, MoveTask, plan_move
from pennon.ops.run_tasks import run_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.version import FileVersion
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import Update, UpdateMode
from pennon.table.roaring import serialize_roaring


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """The number of rows that a merge added, changed and removed, and of the files that it wrote."""

    inserted: int
    updated: int
    deleted: int
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge that is done but for its commit; ``planned_ns`` as in `MergePlan`."""

    snapshot: Snapshot
    operation: Update
    counts: MergeCounts
    planned_ns: int

    @property
    def adds_keys(self) -> bool:
        """Tell whether rows are added because the table has none with their keys."""
        return self.counts.inserted > 0


@dataclass(frozen=True, slots=True)
class MergePlan:
    """A merge: its matching task, from which what is to be written follows.

    ``planned_ns`` is when it was made, in nanoseconds since 1970.
    """

    task: MatchTask
    version: FileVersion | None = None
    targets: Targets | None = None
    """The base paths that new data files go to; None: the table's own folder."""
    planned_ns: int = field(default_factory=time.time_ns)

    def found(self, groups: Sequence[GroupMatches]) -> list[FragmentMatches]:
        """Return what all groups found, fragment by fragment."""
        return [each for group in groups for each in group.fragments]

    def plan_move(self, groups: Sequence[GroupMatches]) -> MoveTask:
        """Plan to write updated rows and new ones."""
        source = self.task.source
        found = [each for each in self.found(groups) if len(each.updated)]
        moved = [Moved(each.updated, each.source) for each in found]
        new = self.inserted(groups)
        if len(new):
            moved.append(Moved(None, new))
        snapshot = self.task.snapshot
        move = plan_move(snapshot, source, moved, self.version)
        if self.targets is None:
            return move
        placed = task_into_bases(move.write, snapshot.manifest.base_paths, self.targets)
        return replace(move, write=placed)

    def plan_write(self, groups: Sequence[GroupMatches]) -> WriteTask:
        """Plan to write those rows, and the deletion files that were not written when they were found."""
        going = [each.updated for each in self.found(groups)] if self.task.only_updates else []
        return WriteTask(self.plan_move(groups), tuple(going))

    def plan_patch(self, groups: Sequence[GroupMatches]) -> PatchTask:
        """Plan to write columns of fragments anew."""
        found = tuple(each for each in self.found(groups) if len(each.updated))
        return PatchTask(self.task.snapshot, self.task.source, found)

    def inserted(self, groups: Sequence[GroupMatches]) -> Int64Array:
        """Return the rows of the data that are new to the table: no row there has their key."""
        if not self.task.clauses.inserts:
            return np.empty(0, np.int64)
        keys = self.task.source.keys
        is_known = np.zeros(len(keys) + 1, np.bool_)  # the last one stands for rows without a key
        for group in groups:
            is_known[group.keys] = True
        is_known[ABSENT] = False
        return np.flatnonzero(~is_known[keys.numbers])


def plan_merge(
    snapshot: Snapshot,
    source: Source,
    clauses: Clauses,
    mode: WriteMode = WriteMode.AUTO,
    version: FileVersion | None = None,
    targets: Targets | None = None,
) -> MergePlan:
    """Plan a merge.

    Raises ArgumentError for clauses that change nothing, conditions that are none, a mode that cannot write what
    the clauses ask for, and base paths that the table does not have.
    """
    if clauses.changes_nothing:
        message = "this merge changes nothing; say what becomes of rows that match or are new"
        raise ArgumentError(message)
    in_place = mode is WriteMode.COLUMNS
    if in_place:
        _check_in_place(source, clauses)
    conditions = Conditions.of(clauses, snapshot.manifest.schema, source.table.schema)
    groups = plan_groups(snapshot)
    among = plan_among(snapshot, source, clauses)
    task = MatchTask(snapshot, source, clauses, conditions, groups, in_place, among)
    plan = MergePlan(task, version, targets)
    if not in_place:
        plan.plan_move([])  # a version that cannot be written is refused before any work
    return plan


def _check_in_place(source: Source, clauses: Clauses) -> None:
    """Raise ArgumentError unless columns of rows that are there are all that changes."""
    why = None
    if clauses.inserts:
        why = "rows that are new would be added"
    elif clauses.deletes or clauses.matched is not Matched.UPDATE:
        why = "it updates rows that match, and nothing else"
    elif source.is_whole:
        why = "the data has all columns of the table"
    elif source.partial:
        why = f"column {min(source.partial)!r} of the data lacks fields"
    elif set(source.table.column_names) <= set(source.on):
        why = "the data has no column besides the key"
    if why is not None:
        message = f"write_mode 'rewrite_columns' cannot do this merge: {why}; use 'auto'"
        raise ArgumentError(message)


def run_merge(plan: MergePlan) -> Merged:
    """Match and write on this machine's threads."""
    groups = run_tasks(plan.task, plan.task.count, what="Matching rows")
    if plan.task.in_place:
        patch = plan.plan_patch(groups)
        return patched(plan, groups, run_tasks(patch, patch.count, what="Writing columns"))
    write = plan.plan_write(groups)
    written = run_tasks(write, write.count, what="Writing rows")
    removals = [each.removal for each in plan.found(groups) if each.removal is not None]
    removals += [removal for _, several in written for removal in several]
    return moved(plan, groups, [new for several, _ in written for new in several], removals)


@dataclass(frozen=True, slots=True)
class WriteTask:
    """A task of a merge: it writes deletion files of removed rows, and rows; it pickles."""

    move: MoveTask
    going: tuple[Rows, ...]

    @property
    def count(self) -> int:
        """Return how many pieces there are."""
        return self.move.count + bool(self.going)

    def run(self, number: int) -> tuple[list[Fragment], list[Removal]]:
        """Write a piece, deletion files first: of these a disk has most to do."""
        if not self.going:
            return self.move.run(number), []
        if number:
            return self.move.run(number - 1), []
        return [], list(remove_each(self.move.snapshot, self.going))


def moved(
    plan: MergePlan,
    groups: Sequence[GroupMatches],
    new: Sequence[Fragment],
    removals: Iterable[Removal],
) -> Merged:
    """Return a merge whose rows were written into new fragments."""
    snapshot = plan.task.snapshot
    removed = Removals.of(removals)
    operation = Update(
        removed.gone,
        removed.updated,
        tuple(new),
        fields_preserved=tuple(each.id for each in snapshot.manifest.schema.walk()),
        mode=UpdateMode.REWRITE_ROWS,
    )
    counts = _counts(plan, groups, [file.size_bytes for fragment in new for file in fragment.files])
    return Merged(snapshot, operation, counts, plan.planned_ns)


def patched(plan: MergePlan, groups: Sequence[GroupMatches], updated: Sequence[Fragment]) -> Merged:
    """Return a merge whose columns were written anew beside the others of their fragments."""
    changed = plan.plan_patch(groups).modified.walk()
    operation = Update(
        (),
        tuple(updated),
        (),
        fields_modified=tuple(each.id for each in changed),
        mode=UpdateMode.REWRITE_COLUMNS,
        updated_offsets={
            each.updated.fragment.id: serialize_roaring(each.updated.offsets.astype(np.uint32))
            for each in plan.found(groups)
            if len(each.updated)
        },
    )
    counts = _counts(plan, groups, [fragment.files[-1].size_bytes for fragment in updated])
    return Merged(plan.task.snapshot, operation, counts, plan.planned_ns)


def _counts(
    plan: MergePlan, groups: Sequence[GroupMatches], sizes: Sequence[int | None]
) -> MergeCounts:
    found = plan.found(groups)
    return MergeCounts(
        len(plan.inserted(groups)),
        sum(len(each.updated) for each in found),
        sum(each.deleted for each in found),
        len(sizes),
        sum(size or 0 for size in sizes),
    )


def commit_merge(merged: Merged) -> Manifest:
    """Commit a merge; raises what `pennon.table.commit.loop.commit` raises."""
    return commit_on(
        merged.snapshot, merged.operation, planned_ns=merged.planned_ns, adds_keys=merged.adds_keys
    )
