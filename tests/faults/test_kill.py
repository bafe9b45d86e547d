"""Kill -9 at each step of an operation: the table is at the old or the new version, and usable.

Local writes are killed before each system call that changes anything, and in the midst of each write.
Of other stores each change is a step: what a process leaves that dies after the n-th of them is all
that it can leave, for to die before the next one, or at a request that only asks, leaves the same.
So the four steps of the external commit are steps here, whatever the operation.

On disk, and with SQLite, that is done for all operations; through S3, where a request takes its time,
for the three that differ most in what they commit; and at every second or fifth step of two more.
The table is put straight into the server's memory for that, and most of the looking is done in
a copy of what lies there.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pennon.io.memory import _STORES
from pennon.io.store import Store
from pennon.table.external import Entry, ExternalStore
from pennon.table.external.manifests import is_staged
from pennon.table.versions import list_locations
from pennon.testing import MemoryStore
from tests.faults.killing import Place, dies_after_change, dies_at_system_call
from tests.faults.operations import (
    OPERATIONS,
    Operation,
    Rows,
    check,
    check_that_work_goes_on,
    copy_memory,
    dataset_of,
    make_table,
    outcomes,
    rows_of,
)
from tests.unit.io import dynamodb_tables
from tests.unit.io.s3_objects import objects_below, put_objects
from tests.unit.io.s3_server import BUCKET, S3Server, serving_s3

REMOTE = {"append": 1, "delete": 1, "compact": 1, "update": 2, "clean up": 5}
"""Each step, or each second or fifth."""
_NAMES = itertools.count()


@pytest.fixture(scope="module")
def base() -> MemoryStore:
    store = MemoryStore(uuid.uuid4().hex)
    make_table(store)
    return store


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with serving_s3() as server:
        dynamodb_tables.create_table(server)
        yield server


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder in memory if the system has one: SQLite syncs whatever one tells it."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as path:
        yield Path(path)


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def put_copy(base: Store, target: Store) -> None:
    """Copy a table; its manifests are committed, so that a manifest store knows them."""
    for path, _ in base.list_names(""):
        is_manifest = "_versions/" in path
        put = target.put_if_absent if is_manifest else target.put
        put(path, base.read_whole(path).to_pybytes())


class OnDisk:
    """Tables in a folder; SQLite grants their versions if it is told to."""

    def __init__(self, folder: Path, *, sqlite: bool = False) -> None:
        self.folder, self.sqlite = folder, sqlite

    def new_place(self, base: MemoryStore) -> Place:
        path = self.folder / f"{next(_NAMES)}.lance"
        query = f"?sqliteFile={self.folder}/m.db"
        place = Place(f"file+sqlite://{path}{query}" if self.sqlite else str(path))
        put_copy(base, place.store)
        return place

    def copy(self, place: Place) -> Store:
        return place.store

    def clear(self, place: Place) -> None:
        path = place.uri.removeprefix("file+sqlite://").partition("?")[0]
        shutil.rmtree(path)


class InBucket:
    """Tables in the bucket of a server; DynamoDB grants their versions if it is told to."""

    def __init__(self, s3: S3Server, *, dynamodb: bool = False) -> None:
        self.s3, self.dynamodb = s3, dynamodb

    def new_place(self, base: MemoryStore) -> Place:
        folder = f"kill/{next(_NAMES)}.lance"
        objects = {path: base.read_whole(path).to_pybytes() for path, _ in base.list_names("")}
        put_objects(BUCKET, {f"{folder}/{path}": body for path, body in objects.items()})
        if not self.dynamodb:
            return Place(f"s3://{BUCKET}/{folder}", self.s3.options)
        uri = f"s3+ddb://{BUCKET}/{folder}?ddbTableName={dynamodb_tables.TABLE}"
        place = Place(uri, dynamodb_tables.options(self.s3))
        manifests = _external(place.store).manifests
        for at in list_locations(base):
            manifests.put_if_not_exists(Entry(at.version, at.path, len(objects[at.path])))
        return place

    def copy(self, place: Place) -> Store:
        """Return a copy in memory of what lies in the bucket; what is half done is finished first."""
        store = place.store
        for at in list_locations(store):
            if isinstance(store, ExternalStore):
                entry = store.manifests.get(at.version)
                assert entry is not None
                assert not is_staged(entry)
        prefix = place.uri.partition(f"{BUCKET}/")[2].partition("?")[0]
        _STORES.pop("kill-copy", None)
        copy = MemoryStore("kill-copy")
        for path, body in objects_below(BUCKET, f"{prefix}/").items():
            copy.put(path, body)
        return copy

    def clear(self, place: Place) -> None:
        """Do nothing: who comes next looks elsewhere."""


def _external(store: Store) -> ExternalStore:
    assert isinstance(store, ExternalStore)
    return store


@dataclass(frozen=True)
class Trial:
    """An operation on a table, which dies at a step of it; and the rows that may be there then."""

    operation: Operation
    base: MemoryStore
    places: OnDisk | InBucket
    before: Rows
    allowed: set[Rows]

    def dies(self, dies: Callable[[Place], bool]) -> bool:
        """Tell whether it died; judge what is left, and go on with it."""
        gaps = self.operation.cleans
        place = self.places.new_place(self.base)
        self.operation.prepare(dataset_of(place.store))
        died = dies(place)
        check(self.places.copy(place), self.allowed, gaps=gaps, reads_all=False)
        assert died or self.operation.done(place.store, self.before)
        check_that_work_goes_on(self.operation, place.store, self.before)
        left = self.places.copy(place)
        check(left, {rows_of(left)}, gaps=gaps)
        self.places.clear(place)
        return died


def run_steps(
    name: str,
    base: MemoryStore,
    places: OnDisk | InBucket,
    dies: Callable[[Place, str, int], bool],
    *,
    every: int = 1,
) -> None:
    """Die at each step; judge what is left, and go on with it."""
    operation = OPERATIONS[name]
    allowed = outcomes(operation, copy_memory(base, "kill-outcomes"))
    trial = Trial(operation, base, places, rows_of(base), allowed)
    for step in range(1, 2000, every):
        if not trial.dies(lambda place, step=step: dies(place, name, step)):  # type: ignore[misc]
            assert step > 1
            return
    pytest.fail("there was always one more step")


def test_append_killed_at_some_system_calls(base: MemoryStore, folder: Path) -> None:
    run_steps("append", base, OnDisk(folder), dies_at_system_call, every=4)


def test_append_killed_at_some_steps_of_a_manifest_store(base: MemoryStore, folder: Path) -> None:
    run_steps("append", base, OnDisk(folder, sqlite=True), dies_after_change, every=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_killed_at_each_system_call(base: MemoryStore, folder: Path, name: str) -> None:
    run_steps(name, base, OnDisk(folder), dies_at_system_call)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_killed_at_each_step_with_sqlite(
    base: MemoryStore, folder: Path, name: str
) -> None:
    run_steps(name, base, OnDisk(folder, sqlite=True), dies_after_change)


@pytest.mark.slow
@pytest.mark.parametrize("dynamodb", [False, True])
@pytest.mark.parametrize("name", REMOTE)
def test_operations_killed_at_each_step_with_s3(
    base: MemoryStore, s3: S3Server, name: str, dynamodb: bool
) -> None:
    run_steps(name, base, InBucket(s3, dynamodb=dynamodb), dies_after_change, every=REMOTE[name])
