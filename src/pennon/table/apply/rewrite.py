"""Rewrites: the same rows in other fragments, whose ids were reserved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pennon.core.units import FragmentId
from pennon.errors import ArgumentError, RetryableConflict
from pennon.table.apply.checks import check_have_files, check_mixture, check_no_deletions
from pennon.table.apply.context import ApplyContext
from pennon.table.apply.ids import check_last_id, with_fresh_ids
from pennon.table.apply.index_rules import moved_fragments
from pennon.table.apply.rows import by_id, known
from pennon.table.fragment import Fragment
from pennon.table.indices import FRAGMENT_REUSE, Index
from pennon.table.indices_wire import covering, parse_indices, renamed, serialize_indices
from pennon.table.manifest import Manifest
from pennon.table.operations import DeferredRemap, ReserveFragments, Rewrite, RewriteGroup
from pennon.table.storage_version import storage_version


def reserve(head: Manifest, operation: ReserveFragments, around: ApplyContext) -> Manifest:
    """Take fragment ids out of use."""
    last = head.last_fragment_id + operation.count
    check_last_id(last)
    return replace(head, fragments=around.completed(head), max_fragment_id=last)


def rewrite(head: Manifest, operation: Rewrite, around: ApplyContext) -> Manifest:
    """Put the new fragments of each group in place of its old ones."""
    groups = _with_ids(head, operation.groups)
    fragments = by_id(around.completed(head))
    for group in groups:
        check_no_deletions(group.new)
        check_have_files(group.new)
        check_mixture(group.new, storage_version(head))
        rows = []
        for fragment in group.old:
            now = known(fragments, fragment.id)
            _check_same_rows(fragment, now)
            rows.append(now.num_rows)
            del fragments[fragment.id]
        _check_as_many(rows, group)
    new = [fragment for group in groups for fragment in group.new]
    taken = fragments.keys() & {fragment.id for fragment in new}
    if taken:
        message = f"fragments {sorted(taken)[:20]} are there already"
        raise ArgumentError(message)
    ordered = sorted((*fragments.values(), *new), key=lambda fragment: fragment.id)
    indices = _rewritten_indices(head, operation, groups)
    return replace(head, fragments=tuple(ordered), indices=serialize_indices(indices))


def _check_as_many(rows: Sequence[int | None], group: RewriteGroup) -> None:
    """Raise ArgumentError unless new fragments have as many rows as the old ones, if that is known."""
    before = sum(known for known in rows if known is not None)
    new = sum(fragment.physical_rows or 0 for fragment in group.new)
    if new != before and None not in rows:
        old = [fragment.id for fragment in group.old]
        message = f"fragments {old[:20]} have {before} rows, but would be rewritten as {new}"
        raise ArgumentError(message)


def _check_same_rows(rewritten: Fragment, now: Fragment) -> None:
    """Raise RetryableConflict if a fragment has other rows or values now than those that were rewritten.

    Deleted rows would come back, and columns written since would be lost.  A file that is gone was of
    columns that were dropped.
    """
    files = {file.path for file in rewritten.files}
    if _dead(rewritten) != _dead(now) or not files.issuperset(file.path for file in now.files):
        message = (
            f"fragment {now.id} has other files than those that were rewritten; "
            "try again on the newest version"
        )
        raise RetryableConflict(message)


def _dead(fragment: Fragment) -> tuple[object, ...] | None:
    """Return what tells the deleted rows of a fragment from those of any other."""
    deletion = fragment.deletion_file
    return None if deletion is None else (deletion.kind, deletion.read_version, deletion.id)


def _with_ids(head: Manifest, groups: Iterable[RewriteGroup]) -> tuple[RewriteGroup, ...]:
    """Give ids to new fragments that have none, which is id 0; others have reserved ones."""
    last = head.last_fragment_id
    done = []
    for group in groups:
        new: list[Fragment] = []
        for fragment in group.new:
            if fragment.id == 0:
                (fragment,) = with_fresh_ids([fragment], last)  # noqa: PLW2901
                last = fragment.id
            elif fragment.id > head.last_fragment_id:
                message = f"fragment id {fragment.id} was not reserved"
                raise ArgumentError(message)
            new.append(fragment)
        done.append(replace(group, new=tuple(new)))
    return tuple(done)


def _rewritten_indices(
    head: Manifest, operation: Rewrite, groups: tuple[RewriteGroup, ...]
) -> tuple[Index, ...]:
    """Return the indices as they may be believed after the rewrite.

    An index that was made anew covers the new fragments, and so does one that goes by stable row
    ids.  Any other points at rows where they no longer are, so it covers neither old nor new, unless a
    fragment reuse index says where they are.
    """
    indices = parse_indices(head.indices)
    if operation.deferred is not None:
        return _with_entry(indices, operation.deferred)
    remapped = {each.old_id: each for each in operation.rewritten_indices}
    unknown = remapped.keys() - {index.uuid for index in indices}
    if unknown or len(remapped) != len(operation.rewritten_indices):
        message = f"the rewrite changes indices that are not there, or twice: {sorted(unknown)}"
        raise ArgumentError(message)
    # an index that was made anew names rows where they are now, whatever moved them before
    has_moves = any(index.name == FRAGMENT_REUSE for index in indices)
    version = head.version if has_moves else None
    done = []
    for index in indices:
        if index.uuid in remapped:
            done.append(renamed(_moved(index, groups), remapped[index.uuid], version))
        elif head.has_stable_row_ids and index.goes_by_row_ids:
            done.append(_moved(index, groups))
        else:
            done.append(_without_old(index, groups))
    return tuple(done)


def _with_entry(indices: Sequence[Index], deferred: DeferredRemap) -> tuple[Index, ...]:
    """Return the indices with another fragment reuse index; raises RetryableConflict if it misses a version."""
    others = [index for index in indices if index.name != FRAGMENT_REUSE]
    now = next((index.uuid for index in indices if index.name == FRAGMENT_REUSE), None)
    if now != deferred.replaced:
        message = "another compaction left the indices as they were meanwhile; try again on the newest version"
        raise RetryableConflict(message)
    return (*others, deferred.entry)


def _without_old(index: Index, groups: tuple[RewriteGroup, ...]) -> Index:
    if index.fragment_ids is None:
        return index
    old = {fragment.id for group in groups for fragment in group.old}
    return covering(index, index.fragment_ids - old)


def _moved(index: Index, groups: tuple[RewriteGroup, ...]) -> Index:
    if index.fragment_ids is None:
        return index
    return covering(index, moved_fragments(index.fragment_ids, groups))


def reserved_ids(before: Manifest, count: int) -> tuple[FragmentId, ...]:
    """Return the ids that a reservation on top of ``before`` takes."""
    first = before.last_fragment_id + 1
    return tuple(map(FragmentId, range(first, first + count)))
