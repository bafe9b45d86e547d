"""The examination of a table: plan, tasks (a fragment or a segment each), one report.

::

    versions        the newest manifest that can be read          → the version looked at
    as a whole      schema, fragments, base paths, transaction    → on the driver
    tasks           files, counts, row ids, values; indices       → threads, or executors of Spark
    across          row ids unique, coverage, orphans, advice     → on the driver

Nothing is written or deleted.  Damage is a finding: only that there is no table at all is an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pennon.errors import LanceError
from pennon.io.store import Store
from pennon.ops.doctor.findings import Finding, Report, finding_of, ordered
from pennon.ops.doctor.fragment_state import FragmentState
from pennon.ops.doctor.history import (
    check_files,
    check_layout,
    check_refs,
    check_versions,
    locations_of,
    newest_readable,
)
from pennon.ops.doctor.indices import SegmentState
from pennon.ops.doctor.row_ids import FragmentIds, check_row_ids
from pennon.ops.doctor.table import check_raw, check_version
from pennon.ops.doctor.task import ExamineTask, State
from pennon.ops.run_tasks import run_tasks
from pennon.scan.snapshot import Snapshot
from pennon.table.base_paths import Trust, base_uri, place_store, root_of
from pennon.table.versions import ManifestLocation, find_location

Run: TypeAlias = Callable[[ExamineTask], Sequence[State]]
"""Runs all pieces of a task, somewhere, and returns their states in the order of their numbers."""


@dataclass(slots=True)
class Examination:
    """The findings about a table, and the facts for a repair.

    ``location``: the manifest looked at, None if none can be read.  ``fragments`` are in the order of the manifest;
    ``repeated_ids`` are the places of those whose rows have the stable ids of others.  ``newest``: the newest manifest.
    """

    store: Store
    deep: bool
    newest: ManifestLocation
    location: ManifestLocation | None = None
    snapshot: Snapshot | None = None
    findings: list[Finding] = field(default_factory=list)
    fragments: list[FragmentState] = field(default_factory=list)
    segments: list[SegmentState] = field(default_factory=list)
    repeated_ids: set[int] = field(default_factory=set)

    def report(self) -> Report:
        """Return the findings, the worst first."""
        found = ordered(_shown(self.snapshot, each) for each in self.findings)
        manifest = None if self.snapshot is None else self.snapshot.manifest
        return Report(
            self.store.uri,
            None if manifest is None else manifest.version,
            found,
            len(self.fragments),
            sum(each.live or 0 for each in self.fragments),
            sum(each.values for each in self.fragments)
            + sum(each.values for each in self.segments),
            self.deep,
        )


def on_threads(threads: int | None = None) -> Run:
    """Return what runs the pieces on threads of this machine."""

    def run(task: ExamineTask) -> Sequence[State]:
        return run_tasks(task, task.count, what="Examining", threads=threads)

    return run


def examine(
    store: Store,
    version: int | None = None,
    *,
    deep: bool = False,
    trust: Trust | None = None,
    run: Run | None = None,
) -> Examination:
    """Look at a version of a table, by default the newest one, and at what lies around it.

    ``deep``: decode every page of every column, and every file of the indices.  ``trust``: the places outside of the
    table that may be read.  Raises NotFoundError if there is no table, or no such version.
    """
    locations = locations_of(store)
    exam = Examination(store, deep, locations[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is worth a warning is a finding
        chosen = locations if version is None else [find_location(store, version)]
        found = newest_readable(store, chosen, exam.findings)
        if found is not None:
            exam.location = found[0]
            exam.snapshot = Snapshot(place_store(store, found[1], trust), found[1])
            _look(exam, exam.snapshot, run or on_threads())
        looked_at = {each.file for each in exam.findings if each.file is not None}
        looked_at |= set() if found is None else {found[0].path}
        exam.findings += _guarded(check_versions(store, locations, looked_at))
    return exam


def examine_snapshot(
    snapshot: Snapshot, *, deep: bool = False, run: Run | None = None
) -> Examination:
    """Look at a version that is open already; else as `examine`."""
    return examine(snapshot.store, snapshot.manifest.version, deep=deep, run=run)


def _look(exam: Examination, snapshot: Snapshot, run: Run) -> None:
    exam.findings += check_version(snapshot, exam.location)
    if exam.location is not None:
        exam.findings += _guarded(check_raw(exam.store, exam.location, snapshot.manifest))
    for state in run(ExamineTask.of(snapshot, deep=exam.deep)):
        exam.findings += state.findings
        if isinstance(state, FragmentState):
            exam.fragments.append(state)
        else:
            exam.segments.append(state)
    ids = [
        FragmentIds(number, *each.ids)
        for number, each in enumerate(exam.fragments)
        if each.ids is not None and not each.row_ids_lost and each.live is not None
    ]
    exam.findings += _guarded(check_row_ids(snapshot, ids, exam.repeated_ids))
    for checks in (check_refs, check_files, check_layout):
        exam.findings += _guarded(checks(snapshot))


def _guarded(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings; an error on the way is the last one."""
    try:
        yield from findings
    except Exception as error:  # noqa: BLE001 - damage must never end the examination
        yield finding_of(error)


def _shown(snapshot: Snapshot | None, found: Finding) -> Finding:
    """Return a finding whose file in another base path has its whole path."""
    if snapshot is None or found.file is None or not found.file.startswith("@"):
        return found
    number, _, rest = found.file.removeprefix("@").partition("/")
    base = next((b for b in snapshot.manifest.base_paths if str(b.id) == number), None)
    if base is None:
        return found
    try:
        place = base_uri(base, root_of(snapshot.store).uri)
    except LanceError:
        place = base.path
    path = rest if base.is_dataset_root else rest.removeprefix("data/")
    return replace(found, file=f"{place.rstrip('/')}/{path}")
