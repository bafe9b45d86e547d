"""Bugs of commits: the commit point, judgement and rebase, and ids."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from pennon.errors import (
    AlreadyExistsError,
    RetryableConflict,
    StoreError,
)
from pennon.ops.compact.task import commit_compact
from pennon.table.apply import next_manifest as applying
from pennon.table.apply.rewrite import _check_as_many, _check_same_rows
from pennon.table.apply.whole import restore
from pennon.table.commit.conflict_check import judge_newer
from pennon.table.commit.loop import next_manifest
from pennon.table.commit.new_files import check_new_files
from pennon.table.commit.put_manifest import _Holder, _holder, put_manifest_at, verify_latest
from pennon.table.commit.rebase import _united, check_adds_no_rows, same_intent
from pennon.table.deletion import read_deletions
from pennon.table.manifest import Manifest
from pennon.table.manifest_wire import serialize_manifest_file
from pennon.table.operations import Delete, Restore, Update
from pennon.table.operations import Merge as MergeColumns
from pennon.table.versions import latest_version
from tests.faults.simulation.planting import (
    LATE,
    LOST,
    applied,
    never_judged,
    of_fragments_that_are_there,
    plant,
    swap,
)
from tests.faults.simulation.store import Disk

# --- the commit point --------------------------------------------------------------------------------


@plant("U23, T10: the store replaces what is there", mode="create")
def put_overwrites_a_manifest(stack: ExitStack) -> None:
    stack.enter_context(patch.object(Disk, "create", Disk.put))


@plant("U37, U42: a lost answer is a failed commit", faults=LOST)
def lost_answer_is_a_failure(stack: ExitStack) -> None:
    def put_manifest(store: Any, location: Any, manifest: Any, *_: Any) -> bool:
        try:
            store.put_if_absent(location.path, serialize_manifest_file(manifest))
        except AlreadyExistsError:
            return False
        return True

    swap(stack, put_manifest_at, put_manifest)


@plant("U1, U42, T8: one's own manifest is another's", faults=LOST)
def own_manifest_is_an_obstacle(stack: ExitStack) -> None:
    def holder(*arguments: Any) -> _Holder:
        found = _holder(*arguments)
        return _Holder.ANOTHER if found is _Holder.OURS else found

    swap(stack, _holder, holder)
    swap(stack, same_intent, lambda *_: False)
    swap(stack, judge_newer, _without_own(judge_newer))


@plant("U38: what is absent now will stay so", faults=LATE)
def absent_is_failed(stack: ExitStack) -> None:
    def holder(*arguments: Any) -> _Holder:
        found = _holder(*arguments)
        if found is _Holder.NOBODY:
            message = "nothing was committed"
            raise RetryableConflict(message)
        return found

    swap(stack, _holder, holder)


@plant(
    "U1, U2: a writer takes its files away when the answer is lost", faults=LOST, kinds=("append",)
)
def writer_deletes_its_files(stack: ExitStack) -> None:
    def put_manifest(store: Any, location: Any, manifest: Manifest, *_: Any) -> bool:
        try:
            store.put_if_absent(location.path, serialize_manifest_file(manifest))
        except (AlreadyExistsError, StoreError):
            store.delete(manifest.fragments[-1].files[0].store_path)
            raise
        return True

    swap(stack, put_manifest_at, put_manifest)


@plant(
    "T34: nobody looks whether the version is far below the newest",
    mode="create",
    kinds=("append",),
    cleans=True,
    hasty=True,
    pauses=True,
)
def no_look_after_landing(stack: ExitStack) -> None:
    swap(stack, verify_latest, lambda *_: True)


@plant(
    "T18: nobody looks whether the files of an old job are there",
    kinds=("append",),
    cleans=True,
    pauses=True,
)
def files_are_not_looked_for(stack: ExitStack) -> None:
    swap(stack, check_new_files, lambda *_: None)


# --- judging and rebasing ----------------------------------------------------------------------------


@plant("U13, T20: what came after the read version is not judged")
def newer_versions_are_not_judged(stack: ExitStack) -> None:
    swap(stack, judge_newer, lambda *_: frozenset())


@plant("T1: a retry builds on the manifest that it read first")
def retry_builds_on_a_stale_version(stack: ExitStack) -> None:
    firsts: dict[str, Manifest] = {}

    def build(store: Any, head: Manifest, mine: Any, options: Any) -> Manifest:
        first = firsts.setdefault(mine.transaction.uuid, head)
        return next_manifest(store, replace(first, version=head.version), mine, options)

    swap(stack, next_manifest, build)


@plant(
    "U12: a compaction brings rows back that were deleted meanwhile", kinds=("compact", "delete")
)
def compaction_after_delete(stack: ExitStack) -> None:
    never_judged(stack, "Rewrite", "Delete", "Update")
    swap(stack, _check_same_rows, lambda *_: None)
    swap(stack, _check_as_many, lambda *_: None)


@plant(
    "T20 on Rewrite: the compaction's read version is that of its commit",
    kinds=("compact", "delete"),
)
def compaction_reads_its_version_late(stack: ExitStack) -> None:
    def late(store: Any, rewritten: Any) -> Manifest:
        now = latest_version(store)
        return commit_compact(store, [replace(each, read_version=now) for each in rewritten])

    swap(stack, commit_compact, late)
    swap(stack, _check_same_rows, lambda *_: None)
    swap(stack, _check_as_many, lambda *_: None)


@plant("1.5: a delete follows a compaction of its fragment", kinds=("compact", "delete"))
def delete_after_compaction(stack: ExitStack) -> None:
    never_judged(stack, "Delete", "Rewrite")
    applied(stack, Delete, of_fragments_that_are_there)


@plant("1.5: an update follows a compaction of its fragment", kinds=("compact", "update"))
def update_after_compaction(stack: ExitStack) -> None:
    never_judged(stack, "Update", "Rewrite")
    applied(stack, Update, of_fragments_that_are_there)


@plant("1.5: deletes do not judge deletes", kinds=("delete",))
def delete_after_delete(stack: ExitStack) -> None:
    never_judged(stack, "Delete", "Delete", "Update")


@plant("1.5: updates do not judge updates")
def update_after_update(stack: ExitStack) -> None:
    never_judged(stack, "Update", "Delete", "Update")


@plant("1.5: a new column loses rows that were added meanwhile", kinds=("columns", "append"))
def column_after_append(stack: ExitStack) -> None:
    never_judged(stack, "Merge", "Append", "Update")

    def of_those_that_are_given(head: Manifest, operation: Any) -> tuple[Manifest, Any]:
        given = {fragment.id for fragment in operation.fragments}
        return replace(head, fragments=tuple(f for f in head.fragments if f.id in given)), operation

    applied(stack, MergeColumns, of_those_that_are_given)


@plant("1.5: one key of the config is set twice", kinds=("config",))
def config_after_config(stack: ExitStack) -> None:
    never_judged(stack, "UpdateConfig", "UpdateConfig")


@plant("U14: merges do not look for keys that others added", kinds=("merge",))
def merges_add_a_key_twice(stack: ExitStack) -> None:
    swap(stack, check_adds_no_rows, lambda *_: None)


@plant("1.5, d: a deletion file is replaced, not united")
def deletions_are_replaced(stack: ExitStack) -> None:
    swap(stack, _united, lambda _store, _fragment, rows: rows)


@plant("1.5, d: a row that was deleted meanwhile is updated all the same")
def one_row_is_taken_twice(stack: ExitStack) -> None:
    def united(store: Any, fragment: Any, rows: Any) -> Any:
        return np.union1d(read_deletions(store, fragment), rows).astype(np.uint32)

    swap(stack, _united, united)


# --- ids ----------------------------------------------------------------------------------------------


@plant(
    "1.6 h, U16: fragment ids begin anew after those that are there",
    kinds=("delete", "append", "overwrite", "restore"),
)
def fragment_ids_are_used_again(stack: ExitStack) -> None:
    def last(manifest: Manifest) -> int:
        return max((fragment.id for fragment in manifest.fragments), default=-1)

    stack.enter_context(patch.object(Manifest, "last_fragment_id", property(last)))


@plant("U15, 1.6 g: a restore gives row ids out again", kinds=("restore", "append"))
def row_ids_are_used_again(stack: ExitStack) -> None:
    def careless(head: Manifest, operation: Any, around: Any) -> Manifest:
        made = restore(head, operation, around)
        return replace(made, next_row_id=around.past.next_row_id)

    stack.enter_context(patch.dict(applying._APPLY, {Restore: careless}))


def _without_own(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a judge that does not know its own transaction again."""

    def judged(store: Any, mine: Any, *rest: Any) -> Any:
        return original(store, replace(mine, wire=b""), *rest)

    return judged
