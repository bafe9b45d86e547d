"""Kill -9 at each step of an operation: the table is at the old or the new version, and usable."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pennon.io import LocalStore
from pennon.io.store import Store
from pennon.testing import Fault, MemoryStore
from tests.faults.killing import Place, dies_at_request, dies_at_system_call
from tests.faults.operations import (
    OPERATIONS,
    check,
    check_that_work_goes_on,
    copy_memory,
    dataset_of,
    make_table,
    outcomes,
    rows_of,
)
from tests.unit.io import dynamodb_tables
from tests.unit.io.s3_server import BUCKET, S3Server, serving_s3

REMOTE = ["append", "delete", "update", "compact"]
_NAMES = itertools.count()


@pytest.fixture(scope="module")
def base() -> MemoryStore:
    store = MemoryStore("kill-base")
    make_table(store)
    return store


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with serving_s3() as server:
        dynamodb_tables.create_table(server)
        yield server


def put_copy(base: Store, target: Store) -> None:
    """Copy a table; its manifests are committed, so that a manifest store knows them."""
    for path, _ in base.list_names(""):
        is_manifest = "_versions/" in path
        put = target.put_if_absent if is_manifest else target.put
        put(path, base.read_whole(path).to_pybytes())


def run_steps(
    name: str,
    base: MemoryStore,
    new_place: Callable[[], Place],
    dies: Callable[[Place, int], bool],
    *,
    every: int = 1,
) -> None:
    """Die at each step; judge what is left, and go on with it."""
    operation = OPERATIONS[name]
    allowed = outcomes(operation, copy_memory(base, "kill-outcomes"))
    before = rows_of(base)
    for step in range(1, 2000, every):
        place = new_place()
        put_copy(base, place.store)
        operation.prepare(dataset_of(place.store))
        died = dies(place, step)
        check(place.store, allowed, gaps=operation.cleans)
        assert died or operation.done(place.store, before)
        check_that_work_goes_on(operation, place.store, before)
        check(place.store, {rows_of(place.store)}, gaps=operation.cleans)
        if isinstance(place.store, LocalStore):
            shutil.rmtree(place.uri)
        if not died:
            assert step > 4
            return
    pytest.fail("there was always one more step")


def local(folder: Path) -> Callable[[], Place]:
    return lambda: Place(str(folder / f"{next(_NAMES)}.lance"))


def sqlite(folder: Path) -> Callable[[], Place]:
    def place() -> Place:
        return Place(f"file+sqlite://{folder}/{next(_NAMES)}.lance?sqliteFile={folder}/m.db")

    return place


def bucket(s3: S3Server) -> Callable[[], Place]:
    return lambda: Place(f"s3://{BUCKET}/kill/{next(_NAMES)}.lance", s3.options)


def dynamodb(s3: S3Server) -> Callable[[], Place]:
    options, query = dynamodb_tables.options(s3), f"ddbTableName={dynamodb_tables.TABLE}"
    return lambda: Place(f"s3+ddb://{BUCKET}/kill/{next(_NAMES)}.lance?{query}", options)


def at_system_calls(name: str) -> Callable[[Place, int], bool]:
    return lambda place, step: dies_at_system_call(place, name, step)


def at_requests(name: str, kind: str) -> Callable[[Place, int], bool]:
    return lambda place, step: dies_at_request(place, name, Fault(step, kind))


def test_kill_an_append_at_some_steps(base: MemoryStore, tmp_path: Path) -> None:
    run_steps("append", base, local(tmp_path), at_system_calls("append"), every=9)


def test_kill_an_append_at_some_steps_of_a_manifest_store(
    base: MemoryStore, tmp_path: Path
) -> None:
    run_steps("append", base, sqlite(tmp_path), at_requests("append", "after"), every=5)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_kill_at_each_system_call(base: MemoryStore, tmp_path: Path, name: str) -> None:
    run_steps(name, base, local(tmp_path), at_system_calls(name))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_kill_at_each_step_with_sqlite(
    base: MemoryStore, tmp_path: Path, name: str, kind: str
) -> None:
    run_steps(name, base, sqlite(tmp_path), at_requests(name, kind))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("name", REMOTE)
def test_kill_at_each_request_to_s3(base: MemoryStore, s3: S3Server, name: str, kind: str) -> None:
    run_steps(name, base, bucket(s3), at_requests(name, kind))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("name", REMOTE)
def test_kill_at_each_request_to_s3_and_dynamodb(
    base: MemoryStore, s3: S3Server, name: str, kind: str
) -> None:
    run_steps(name, base, dynamodb(s3), at_requests(name, kind))
