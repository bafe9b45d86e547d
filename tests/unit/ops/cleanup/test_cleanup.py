"""Clean-up: deleted and kept files, and interruptions."""

from __future__ import annotations

import errno
import json
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import (
    ArgumentError,
    FormatError,
    NotFoundError,
    TaggedVersionsError,
    UnsupportedError,
)
from pennon.io.oserrors import os_errors
from pennon.proto import table_pb2
from pennon.testing import Fault, FaultyStore
from tests.unit.ops.cleanup.clocked import ClockedStore, CrashError, open_table, write

DAY = timedelta(days=1)
ALL = timedelta(0)
ORPHAN = "data/00000000000000000000000000000000000000000000000000.lance"


@pytest.fixture
def store() -> ClockedStore:
    """Return a table of five versions, made on five days: rows, rows, deleted, overwritten, rows."""
    store = ClockedStore()
    write(store, list(range(8)), "create")
    store.advance(DAY)
    write(store, list(range(8, 12)))
    store.advance(DAY)
    open_table(store).delete("n = 3")
    store.advance(DAY)
    write(store, [100], "overwrite")
    store.advance(DAY)
    write(store, [101])
    store.advance(DAY)
    return store


def versions(store: ClockedStore) -> list[int]:
    return [each["version"] for each in open_table(store).version_refs()]


class FullStore(ClockedStore):
    """A store without room for anything, until so many files were deleted."""

    def __init__(self, inner: ClockedStore, deletes_before_room: int) -> None:
        super().__init__()
        self.inner = inner.inner
        self.times = inner.times
        self.deletes_before_room = deletes_before_room

    def before(self, verb: str, path: str) -> None:
        """Refuse to write."""
        super().before(verb, path)
        if verb in {"put", "open_writer"} and len(self.deleted) < self.deletes_before_room:
            with os_errors("write", path):
                raise OSError(errno.ENOSPC, "no space left on device")


@pytest.mark.parametrize("deletes_before_room", [1, 3, 99])
def test_a_full_disk_is_cleaned_up(store: ClockedStore, deletes_before_room: int) -> None:
    """The only operation that makes room does not need any."""
    full = FullStore(store, deletes_before_room)
    stats = open_table(full).cleanup_old_versions(older_than=ALL)
    assert (stats.old_versions, stats.data_files_removed, stats.deletion_files_removed) == (4, 3, 1)
    assert versions(full) == [5]
    assert open_table(full).to_table()["n"].to_pylist() == [100, 101]
    assert not [path for path in full.paths("_versions") if ".tmp" in path]


def test_clean_up_on_full_disk_resumes_after_a_crash(store: ClockedStore) -> None:
    full = FullStore(store, 1)
    full.deletes_left = 4
    with pytest.raises(CrashError):
        open_table(full).cleanup_old_versions(older_than=ALL)
    full.deletes_left = None
    assert open_table(full).cleanup_old_versions(older_than=ALL).data_files_removed == 3
    assert full.paths("data") == {f"data/{path}" for path in _paths(full, 5)}


def test_clean_up_by_age_and_by_number(store: ClockedStore) -> None:
    table = open_table(store)
    stats = table.explain_cleanup_old_versions(retain_versions=2).stats
    assert (stats.old_versions, stats.data_files_removed, stats.deletion_files_removed) == (3, 3, 1)
    assert table.cleanup_old_versions().old_versions == 0  # two weeks
    assert table.cleanup_old_versions(older_than=4 * DAY, retain_versions=4).old_versions == 1
    assert versions(store) == [2, 3, 4, 5]
    assert table.cleanup_old_versions(older_than=4 * DAY).old_versions == 1
    assert versions(store) == [3, 4, 5]
    assert table.cleanup_old_versions(versions=[4, 5, 99]).old_versions == 1
    assert versions(store) == [3, 5]
    assert open_table(store, 3).count_rows() == 11
    stats = table.cleanup_old_versions(older_than=ALL)
    assert (stats.old_versions, stats.data_files_removed, stats.deletion_files_removed) == (1, 3, 1)
    assert store.paths("data") == {f"data/{path}" for path in _paths(store, 5)}
    assert not store.paths("_deletions")
    assert table.to_table()["n"].to_pylist() == [100, 101]
    with pytest.raises(ArgumentError, match="retain_versions"):
        table.cleanup_old_versions(retain_versions=0)


def _paths(store: ClockedStore, version: int) -> set[str]:
    fragments = open_table(store, version).get_fragments()
    return {str(file.path) for each in fragments for file in each.data_files()}


def test_clean_up_from_old_handle_keeps_its_version_and_newer_ones(store: ClockedStore) -> None:
    assert open_table(store, 3).cleanup_old_versions(older_than=ALL).old_versions == 2
    assert versions(store) == [3, 4, 5]


def test_clean_up_keeps_tagged_versions(store: ClockedStore) -> None:
    table = open_table(store)
    table.tags.create("first", 1)
    with pytest.raises(TaggedVersionsError, match="first"):
        table.cleanup_old_versions(older_than=ALL)
    assert versions(store) == [1, 2, 3, 4, 5]
    table.cleanup_old_versions(older_than=ALL, error_if_tagged_old_versions=False)
    assert versions(store) == [1, 5]
    assert open_table(store, 1).count_rows() == 8
    assert not any(path.startswith("_versions/.tmp") for path in store.paths("_versions"))


def test_clean_up_deletes_files_of_versions_between_tags(store: ClockedStore) -> None:
    """The time of a version that stays pins nothing (lance#8705)."""
    open_table(store).tags.create("first", 1)
    only_in_2 = {f.path for each in open_table(store, 2).get_fragments() for f in each.data_files()}
    only_in_2 -= {
        f.path for each in open_table(store, 1).get_fragments() for f in each.data_files()
    }
    open_table(store).cleanup_old_versions(older_than=ALL, error_if_tagged_old_versions=False)
    assert only_in_2
    assert not {f"data/{path}" for path in only_in_2} & store.paths("data")


def test_clean_up_keeps_versions_that_branches_use(store: ClockedStore) -> None:
    table = open_table(store)
    branch = table.create_branch("side", 2)
    branch.insert(pa.table({"n": [50]}))
    rows = branch.to_table()
    explained = table.explain_cleanup_old_versions(older_than=ALL)
    assert [(b.name, b.referenced_version) for b in explained.referenced_branches] == [("side", 2)]
    table.cleanup_old_versions(older_than=ALL)
    assert versions(store) == [2, 5]
    assert table.checkout_version(("side", None)).to_table() == rows
    store.advance(DAY)
    branch = table.checkout_version(("side", None))
    assert branch.cleanup_old_versions(older_than=ALL).old_versions == 1
    assert table.checkout_version(("side", None)).to_table() == rows
    assert open_table(store, 2).count_rows() == 12


def test_clean_up_keeps_files_of_unfinished_branch(store: ClockedStore) -> None:
    """Its manifest is there before its name is."""
    table = open_table(store)
    rows = table.create_branch("side", 2).to_table()
    name = store.inner.read_whole("_refs/branches/side.json").to_pybytes()
    store.inner.delete("_refs/branches/side.json")
    needed = {f"data/{path}" for path in _paths(store, 2)}
    explained = table.explain_cleanup_old_versions(older_than=ALL, include_files=True)
    assert explained.stats.old_versions == 4
    assert needed.isdisjoint(each.path for each in explained.candidate_files)
    table.cleanup_old_versions(older_than=ALL)
    store.inner.put("_refs/branches/side.json", name)
    assert table.checkout_version(("side", None)).to_table() == rows


def test_clean_up_keeps_files_of_detached_versions(store: ClockedStore) -> None:
    first = next(path for path in store.paths("_versions") if path.endswith("614.manifest"))
    detached = f"_versions/d{2**63 + 7}.manifest"
    store.put(detached, store.inner.read_whole(first).to_pybytes())
    needed = {f"data/{path}" for path in _paths(store, 1)}
    table = open_table(store)
    explained = table.explain_cleanup_old_versions(older_than=ALL, include_files=True)
    assert needed.isdisjoint(each.path for each in explained.candidate_files)
    assert table.cleanup_old_versions(older_than=ALL).old_versions == 4
    assert needed | {detached} <= store.paths()


def test_clean_up_deletes_old_orphans_only(store: ClockedStore) -> None:
    theirs = {"data/readme.txt", "_indices/abc/page.lance", "notes.lance", "tree/data/x.lance"}
    orphans = {
        ORPHAN,
        ORPHAN.replace("0.lance", "0/01.blob"),
        "data/.tmp_x_1",
        "_deletions/1-2-3.arrow",
        "_transactions/1-0a.txn",
        "_versions/7.manifest-0a",
        "_versions/.tmp_7",
        "_versions/7.manifest#1",
        "_indices/01234567-0123-0123-0123-0123456789ab/x.idx",
    }
    for path in theirs | orphans:
        store.put(path, b"abc")
    table = open_table(store)
    store.advance(7 * DAY)
    assert table.cleanup_old_versions().bytes_removed == 0
    store.advance(timedelta(seconds=1))
    explained = table.explain_cleanup_old_versions(delete_unverified=True, include_files=True)
    assert {each.path for each in explained.candidate_files if each.unverified} >= orphans
    assert table.cleanup_old_versions().bytes_removed == 3 * len(orphans)
    assert not orphans & store.paths()
    assert theirs <= store.paths()
    for path in orphans:
        store.put(path, b"abc")
    assert table.cleanup_old_versions(delete_unverified=True).bytes_removed == 3 * len(orphans)
    assert theirs <= store.paths()
    assert table.to_table()["n"].to_pylist() == [100, 101]


@pytest.mark.parametrize("damage", [b"", b"abc", b"\0" * 40 + b"LANC"])
def test_clean_up_with_damaged_manifest_deletes_no_files(
    store: ClockedStore, damage: bytes
) -> None:
    (first,) = (path for path in store.paths("_versions") if path.endswith("614.manifest"))
    store.inner.put(first, damage)
    before = store.paths()
    with pytest.raises(FormatError, match="manifest"):
        open_table(store).cleanup_old_versions(older_than=ALL, delete_unverified=True)
    assert store.paths() == before


def test_clean_up_with_unknown_manifest_fields_deletes_no_files(store: ClockedStore) -> None:
    path = next(iter(sorted(store.paths("_versions"))))
    data = store.inner.read_whole(path).to_pybytes()
    position = int.from_bytes(data[-16:-8], "little")
    message = table_pb2.Manifest.FromString(data[position + 4 : -16])
    body = message.SerializeToString() + b"\xfa\x3e\x03abc"  # field 1007
    whole = data[:position] + len(body).to_bytes(4, "little") + body + data[-16:]
    store.inner.put(path, whole)
    before = store.paths()
    with pytest.raises(UnsupportedError, match="1007"):
        open_table(store).cleanup_old_versions(older_than=ALL)
    assert store.paths() == before


def test_clean_up_of_recreated_table_is_refused(store: ClockedStore) -> None:
    table = open_table(store)
    for path in store.paths():
        store.inner.delete(path)
    with pytest.raises(NotFoundError):
        table.cleanup_old_versions(delete_unverified=True)
    write(store, [1], "create")
    with pytest.raises(NotFoundError, match="another table"):
        table.cleanup_old_versions(delete_unverified=True)
    assert open_table(store).count_rows() == 1


def test_clean_up_interrupted_after_any_delete_is_finished_by_the_next(store: ClockedStore) -> None:
    """What is left is whole at every moment, and the next run leaves what one run would have."""
    table = open_table(store)
    table.tags.create("second", 2)
    whole = store.copy()
    open_table(whole).cleanup_old_versions(older_than=ALL, error_if_tagged_old_versions=False)
    assert len(whole.deleted) == 9
    for deletes in range(len(whole.deleted)):
        mine = store.copy()
        mine.deletes_left = deletes
        with pytest.raises(CrashError):
            open_table(mine).cleanup_old_versions(
                older_than=ALL, error_if_tagged_old_versions=False, delete_concurrency=1
            )
        for version in versions(mine):
            assert (
                open_table(mine, version).to_table() == table.checkout_version(version).to_table()
            )
        mine.deletes_left = None
        open_table(mine).cleanup_old_versions(error_if_tagged_old_versions=False)
        if versions(mine) == versions(whole):  # else the policy of the first run is forgotten
            assert mine.paths() == whole.paths()
        open_table(mine).cleanup_old_versions(older_than=ALL, error_if_tagged_old_versions=False)
        assert mine.paths() == whole.paths()


@pytest.mark.parametrize("kind", ["before", "after"])
def test_clean_up_with_failed_deletes_is_finished_by_the_next(
    store: ClockedStore, kind: str
) -> None:
    """What failed is counted and done by the next run; a version that stays keeps its files."""
    whole = _run(store.copy())
    for number in range(1, len(whole.deleted) + 1):
        mine = store.copy()
        table = open_table(mine)
        faulty = FaultyStore(mine, Fault(number, kind, frozenset({"delete"})))
        object.__setattr__(table.snapshot, "store", faulty)
        stats = table.cleanup_old_versions(older_than=ALL)
        assert stats.failed_deletes == (number < len(whole.deleted) - 1)  # the last are its notes
        for version in versions(mine):
            open_table(mine, version).to_table()
        assert _run(mine).paths() == whole.paths()


def _run(store: ClockedStore) -> ClockedStore:
    open_table(store).cleanup_old_versions(older_than=ALL)
    return store


def test_clean_up_with_forged_plan_file_keeps_needed_files(store: ClockedStore) -> None:
    """Whoever wrote it, and whatever it says."""
    paths = sorted(store.paths())
    foreign = "notes.txt"
    store.put(foreign, b"abc")
    for text in (json.dumps({"files": [*paths, foreign, "../x", 7]}), "{", "[]", '{"files": 7}'):
        plan = "_versions/.tmp_clean-01234567-0123-0123-0123-0123456789ab.json"
        store.put(plan, text.encode())
        open_table(store).cleanup_old_versions()
        assert sorted(store.paths()) == sorted([*paths, foreign])


def test_clean_up_with_restore_or_tag_before_its_plan_keeps_their_files(
    store: ClockedStore,
) -> None:
    table = open_table(store)

    class Meanwhile(ClockedStore):
        def before(self, verb: str, path: str) -> None:
            super().before(verb, path)
            is_plan = verb == "put" and ".tmp_clean-" in path
            if is_plan and "done" not in self.times:
                self.times["done"] = self.now
                open_table(store).tags.create("late", 1)
                open_table(store, 3).restore()

    busy = Meanwhile(store.inner)  # type: ignore[arg-type] # a MemoryStore
    busy.now, busy.times = store.now, store.times
    other = pennon.LanceDataset.of_snapshot(store.uri, table.snapshot)
    object.__setattr__(other.snapshot, "store", busy)
    with pytest.raises(TaggedVersionsError, match="late"):
        other.cleanup_old_versions(older_than=ALL)
    store.times.pop("done")
    store.inner.delete("_refs/tags/late.json")
    rows = open_table(store, 1).to_table()
    open_table(store).tags.delete("late") if "late" in open_table(store).tags.list() else None
    other.cleanup_old_versions(older_than=ALL, error_if_tagged_old_versions=False)
    assert open_table(store, 1).to_table() == rows
    assert open_table(store).count_rows() == 11


def test_another_clean_up_runs_at_any_step_of_one(store: ClockedStore) -> None:
    """Whoever comes second finds files gone, its own plan among them, and ends well."""

    class Interrupted(ClockedStore):
        step, steps = 0, 0

        def before(self, verb: str, path: str) -> None:
            super().before(verb, path)
            self.steps += 1
            if self.steps == self.step:
                open_table(ClockedStore(self.inner)).cleanup_old_versions(older_than=ALL)  # type: ignore[arg-type]

    last, number = 1, 0
    while number < last:
        number += 1
        twin = store.copy()
        busy = Interrupted(twin.inner)  # type: ignore[arg-type] # a MemoryStore
        busy.now, busy.times = twin.now, twin.times
        table = open_table(busy)
        busy.step, busy.steps = number, 0
        table.cleanup_old_versions(older_than=ALL)
        last = max(last, busy.steps)
        assert versions(twin) == [5], number
        assert open_table(twin).to_table()["n"].to_pylist() == [100, 101]
        assert not [path for path in twin.paths("_versions") if ".tmp" in path], number
        assert twin.paths("data") == {f"data/{path}" for path in _paths(twin, 5)}
    assert number > 20


def test_clean_up_with_delete_rate_limit() -> None:
    from pennon.ops.cleanup.policy import Policy
    from pennon.ops.cleanup.run import Pace, clean

    store = ClockedStore()
    write(store, [1], "create")
    for n in range(4):
        write(store, [n], "overwrite")
    slept: list[float] = []
    pace = Pace(per_second=10, clock=lambda: 0.0, sleep=slept.append)
    removed = clean(open_table(store).snapshot, Policy(ALL), pace)
    assert len(removed.files) == 12
    assert len(slept) >= 10
    with pytest.raises(ArgumentError, match="delete_rate_limit"):
        Pace(per_second=0)


def test_files_of_the_table(tmp_path: Path) -> None:
    pennon.write_dataset(pa.table({"n": range(10)}), tmp_path, max_rows_per_file=5)
    table = pennon.dataset(tmp_path)
    table.delete("n = 2")
    seen: list[tuple[int, int | None]] = []
    tracked = table.tracked_files(progress=lambda *done: seen.append(done)).read_all()
    assert seen == [(1, 2), (2, 2)]
    kinds = tracked["type"].to_pylist()
    assert sorted(kinds[:4]) == ["data file"] * 2 + ["manifest", "transaction file"]
    assert "deletion file" in kinds[4:]
    assert table.tracked_files(min_version=2).read_all()["version"].to_pylist() == [2] * 5
    everything = set(table.all_files().read_all()["path"].to_pylist())
    assert set(tracked["path"].to_pylist()) <= everything
