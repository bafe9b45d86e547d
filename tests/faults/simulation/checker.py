"""Checks of a simulated history after its end.

* A commit that was acknowledged is in the history once; one that failed is not; one of which nobody was told
  may be, or not.
* Each version is what its operation makes of the version before it, so nothing is lost, doubled or brought back.
* The newest version is the last that was committed; all that is listed is whole.
* Whoever read saw a version that was committed, and none older than what was acknowledged before.
* Clean-up deletes nothing that a version names, nor what is young and may be named yet.
* Numbers of fragments and rows are given once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa

from pennon.dataset.lance_dataset import LanceDataset
from pennon.errors import CommitStateUnknown, LanceError, NotFoundError, StoreError
from pennon.scan.session import Session
from pennon.scan.snapshot import Snapshot
from pennon.table.manifest import Manifest
from pennon.table.manifest_wire import parse_manifest_file
from pennon.table.naming import Naming
from tests.faults.operations import named_files
from tests.faults.simulation.model import (
    Append,
    CleanUp,
    CommitAgain,
    Compact,
    DoubledError,
    MakeBranch,
    Migrate,
    Operation,
    Read,
    State,
    Tag,
    rows_of,
)
from tests.faults.simulation.store import (
    CALM,
    MAIN,
    Disk,
    SimulatedStore,
    Stored,
    Version,
    line_of,
)

ORPHAN_AGE = 7 * 86400.0
_NO_COMMIT = (CleanUp, Migrate, Tag, MakeBranch, Read)


@dataclass(eq=False)
class Watch:
    """Looks at each file that is deleted, when it is."""

    disk: Disk
    _names: dict[bytes, frozenset[str]] = field(default_factory=dict)

    def deleted(self, path: str, found: Stored, by: object) -> None:
        """Write down a file that must not go."""
        if line_of(path) is not None or not path.startswith(("data/", "_deletions/", "_trans")):
            return
        for name, it in self.disk.objects.items():
            at = line_of(name)
            if at is not None and path in self._named(it.data, at[0]):
                self.disk.wrongs.append(f"{path} was deleted by {by}, but {name} names it")
        age = self.disk.scheduler.now - found.when
        if age <= ORPHAN_AGE and not self._was_named(path):
            self.disk.wrongs.append(f"{path} was deleted by {by}, an orphan of {age:.0f} s")

    def _was_named(self, path: str) -> bool:
        versions = (v for line in self.disk.history.values() for v in line)
        return any(path in self._named(v.body, v.line) for v in versions)

    def _named(self, body: bytes, line: str) -> frozenset[str]:
        known = self._names.get(body)
        if known is None:
            known = self._names[body] = names_of(parse_manifest_file(pa.py_buffer(body)), line)
        return known


def names_of(manifest: Manifest, line: str) -> frozenset[str]:
    """Return the paths, from the table's root, of the files that a manifest names."""
    prefix = f"{line}/" if line else ""
    return frozenset(
        path.partition("/")[2] if path.startswith("@") else prefix + path
        for path in named_files(manifest)
    )


@dataclass(eq=False)
class Checker:
    """Judges one run."""

    disk: Disk
    store: SimulatedStore
    operations: list[Operation]
    stable: bool
    is_calm: bool = False
    """No request failed."""
    wrongs: list[str] = field(default_factory=list)

    def check(self) -> list[str]:
        """Return what is wrong."""
        self.wrongs = list(self.disk.wrongs)
        try:
            self._check()
        except DoubledError as error:
            self.wrongs.append(str(error))
        return self.wrongs

    def _check(self) -> None:
        line = [v for v in self.disk.history.get(MAIN, ()) if not v.is_void]
        line.sort(key=lambda v: v.number)
        manifests = {v.number: parse_manifest_file(pa.py_buffer(v.body)) for v in line}
        archive = SimulatedStore(self.disk, CALM, self.store.uri)
        whole = dict(self.disk.objects)
        now = {p: Stored(d, 0.0, 0) for p, d in self.disk.archive.items()}
        self.disk.objects = {**whole, **now}
        try:
            states = self._states(line, manifests, archive)
        finally:
            self.disk.objects = whole
        self._check_effects(line, states)
        self._check_counts(line, states)
        self._check_reads(line, states)
        self._check_ids(line, manifests)
        self._check_disk(line, manifests)
        self._check_names(states)

    def _states(
        self, line: list[Version], manifests: dict[int, Manifest], archive: SimulatedStore
    ) -> dict[int, State]:
        session, states = Session(), {}
        owners: dict[int, int] = {}
        for version in line:
            manifest = manifests[version.number]
            dataset = LanceDataset.of_snapshot(archive.uri, Snapshot(archive, manifest, session))
            table = dataset.to_table(with_row_id=self.stable)
            try:
                states[version.number] = state_of(table, manifest)
            except DoubledError as error:
                message = f"version {version.number}, by {version.by}: {error}"
                raise DoubledError(message) from None
            if self.stable:
                self._check_row_ids(version, table, owners)
        return states

    def _check_row_ids(self, version: Version, table: pa.Table, owners: dict[int, int]) -> None:
        numbers = table.column("_rowid").to_pylist()
        if len(set(numbers)) != len(numbers):
            self.wrongs.append(f"row ids stand twice in version {version.number}: {numbers}")
        for number, key in zip(numbers, table.column("id").to_pylist(), strict=True):
            if owners.setdefault(number, key) != key:
                self.wrongs.append(
                    f"row id {number} was of row {owners[number]}, and is of {key} in version"
                    f" {version.number}, by {version.by}"
                )

    def _check_effects(self, line: list[Version], states: dict[int, State]) -> None:
        last = {id(v.by): v.number for v in line}
        for before, version in pairwise(line):
            made, on, by = states[version.number], states[before.number], version.by
            if not isinstance(by, Operation) or isinstance(by, _NO_COMMIT):
                self.wrongs.append(f"version {version.number} was made by {by}")
            elif last[id(by)] != version.number:
                if made != on or not by.may_commit_before:
                    self.wrongs.append(f"version {version.number} is one of several by {by}")
            else:
                first = min(by.base, before.number)
                between = (
                    v.by for v in line if by.base < v.number < version.number and v.by is not by
                )
                if any(isinstance(each, Operation) and by.clashes(each) for each in between):
                    self.wrongs.append(f"version {version.number}, by {by}, follows its like")
                bases = [states[b] for b in range(first, version.number) if b in states]
                possible = [by.after(base, on, states) for base in bases]
                if isinstance(by, Compact):
                    possible = [on]
                if made not in possible:
                    self.wrongs.append(
                        f"version {version.number}, by {by}, is {made}; before it was {on}"
                    )

    def _check_counts(self, line: list[Version], states: dict[int, State]) -> None:
        cleans = any(isinstance(each, CleanUp) for each in self.operations)
        for operation in self.operations:
            made = [v.number for v in line if v.by is operation]
            if operation.outcome == "broken":
                self.wrongs.append(f"no error of Pennon's own: {operation}")
            is_odd = isinstance(operation.error, (StoreError, CommitStateUnknown))
            if self.is_calm and is_odd and not cleans:
                self.wrongs.append(f"no request failed, but {operation}")
            if operation.outcome == "failed" and made and not isinstance(operation, Compact):
                self.wrongs.append(f"it failed, but made {made}: {operation}")
            if operation.outcome != "acknowledged" or isinstance(operation, (*_NO_COMMIT, Compact)):
                continue
            if len(made) != 1 and not (not made and self._is_empty(operation, states)):
                self.wrongs.append(f"it was acknowledged, but made {made}: {operation}")

    def _is_empty(self, operation: Operation, states: dict[int, State]) -> bool:
        if isinstance(operation, (Append, CommitAgain)):
            return False
        known = [states[n] for n in range(operation.base, operation.ended + 1) if n in states]
        return any(operation.after(state, state, states) == state for state in known)

    def _check_reads(self, line: list[Version], states: dict[int, State]) -> None:
        cleans = any(isinstance(each, (CleanUp, Migrate)) for each in self.operations)
        void = {v.number for v in self.disk.history[MAIN] if v.is_void}
        for read in (each for each in self.operations if isinstance(each, Read)):
            for number, rows, columns in read.seen:
                state = states.get(number)
                if number in void:
                    continue
                if state is None or state.rows != rows or state.columns != columns:
                    self.wrongs.append(f"{read} saw version {number} as {rows}, but it is {state}")
                if read.fresh and number < read.begun:
                    self.wrongs.append(f"{read} saw {number}, but {read.begun} was acknowledged")
            if isinstance(read.error, NotFoundError) and not cleans:
                self.wrongs.append(f"nobody cleaned up, but {read}")
            if read.error is not None and read.error.__class__.__name__ == "FormatError":
                self.wrongs.append(f"what was read was broken: {read}")

    def _check_ids(self, line: list[Version], manifests: dict[int, Manifest]) -> None:
        highest = -1
        first: dict[int, int] = {}
        for version in line:
            manifest = manifests[version.number]
            last = -1 if manifest.max_fragment_id is None else manifest.max_fragment_id
            if last < highest:
                self.wrongs.append(f"the highest fragment id falls in version {version.number}")
            for fragment in manifest.fragments:
                if (
                    fragment.id not in first
                    and fragment.id <= highest
                    and not _was_reserved(fragment.id, line, manifests, version)
                ):
                    self.wrongs.append(
                        f"fragment id {fragment.id} is used again in version {version.number},"
                        f" by {version.by}"
                    )
                first.setdefault(fragment.id, version.number)
            numbers = [fragment.id for fragment in manifest.fragments]
            if len(set(numbers)) != len(numbers):
                self.wrongs.append(f"fragment ids stand twice in version {version.number}")
            highest = max(highest, last, *numbers) if numbers else max(highest, last)

    def _check_disk(self, line: list[Version], manifests: dict[int, Manifest]) -> None:
        known = {v.number: v for v in line}
        listed: dict[int, dict[Naming, bytes]] = {}
        for path, it in self.disk.objects.items():
            at = line_of(path)
            if at is not None and at[0] == MAIN:
                listed.setdefault(at[2], {})[at[1]] = it.data
        for number, found in listed.items():
            version = known.get(number)
            body = found.get(Naming.V2, found.get(Naming.V1))
            if version is None or body != version.body:
                if not any(v.number == number for v in self.disk.history[MAIN] if v.is_void):
                    self.wrongs.append(f"the manifest of version {number} is another")
                continue
            missing = names_of(manifests[number], MAIN) - self.disk.objects.keys()
            if missing:
                self.wrongs.append(f"version {number}, by {version.by}, lacks {sorted(missing)}")
        newest = line[-1].number
        if newest not in listed or max(listed) != newest:
            self.wrongs.append(
                f"{newest} was committed last, but {max(listed, default=0)} is listed"
            )
        cleans = any(isinstance(each, CleanUp) for each in self.operations)
        if not cleans and sorted(n for n in listed if n in known) != sorted(known):
            self.wrongs.append(
                f"nobody cleaned up, but of {sorted(known)} there is {sorted(listed)}"
            )

    def _check_names(self, states: dict[int, State]) -> None:
        dataset = LanceDataset(self.store.uri)
        tags = dataset.tags.list()
        for name, it in tags.items():
            self._check_named(f"tag {name}", dataset, name, states.get(it["version"]))
        for name in dataset.branches.list():
            maker = next(
                each
                for each in self.operations
                if isinstance(each, MakeBranch) and each.name == name
            )
            state = states.get(maker.version)
            if state is not None and maker.outcome == "acknowledged":
                state = state.with_rows(dict.fromkeys(maker.ids, 0))
            exact = maker.outcome == "acknowledged"
            self._check_named(f"branch {name}", dataset, (name, None), state, exact=exact)
        made = [
            each
            for each in self.operations
            if isinstance(each, Tag) and each.outcome == "acknowledged"
        ]
        for tag in made:
            if tag.name not in tags:
                self.wrongs.append(f"tag {tag.name} was acknowledged, but is not there")
        names = [tag.name for tag in made]
        if len(set(names)) != len(names):
            self.wrongs.append(f"tags were made twice: {names}")

    def _check_named(
        self,
        what: str,
        dataset: LanceDataset,
        name: Any,
        state: State | None,
        *,
        exact: bool = True,
    ) -> None:
        try:
            rows = rows_of(dataset.checkout_version(name).to_table())
        except LanceError as error:
            self.wrongs.append(f"{what} leads nowhere: {type(error).__name__}: {error}")
            return
        if exact and (state is None or state.rows != rows):
            self.wrongs.append(f"{what} has {rows}, not {state}")


def state_of(table: pa.Table, manifest: Manifest) -> State:
    """Return what a version is, as the model says it."""
    columns = tuple(name for name in table.column_names if name != "_rowid")
    return State(rows_of(table), columns, dict(manifest.config))


def _was_reserved(
    number: int, line: Iterable[Version], manifests: dict[int, Manifest], version: Version
) -> bool:
    """Tell whether the ids of a compaction were reserved by it, before."""
    mine = [v for v in line if v.by is version.by and v.number < version.number]
    for each in mine:
        before = manifests.get(each.number - 1)
        low = -1 if before is None or before.max_fragment_id is None else before.max_fragment_id
        high = manifests[each.number].max_fragment_id
        if high is not None and low < number <= high:
            return True
    return False
