"""Eight processes append to one table at once: each row that was promised is there once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.table.external import ExternalStore
from pennon.table.external.manifests import is_staged
from pennon.table.transaction_wire import read_transaction
from pennon.table.versions import list_locations, read_manifest_at
from tests.faults.killing import Place
from tests.unit.io import dynamodb_tables
from tests.unit.io.s3_server import BUCKET, S3Server, serving_s3

WRITER = """
import json, sys
import pyarrow as pa
import pennon
from pennon.errors import RetryableConflict

def append(rows):
    # Append, though the race for the next version be lost as often as a commit tries.
    lost = 0
    while True:
        try:
            pennon.write_dataset(rows, uri, mode="append", storage_options=options)
        except RetryableConflict:
            lost += 1
        else:
            return lost

uri, options, number, appends = json.loads(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for turn in range(appends):
    mine = number * 1000 + turn
    print(mine, append(pa.table({"id": [mine]})), flush=True)
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with serving_s3() as server:
        dynamodb_tables.create_table(server)
        yield server


def start(script: str, place: Place, number: int, appends: int) -> subprocess.Popen[str]:
    arguments = json.dumps([place.uri, place.options, number, appends])
    return subprocess.Popen(
        [sys.executable, "-c", script, arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run_writers(script: str, place: Place, writers: int, appends: int) -> list[tuple[int, int]]:
    """Let processes begin together; return what they say: ids, and a number for each."""
    running = [start(script, place, number, appends) for number in range(writers)]
    for each in running:
        assert each.stdout.readline() == "ready\n"
    for each in running:
        each.stdin.write("go\n")
        each.stdin.flush()
    said: list[tuple[int, int]] = []
    for each in running:
        output, _ = each.communicate(timeout=600)
        assert each.returncode == 0
        said += [(int(mine), int(more)) for mine, more in map(str.split, output.splitlines())]
    return said


def make_empty(place: Place) -> None:
    empty = pa.table({"id": pa.array([], pa.int64())})
    pennon.write_dataset(empty, place.uri, storage_options=place.options)


def race(place: Place, writers: int, appends: int) -> list[int]:
    """Let processes append; return the ids that were acknowledged.

    No more than one commit in twenty may give up; a caller tries that again, as here.
    """
    make_empty(place)
    said = run_writers(WRITER, place, writers, appends)
    assert sum(lost for _, lost in said) <= writers * appends / 20
    return [mine for mine, _ in said]


def judge(place: Place, acknowledged: list[int]) -> None:
    dataset = pennon.dataset(place.uri, storage_options=place.options)
    found = Counter(dataset.to_table()["id"].to_pylist())
    assert found == Counter(acknowledged)
    assert set(found.values()) == {1}
    store = place.store
    locations = list_locations(store)
    assert [location.version for location in locations] == list(range(1, len(acknowledged) + 2))
    manifests = [read_manifest_at(store, location) for location in locations]
    assert len({read_transaction(store, manifest) for manifest in manifests}) == len(manifests)
    for number, manifest in enumerate(manifests):
        assert len(manifest.fragments) == number
    if isinstance(store, ExternalStore):
        entries = [store.manifests.get(location.version) for location in locations]
        assert [entry.path for entry in entries if entry] == [it.path for it in locations]
        assert not any(is_staged(entry) for entry in entries if entry)


@pytest.fixture
def places(s3: S3Server, tmp_path: Path) -> Callable[[str], Place]:
    external = f"ddbTableName={dynamodb_tables.TABLE}"
    known = {
        "local": Place(str(tmp_path / "t.lance")),
        "local, sqlite": Place(f"file+sqlite://{tmp_path}/t.lance?sqliteFile={tmp_path}/m.db"),
        "s3": Place(f"s3://{BUCKET}/{tmp_path.name}/t.lance", s3.options),
        "s3, dynamodb": Place(
            f"s3+ddb://{BUCKET}/{tmp_path.name}/t.lance?{external}", dynamodb_tables.options(s3)
        ),
    }
    return known.__getitem__


@pytest.mark.slow
@pytest.mark.timeout(700)
@pytest.mark.parametrize("where", ["local", "local, sqlite", "s3", "s3, dynamodb"])
def test_concurrent_appends_of_eight_processes(places: Callable[[str], Place], where: str) -> None:
    place = places(where)
    acknowledged = race(place, 8, 50)
    assert len(acknowledged) == 400
    judge(place, acknowledged)


@pytest.mark.parametrize("where", ["local, sqlite", "s3, dynamodb"])
def test_concurrent_appends_of_three_processes(places: Callable[[str], Place], where: str) -> None:
    place = places(where)
    acknowledged = race(place, 3, 3)
    assert len(acknowledged) == 9
    judge(place, acknowledged)


UNLUCKY = """
import json, sys
import pyarrow as pa
import pennon
from pennon.errors import CommitStateUnknown, RetryableConflict, StoreError

uri, options, number, appends = json.loads(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for turn in range(appends):
    mine = number * 1000 + turn
    rows = pa.table({"id": [mine]})
    try:
        pennon.write_dataset(rows, uri, mode="append", storage_options=options)
    except CommitStateUnknown:
        print(mine, 2, flush=True)
    except (RetryableConflict, StoreError):
        print(mine, 1, flush=True)
    else:
        print(mine, 0, flush=True)
"""


@pytest.mark.slow
@pytest.mark.timeout(700)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("where", ["s3", "s3, dynamodb"])
def test_concurrent_appends_to_failing_s3_keep_acknowledged_rows(
    s3: S3Server, places: Callable[[str], Place], where: str, seed: int
) -> None:
    """One request in ten is refused, one in ten does its work and is answered by a failure.

    What is acknowledged is there, what failed is not; of what is not known, there may be either.
    """
    place = places(where)
    make_empty(place)
    dice = random.Random(seed)

    def trouble(_: object, work: Callable[[], Any]) -> str | None:
        roll = dice.random()  # the server asks for it under its lock
        if roll < 0.1:
            return dice.choice(["503 Slow Down", "429 Too Many Requests", "500 Internal Error"])
        if roll < 0.2:
            work()
            return dice.choice(["500 Internal Error", "503 Slow Down"])
        return None

    s3.fault = trouble
    try:
        said = run_writers(UNLUCKY, place, 4, 8)
    finally:
        s3.fault = None
    done = {mine for mine, outcome in said if outcome == 0}
    unknown = {mine for mine, outcome in said if outcome == 2}
    dataset = pennon.dataset(place.uri, storage_options=place.options)
    found = dataset.to_table()["id"].to_pylist()
    assert len(found) == len(set(found))
    assert done <= set(found) <= done | unknown
    assert len(done) > len(said) / 2
    judge(place, found)
