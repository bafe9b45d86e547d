"""Random histories with a virtual clock: clean-up deletes exactly the unneeded files."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pennon.dataset import LanceDataset
from tests.unit.ops.cleanup.clocked import ClockedStore, CrashError, open_table, write

DAY: Final = timedelta(days=1)
ORPHAN_AGE: Final = 7 * DAY


class History:
    """A table, and what is known of it beside its files."""

    def __init__(self) -> None:
        self.store = ClockedStore()
        self.rows: dict[tuple[str | None, int], pa.Table] = {}
        self.orphans: dict[str, datetime] = {}
        self.next_row = 0
        write(self.store, self.new_rows(6), "create", rows=3)
        self.note(None)

    def new_rows(self, count: int) -> list[int]:
        self.next_row += count
        return list(range(self.next_row - count, self.next_row))

    def line(self, branch: str | None) -> LanceDataset:
        """Return the newest version of a line."""
        table = open_table(self.store)
        return table if branch is None else table.checkout_version((branch, None))

    def lines(self) -> list[str | None]:
        return [None, *open_table(self.store).branches.list()]

    def note(self, branch: str | None) -> None:
        """Remember the rows of a line's newest version."""
        table = self.line(branch)
        self.rows[branch, table.version] = table.to_table()

    def versions(self, branch: str | None) -> set[int]:
        return {each["version"] for each in self.line(branch).version_refs()}

    def do(self, step: tuple[Any, ...]) -> None:
        """Take one step; one that makes no sense here is none."""
        name, number = step
        lines = self.lines()
        branch = lines[number % len(lines)]
        table = self.line(branch)
        self.store.advance(timedelta(hours=number))
        match name:
            case "append":
                table.insert(pa.table({"n": self.new_rows(1 + number % 3)}))
            case "overwrite":
                table.insert(pa.table({"n": self.new_rows(2)}), mode="overwrite")
            case "delete":
                table.delete(f"n % 5 = {number % 5}")
            case "compact":
                table.optimize.compact_files()
            case "restore":
                known = sorted(self.versions(branch))
                table.checkout_version(known[number % len(known)]).restore()
            case "tag":
                tag_or_not(table, number)
            case "branch" if len(lines) < 3 and f"b{number}" not in lines:
                table.create_branch(f"b{number}")
                branch = f"b{number}"
            case "orphan":
                path = f"data/{number:050}.lance"
                self.store.put(path, b"x")
                self.orphans[path] = self.store.now
        self.note(branch)

    def clean(self, branch: str | None, policy: dict[str, Any]) -> set[str]:
        """Clean one line, crash on the way if that is asked for, and check what is left."""
        before = {line: self.versions(line) for line in self.lines()}
        stay = self.staying(branch, policy)
        crash = policy.pop("crash")
        self.store.deletes_left = crash
        try:
            self.line(branch).cleanup_old_versions(error_if_tagged_old_versions=False, **policy)
        except CrashError:
            assert stay <= self.versions(branch)
        else:
            assert self.versions(branch) == stay
            self.check_orphans(branch, unverified=policy["delete_unverified"])
        self.store.deletes_left = None
        for line, known in before.items():
            if line != branch:
                assert self.versions(line) == known
        self.check_rows()
        return self.store.paths()

    def staying(self, branch: str | None, policy: dict[str, Any]) -> set[int]:
        """Return the versions that a clean-up of a line must leave."""
        table = self.line(branch)
        stored = {v: self.store.times[self.path(branch, v)] for v in self.versions(branch)}
        last = sorted(stored)[-(policy.get("retain_versions") or 1) :]
        tags = {t["version"] for t in table.tags.list().values() if t["branch"] == branch}
        left = {
            b["parent_version"]
            for b in table.branches.list().values()
            if b["parent_branch"] == branch
        }
        age = policy.get("older_than")
        young = {v for v, at in stored.items() if age is not None and self.store.now - at < age}
        return {v for v in stored if v in {*last, *tags, *left, *young}}

    def path(self, branch: str | None, version: int) -> str:
        folder = "" if branch is None else f"tree/{branch}/"
        return f"{folder}_versions/{2**64 - 1 - version:020}.manifest"

    def check_rows(self) -> None:
        """Read every version that is there, of every line."""
        for line in self.lines():
            table = self.line(line)
            for version in self.versions(line):
                at = table.checkout_version(version)
                at.validate()
                if (line, version) in self.rows:
                    assert at.to_table() == self.rows[line, version]

    def check_orphans(self, branch: str | None, *, unverified: bool) -> None:
        if branch is not None:
            return
        there = self.store.paths("data")
        for path, born in self.orphans.items():
            is_old = self.store.now - born > ORPHAN_AGE
            assert (path in there) == (not (is_old or unverified) and path in there)
            if is_old or unverified:
                assert path not in there
        self.orphans = {path: born for path, born in self.orphans.items() if path in there}


def tag_or_not(table: LanceDataset, number: int) -> None:
    name = f"t{number % 3}"
    if name in table.tags.list():
        table.tags.delete(name)
    else:
        table.tags.create(name, table.version)


STEPS = st.tuples(
    st.sampled_from(
        ["append", "append", "overwrite", "delete", "compact", "restore", "tag", "branch", "orphan"]
    ),
    st.integers(0, 100),
)
POLICIES = st.fixed_dictionaries(
    {
        "delete_unverified": st.booleans(),
        "crash": st.none() | st.integers(0, 12),
        "older_than": st.sampled_from([timedelta(0), DAY, 5 * DAY]),
    },
    optional={"retain_versions": st.integers(1, 4)},
)
HISTORIES = st.lists(
    st.tuples(st.lists(STEPS, max_size=8), st.integers(0, 2), POLICIES), min_size=1, max_size=4
)


def run(history: list[tuple[list[tuple[str, int]], int, dict[str, Any]]]) -> None:
    it = History()
    for steps, line, policy in history:
        for step in steps:
            it.do(step)
        lines = it.lines()
        branch = lines[line % len(lines)]
        it.clean(branch, dict(policy))
        twin = it.store.copy()  # cut short or not, one more run leaves the same
        again = {**policy, "crash": None}
        left = it.clean(branch, dict(again))
        assert twin.paths() >= left


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(HISTORIES)
def test_clean_up_keeps_the_files_of_random_histories(history: Any) -> None:
    run(history)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(HISTORIES)
def test_clean_up_keeps_the_files_of_many_random_histories(history: Any) -> None:
    run(history)
