"""Doing an operation again after conflicts."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, IncompatibleConflict, RetryableConflict
from pennon.io import open_store
from pennon.ops.retry import with_retries
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest


@pytest.fixture
def snapshot(tmp_path: object) -> Snapshot:
    uri = f"{tmp_path}/t.lance"
    pennon.write_dataset(pa.table({"a": [1]}), uri)
    pennon.write_dataset(pa.table({"a": [2]}), uri, mode="append")
    store = open_store(uri)
    return Snapshot(store, read_manifest(store, 1))


class Losing:
    """Loses against other writers so many times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.versions: list[int] = []
        self.slept: list[float] = []

    def __call__(self, snapshot: Snapshot) -> str:
        self.versions.append(snapshot.manifest.version)
        if len(self.versions) <= self.times:
            raise RetryableConflict(f"attempt {len(self.versions)}")
        return "done"


def test_retry_begins_on_the_given_version_then_uses_the_newest(
    snapshot: Snapshot,
) -> None:
    work = Losing(2)
    assert with_retries(work, snapshot, sleep=work.slept.append) == "done"
    assert work.versions == [1, 2, 2]
    assert len(work.slept) == 2


@pytest.mark.parametrize("retries", [0, 3])
def test_retry_raises_after_the_last_attempt(snapshot: Snapshot, retries: int) -> None:
    work = Losing(99)
    with pytest.raises(RetryableConflict, match=f"attempt {retries + 1}.*after {retries + 1}"):
        with_retries(work, snapshot, retries, sleep=work.slept.append)
    assert len(work.slept) == retries


def test_retry_stops_at_the_deadline(snapshot: Snapshot) -> None:
    work = Losing(99)
    times = iter([0.0, 5.0, 11.0])
    with pytest.raises(RetryableConflict):
        with_retries(
            work,
            snapshot,
            10,
            timedelta(seconds=10),
            clock=lambda: next(times),
            sleep=work.slept.append,
        )
    assert len(work.versions) == 2


def test_retry_raises_other_errors_at_once(snapshot: Snapshot) -> None:
    def fail(_: Snapshot) -> None:
        message = "never"
        raise IncompatibleConflict(message)

    with pytest.raises(IncompatibleConflict):
        with_retries(fail, snapshot)
    with pytest.raises(ArgumentError, match="conflict_retries"):
        with_retries(fail, snapshot, -1)
