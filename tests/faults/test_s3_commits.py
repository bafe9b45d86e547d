"""Several processes commit to one table in a bucket, on a good day and on a bad one."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import pennon
from tests.unit.io.s3_server import BUCKET, S3Server, serving_s3

WRITERS = 4
APPENDS = 10

WRITER = """
import json, sys
import pyarrow as pa
import pennon
from pennon.errors import CommitStateUnknown

uri, options, number, appends, version = json.loads(sys.argv[1])
done, unknown = [], []
for turn in range(appends):
    mine = number * 1000 + turn
    rows = pa.table({"id": [mine], "text": [f"row {mine}"]})
    try:
        pennon.write_dataset(rows, uri, mode="append", storage_options=options)
    except CommitStateUnknown:
        unknown.append(mine)
    else:
        done.append(mine)
print(json.dumps([done, unknown]))
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with serving_s3() as server:
        yield server


def _race(s3: S3Server, uri: str, version: Any) -> tuple[list[int], list[int]]:
    """Let processes append; return the ids of which they say it is done, and not known."""
    options = {**s3.options, "client_retry_timeout": "20"}
    empty = pa.table({"id": pa.array([], pa.int64()), "text": pa.array([], pa.string())})
    pennon.write_dataset(empty, uri, storage_options=options, data_storage_version=version)
    arguments = [json.dumps([uri, options, n, APPENDS, version]) for n in range(WRITERS)]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, each], stdout=subprocess.PIPE, text=True)
        for each in arguments
    ]
    done: list[int] = []
    unknown: list[int] = []
    for writer in writers:
        output, _ = writer.communicate(timeout=250)
        assert writer.returncode == 0
        mine = json.loads(output)
        done += mine[0]
        unknown += mine[1]
    return done, unknown


def _check(s3: S3Server, uri: str, done: list[int], unknown: list[int]) -> None:
    """Each row that was promised is there once; none that was never promised, none twice."""
    dataset = pennon.dataset(uri, storage_options=s3.options)
    found = Counter(dataset.to_table()["id"].to_pylist())
    assert len(done) + len(unknown) == WRITERS * APPENDS
    assert set(found.values()) == {1}
    assert set(done) <= set(found) <= {*done, *unknown}
    versions = [version["version"] for version in dataset.versions()]
    assert versions == list(range(1, len(found) + 2))
    texts = dataset.to_table(columns=["text"])["text"].to_pylist()
    assert sorted(texts) == sorted(f"row {number}" for number in found)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_all_appends_of_all_processes_are_there(s3: S3Server, version: str) -> None:
    uri = f"s3://{BUCKET}/race{version}/t.lance"
    done, unknown = _race(s3, uri, version)
    assert not unknown
    _check(s3, uri, done, unknown)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_store_that_throttles_and_loses_answers(s3: S3Server, seed: int) -> None:
    """One request in ten is refused, one in ten does its work and is answered by a failure."""
    uri = f"s3://{BUCKET}/bad{seed}/t.lance"
    dice, lock = random.Random(seed), threading.Lock()

    def trouble(_: object, work: Any) -> str | None:
        with lock:
            roll = dice.random()
        if roll < 0.1:
            return dice.choice(["503 Slow Down", "429 Too Many Requests", "500 Internal Error"])
        if roll < 0.2:
            work()
            return dice.choice(["500 Internal Error", "503 Slow Down"])
        return None

    s3.fault = trouble
    try:
        done, unknown = _race(s3, uri, "2.1")
    finally:
        s3.fault = None
    _check(s3, uri, done, unknown)
    assert len(unknown) <= WRITERS
