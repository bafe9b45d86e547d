"""Taking away what was planned.  No other code of Pennon's deletes a file that a version named.

::

    write a file of our own           its time is now, by the store's clock
    look: manifests, tags, branches   → the plan
    write the plan                    nobody restores, tags or branches from its versions any more
    look again                        what somebody needs since the first look stays
    delete manifests, oldest first
    look again                        what a manifest that is there names stays
    delete files
    delete the plan

Manifests go first, so no version is ever there of which a file is missing.  A run that is cut short
leaves its plan, and the next one takes away what is left of it: without the plan, files whose
manifests are gone would be nobody's for a week.  A plan of which versions are left may be that of a run
under way, and stays for a week.  On a disk that is full the plan is written after the oldest manifest went,
which makes room, and now is by this computer's clock.

Source: commit-and-faults reference, 1.8.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pennon.core.loggers import MAINTENANCE
from pennon.core.thread_pools import PoolSpec, map_all
from pennon.errors import ArgumentError, Breadcrumb, StoreError
from pennon.io.store import Store
from pennon.ops.cleanup.file_kinds import Kind
from pennon.ops.cleanup.plan import Doomed, Plan, make_plan, old_versions
from pennon.ops.cleanup.policy import Policy
from pennon.ops.cleanup.survey import Survey, View
from pennon.scan.snapshot import Snapshot
from pennon.table.cleanup_notes import is_stamp, new_plan_path, new_stamp_path

_CONCURRENCY = 8
_ATTEMPTS = 5
_FULL = {errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True, slots=True)
class Removed:
    """The removed files and versions, or those to be removed; ``failed`` are files that the store did not delete."""

    files: tuple[Doomed, ...]
    failed: int = 0

    @property
    def size_bytes(self) -> int:
        """Return the size of all."""
        return sum(each.info.size_bytes for each in self.files)

    def count(self, kind: Kind) -> int:
        """Return how many files of a kind there are."""
        return sum(each.kind is kind for each in self.files)


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed of deletions: a number per second, or a number at once."""

    per_second: int | None = None
    at_once: int | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        """Refuse to stand still."""
        given = {"delete_rate_limit": self.per_second, "delete_concurrency": self.at_once}
        for name, value in given.items():
            if value is not None and value < 1:
                message = f"{name} must be at least 1, got {value}"
                raise ArgumentError(message)


def survey_of(snapshot: Snapshot) -> Survey:
    """Return what looks at the table, or the branch, that a snapshot is of."""
    return Survey(snapshot.store, snapshot.manifest.branch)


def preview(snapshot: Snapshot, policy: Policy) -> tuple[Plan, View]:
    """Return what a clean-up would take away now; nothing is written.

    So it is not now by the store's clock, but by this computer's, or as late as the newest manifest.
    """
    survey = survey_of(snapshot)
    view = survey.look()
    return make_plan(survey, view, policy, snapshot.manifest.version, _own_clock(view)), view


def _own_clock(view: View) -> datetime:
    return max(datetime.now(UTC), *(info.modified for info in view.files))


def clean(snapshot: Snapshot, policy: Policy, pace: Pace | None = None) -> Removed:
    """Take away old versions and what only they needed, and orphans; return what went.

    Raises TaggedVersionsError, and whatever reading a manifest raises; nothing is deleted then.
    """
    removed = _clean(snapshot, policy, pace)
    MAINTENANCE.info(
        "%s: clean-up at version %d removed %d files of %d bytes (%d manifests), and failed to remove %d",
        snapshot.store.uri,
        snapshot.manifest.version,
        len(removed.files),
        removed.size_bytes,
        removed.count(Kind.MANIFEST),
        removed.failed,
    )
    return removed


def _clean(snapshot: Snapshot, policy: Policy, pace: Pace | None) -> Removed:
    survey = survey_of(snapshot)
    pace = pace or Pace()
    notes = [new_stamp_path(), new_plan_path()]
    stamp, mine = notes
    try:
        plan, now = _plan(survey, policy, snapshot.manifest.version, stamp)
        is_kept = _put(survey.home, mine, plan.to_json())
        manifests = _still_old(survey, plan, policy, snapshot.manifest.version, now)
    except BaseException:
        _forget(survey, notes)
        raise
    plan = replace(plan, manifests=manifests)
    if is_kept:
        return _remove(survey, plan, pace, mine)
    gone, failed = _delete(survey.home, manifests[:1], pace)
    plan = replace(plan, manifests=manifests[1:])
    _put(survey.home, mine, plan.to_json())
    rest = _still_old(survey, plan, policy, snapshot.manifest.version, now)
    removed = _remove(survey, replace(plan, manifests=rest), pace, mine)
    return Removed((*gone, *removed.files), failed + removed.failed)


def _put(store: Store, path: str, data: bytes) -> bool:
    """Write the plan; False if there is no room for it, which is what clean-up is to make."""
    try:
        store.put(path, data)
    except StoreError as error:
        if getattr(error.__cause__, "errno", None) not in _FULL:
            raise
        return False
    return True


def _plan(survey: Survey, policy: Policy, handle_version: int, stamp: str) -> tuple[Plan, datetime]:
    view, written = _look_now(survey, stamp)
    now = written or _own_clock(view)
    return make_plan(survey, view, policy, handle_version, now), now


def _look_now(survey: Survey, stamp: str) -> tuple[View, datetime | None]:
    """Write a file, and look; return its time, None if nothing can be written.

    Another clean-up may take it for one that was left behind, and away: then it is written again.
    """
    for _ in range(_ATTEMPTS):
        is_written = _put(survey.home, stamp, b"{}")
        view = survey.look()
        times = [info.modified for info in view.files if info.path == stamp]
        if times or not is_written:
            return view, times[0] if is_written else None
    message = f"{survey.home.uri!r} does not list what was just written; nothing was deleted"
    raise StoreError(message, where=Breadcrumb(file=stamp))


def _still_old(
    survey: Survey, plan: Plan, policy: Policy, handle_version: int, now: datetime
) -> tuple[Doomed, ...]:
    """Return the manifests of the plan that are still not needed."""
    view = survey.look()
    old = old_versions(view, policy, handle_version, now)
    paths = {view.versions[version].path for version in old}
    return tuple(each for each in plan.manifests if each.path in paths)


def _remove(survey: Survey, plan: Plan, pace: Pace, mine: str) -> Removed:
    gone, failed = _delete(survey.home, plan.manifests, replace(pace, at_once=1))
    view = survey.look()
    kept = survey.named_by(view.versions.values())
    kept.add(survey.named_elsewhere(view))
    free = [each for each in plan.files if not kept.may_name(each.path)]
    files, more = _delete(survey.home, free, pace)
    if not failed and not more:
        left = [info.path for info in view.files]
        others = [path for path in left if path in plan.adopted]
        ended = [path for path in others if plan.adopted[path].isdisjoint(view.versions)]
        _forget(survey, (*ended, mine, *filter(is_stamp, left)))
    return Removed((*gone, *files), failed + more)


def _forget(survey: Survey, notes: Iterable[str]) -> None:
    for path in notes:
        with suppress(StoreError):  # whoever cleans up next does it
            survey.home.delete(path)


def _delete(store: Store, doomed: Iterable[Doomed], pace: Pace) -> tuple[list[Doomed], int]:
    """Delete files; return those that are gone, and how many the store failed to delete."""
    wait = _Metronome(pace)

    def delete(each: Doomed) -> bool:
        wait.tick()
        try:
            store.delete(each.path)
        except StoreError:
            return False
        return True

    todo = list(doomed)
    at_once = 1 if pace.per_second is not None else pace.at_once or _CONCURRENCY
    done = map_all(delete, todo, PoolSpec("clean", at_once)) if at_once > 1 else map(delete, todo)
    gone = [each for each, is_gone in zip(todo, done, strict=True) if is_gone]
    return gone, len(todo) - len(gone)


class _Metronome:
    """Lets deletes pass at the pace asked for."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._next = pace.clock()

    def tick(self) -> None:
        if self._pace.per_second is None:
            return
        early = self._next - self._pace.clock()
        if early > 0:
            self._pace.sleep(early)
        self._next = max(self._next, self._pace.clock()) + 1 / self._pace.per_second
