"""New columns by row address: gaps, deleted rows, refusals, and checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, FormatError, MatchError, OutOfRangeError, UnsupportedError
from pennon.io import open_store
from pennon.ops.columns.add import commit_add
from pennon.ops.columns.addressed import completed, plan_addressed
from pennon.ops.columns.finished import Notes
from pennon.scan.snapshot import Snapshot
from tests.unit.columns import made

NEW = pa.schema([("w", pa.int64()), ("t", pa.string())])
LIVE = [n for n in range(20) if n != 9]
"""The values of ``a``: row n % 8 of fragment n // 8; row 1 of fragment 1 is deleted."""


def batch_of(values: list[int]) -> pa.RecordBatch:
    addresses = [(n // 8 << 32) + n % 8 for n in values]
    columns = {"address": pa.array(addresses, pa.int64()), "w": values, "t": list(map(str, values))}
    return pa.RecordBatch.from_pydict(columns)


def snapshot_of(folder: Path, version: str = "2.1") -> Snapshot:
    made(folder, version)
    return pennon.dataset(folder).snapshot


def added(snapshot: Snapshot, pieces: list[list[int]], *, is_whole: bool) -> dict[int, Any]:
    plan, task = plan_addressed(snapshot, NEW, is_whole=is_whole)
    written = list(task.run(map(batch_of, pieces)))
    commit_add(plan, completed(task, written))
    table = pennon.dataset(snapshot.store.uri)
    table.validate()
    return {row["a"]: (row["w"], row["t"]) for row in table.to_table().to_pylist()}


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_addressed_column_has_the_value_of_each_row(
    tmp_path: Path, version: str, size: int
) -> None:
    pieces = [LIVE[at : at + size] for at in range(0, len(LIVE), size)]
    rows = added(snapshot_of(tmp_path / "t", version), pieces, is_whole=True)
    assert rows == {n: (n, str(n)) for n in LIVE}


@pytest.mark.parametrize(
    "pieces", [[[3, 8, 10, 15]], [[3], [], [8, 9, 10], [15]], [[0, 7], [17, 19]], [[]], [[9]]]
)
def test_addressed_column_without_values_for_rows_is_null(
    tmp_path: Path, pieces: list[list[int]]
) -> None:
    rows = added(snapshot_of(tmp_path / "t"), pieces, is_whole=False)
    come = {n for piece in pieces for n in piece}
    assert rows == {n: (n, str(n)) if n in come else (None, None) for n in LIVE}


def test_a_long_gap_is_filled_in_pieces(tmp_path: Path) -> None:
    rows = pa.table({"a": pa.array(np.arange(200_000))})
    snapshot = pennon.write_dataset(rows, tmp_path / "t").snapshot
    vectors = pa.schema([("v", pa.list_(pa.float32(), 256))])
    plan, task = plan_addressed(snapshot, vectors, is_whole=False)
    values = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(512, np.float32)), 256)
    batch = pa.RecordBatch.from_arrays([pa.array([5, 190_000]), values], names=["address", "v"])
    pa_bytes = pa.total_allocated_bytes()
    (fragment,) = task.run([batch])
    assert pa.total_allocated_bytes() - pa_bytes < 1 << 20
    commit_add(plan, [fragment])
    table = pennon.dataset(tmp_path / "t")
    found = table.to_table(filter="v IS NOT NULL", columns=["a"])
    assert found.column("a").to_pylist() == [5, 190_000]


@pytest.mark.parametrize(
    ("pieces", "error", "words"),
    [
        ([[0, 1, 1]], MatchError, "row 1 of fragment 0 gets several values"),
        ([list(range(9)), [8]], MatchError, "row 0 of fragment 1 gets several values"),
        ([[1, 0]], FormatError, "not come in the order"),
        ([[8], [0]], FormatError, "not come in the order"),
        ([[0, 1]], FormatError, "each of 8 rows of fragment 0, and some did not come"),
        ([[0, 2]], FormatError, "each of 8 rows of fragment 0"),
        ([LIVE[8:]], FormatError, "each of 8 rows of fragment 0"),
        ([[80]], ArgumentError, "rows for fragment 10, which version 2 does not have"),
    ],
)
def test_addressed_column_with_wrong_rows_is_refused(
    tmp_path: Path, pieces: list[list[int]], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        added(snapshot_of(tmp_path / "t"), pieces, is_whole=True)
    assert pennon.dataset(tmp_path / "t").version == 2


def test_addressed_column_with_invalid_addresses_is_refused(tmp_path: Path) -> None:
    _, task = plan_addressed(snapshot_of(tmp_path / "t"), NEW, is_whole=False)
    batch = batch_of([0]).set_column(0, "address", pa.array([None], pa.int64()))
    with pytest.raises(ArgumentError, match="1 rows have no address"):
        list(task.run([batch]))
    beyond = batch_of([0]).set_column(0, "address", pa.array([8], pa.int64()))
    with pytest.raises(OutOfRangeError, match="fragment 0 has 8 rows"):
        list(task.run([beyond]))


def test_version_0_1_keeps_no_null(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="does not keep"):
        added(snapshot_of(tmp_path / "t", "0.1"), [[0, 2]], is_whole=False)
    with pytest.raises(UnsupportedError, match="does not keep"):
        added(pennon.dataset(tmp_path / "t").snapshot, [], is_whole=False)


def test_addressed_column_checkpoint_is_bound_to_its_fragment(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path / "t")
    _, task = plan_addressed(snapshot, NEW, is_whole=True)
    folder = open_store(str(tmp_path / "notes"))
    notes = Notes(folder, task.files, "a")
    assert notes.find(snapshot) == {}
    (first, *_) = snapshot.manifest.fragments
    (new,) = task.run([batch_of(list(range(8)))])
    notes.note(first, new)
    assert notes.find(snapshot) == {first.id: new}
    assert Notes(folder, task.files, "b").find(snapshot) == {}
    assert Notes(None, task.files, "a").find(snapshot) == {}
    other = plan_addressed(snapshot, pa.schema([("w", pa.int32())]), is_whole=True)[1]
    assert Notes(folder, other.files, "a").find(snapshot) == {}
    (path,) = (tmp_path / "notes").iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-3] + b"\xff\xff\xff")
    assert notes.find(snapshot) == {}
    path.write_bytes(whole)
    pennon.dataset(tmp_path / "t").delete("a = 0")
    assert notes.find(pennon.dataset(tmp_path / "t").snapshot) == {}
    (tmp_path / "t" / "data" / new.files[-1].path).unlink()
    assert notes.find(snapshot) == {}
    notes.forget(snapshot.manifest.fragments)
    assert list((tmp_path / "notes").iterdir()) == []
