"""Scarce memory, disk and descriptors: no waste, and typed errors that lose no rows."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import pennon
from pennon.errors import LanceError
from pennon.table.commit.clock import Clock
from pennon.table.commit.options import CommitOptions

MIB = 1 << 20
ROOT = Path(__file__).parents[2]
TABLE = pa.table({"n": list(range(60)), "t": [f"text {n}" for n in range(60)]})


def run(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.limits.scarce", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_memory_and_descriptors_do_not_grow_with_rounds(tmp_path: Path, count: int) -> None:
    (before, files_before), (after, files_after) = run("cycles", str(tmp_path), str(count))["held"]
    assert files_after <= files_before
    assert after - before < 40 * MIB


def test_a_table_of_more_files_than_may_be_open(tmp_path: Path) -> None:
    told = run("files", str(tmp_path))
    assert told["rows"] == 2000
    assert told["open"] < 40


@pytest.mark.parametrize("room_mib", [100, 300])
def test_little_address_space_is_a_typed_error_at_most(tmp_path: Path, room_mib: int) -> None:
    told = run("memory", str(tmp_path), str(room_mib))
    deleted = 0 if "delete" in told["failed"] else told["rows"]
    assert told["rows"] == told["distinct"]
    assert told["rows"] in {400_000, 399_600, 401_000, 400_600}, deleted


OPERATIONS: dict[str, Callable[[str], object]] = {
    "append": lambda uri: pennon.write_dataset(TABLE, uri, mode="append"),
    "overwrite": lambda uri: pennon.write_dataset(TABLE, uri, mode="overwrite"),
    "delete": lambda uri: pennon.dataset(uri).delete("n % 7 = 1"),
    "update": lambda uri: pennon.dataset(uri).update({"t": "'new'"}, where="n % 7 = 1"),
    "merge": lambda uri: (
        pennon.dataset(uri)
        .merge_insert("n")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(TABLE.slice(50))
    ),
    "add_columns": lambda uri: pennon.dataset(uri).add_columns({"m": "n + 1"}),
    "compact": lambda uri: pennon.dataset(uri).optimize.compact_files(),
    # a name of its own each time: one whose folder was not synced is there all the same
    "tag": lambda uri: pennon.dataset(uri).tags.create(f"t{uuid4().hex}", 1),
}
REFUSED = {"write": errno.ENOSPC, "fsync": errno.ENOSPC, "mkdir": errno.ENOSPC, "link": errno.EROFS}


def state(uri: str) -> tuple[list[dict[str, Any]], int]:
    dataset = pennon.dataset(uri)
    dataset.validate()
    rows = sorted(dataset.to_table().to_pylist(), key=lambda row: (row["n"], row["t"]))
    return rows, dataset.version


@pytest.mark.parametrize("verb", REFUSED)
@pytest.mark.parametrize("name", OPERATIONS)
def test_disk_failure_at_any_step_keeps_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, verb: str
) -> None:
    """The n-th call fails, and all behind it, for every n; then the disk is well again.

    Nobody waits between the tries of a commit: the disk would not be well before.
    """
    impatient = partial(CommitOptions, clock=Clock(sleep=lambda _: None))
    monkeypatch.setattr("pennon.ops.commit.CommitOptions", impatient)
    uri = str(tmp_path / "t")
    pennon.write_dataset(TABLE, uri, max_rows_per_file=20)
    pennon.write_dataset(TABLE, uri, mode="append")
    pennon.dataset(uri).delete("n = 0")
    before = state(uri)
    does: Any = getattr(os, verb)
    for allowed in range(200):
        left = [allowed]

        def refused(*arguments: Any, left: list[int] = left, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(REFUSED[verb], os.strerror(REFUSED[verb]))
            return does(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(os, verb, refused)
            try:
                OPERATIONS[name](uri)
            except LanceError:
                failed = True
            else:
                failed = False
        if not failed:
            break
        now = state(uri)
        # a commit that was linked before the disk refused to sync it has landed, whole
        if now != before:
            assert now[1] == before[1] + 1
            break
    else:
        pytest.fail("the operation never succeeds")
    state(uri)
    assert not list((tmp_path / "t").rglob(".tmp_*"))
