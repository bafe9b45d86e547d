"""A table in another file version: the same rows in the same order, one new version."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.core.units import FragmentId
from pennon.errors import DataLossWarning, RetryableConflict, UnsupportedError
from pennon.io import open_store
from pennon.ops.convert import commit_convert, convert, plan_convert
from pennon.schema.version import V0_1, V2_0, V2_1, V2_2, FileVersion
from pennon.table.commit.loop import commit
from pennon.table.deletion import write_deletions
from pennon.table.fragment import Fragment
from pennon.table.operations import Overwrite
from pennon.table.transaction import Transaction
from pennon.table.versions import read_manifest

KIND = pa.map_(pa.string(), pa.int8())
ROWS = 1000
TABLE = pa.table(
    {
        "n": pa.array(range(ROWS), pa.int64()),
        "t": [f"row {n}" for n in range(ROWS)],
        "l": [[n] * (n % 3) for n in range(ROWS)],
        "d": pa.array(["x", "y"] * (ROWS // 2)).dictionary_encode(),
    },
    metadata={"about": "numbers"},
)


def _written(uri: Path, version: str, **options: Any) -> Any:
    return pennon.write_dataset(
        TABLE, uri, data_storage_version=version, max_rows_per_file=300, **options
    )


@pytest.mark.parametrize(
    ("version", "to"),
    [
        *(("0.1", V2_1), ("0.1", V2_0), ("2.1", V0_1), ("2.0", V2_1), ("2.1", V2_1)),
        *(("0.1", V2_2), ("2.1", V2_2), ("2.2", V0_1), ("2.2", V2_0)),
    ],
)
def test_convert_keeps_rows_and_schema(version: str, to: FileVersion, tmp_path: Path) -> None:
    old = _written(tmp_path, version)
    manifest = convert(plan_convert(open_store(tmp_path), to))
    new = pennon.dataset(tmp_path)
    assert new.version == manifest.version == 2
    assert new.data_storage_version == str(to)
    assert new.schema.equals(old.schema, check_metadata=True)
    assert new.to_table().to_pylist() == TABLE.to_pylist()
    assert [f.count_rows() for f in new.get_fragments()] == [300, 300, 300, 100]
    assert not {f.fragment_id for f in new.get_fragments()} & {0, 1, 2, 3}
    assert manifest.schema == read_manifest(open_store(tmp_path), 1).schema
    assert new.checkout_version(1).to_table().to_pylist() == TABLE.to_pylist()
    assert pennon.write_dataset(TABLE, tmp_path, mode="append").count_rows() == 2 * ROWS
    new.validate()


def test_convert_removes_deleted_rows(tmp_path: Path) -> None:
    _written(tmp_path, "0.1")
    store = open_store(tmp_path)
    head = read_manifest(store)
    dead = write_deletions(store, FragmentId(1), 1, np.arange(10, 60, dtype=np.uint32))
    fragments: list[Fragment] = list(head.fragments)
    old = fragments[1]
    fragments[1] = Fragment(old.id, old.files, old.physical_rows, dead)
    transaction = Transaction(head.version, Overwrite(tuple(fragments), head.schema))
    commit(store, transaction)
    left = [n for n in range(ROWS) if not 310 <= n < 360]
    assert pennon.dataset(tmp_path).to_table()["n"].to_pylist() == left
    convert(plan_convert(store, V2_1))
    new = pennon.dataset(tmp_path)
    assert new.to_table()["n"].to_pylist() == left
    assert all(f.deletion_file() is None for f in new.get_fragments())


def test_convert_tasks_pickle_and_run_in_any_order(tmp_path: Path) -> None:
    _written(tmp_path, "0.1")
    task = pickle.loads(pickle.dumps(plan_convert(open_store(tmp_path), V2_1)))
    made = {number: task.run(number) for number in reversed(range(task.count))}
    commit_convert(task, (made[number] for number in range(task.count)))
    assert pennon.dataset(tmp_path).to_table().to_pylist() == TABLE.to_pylist()


def test_convert_conflicts_with_a_concurrent_append(tmp_path: Path) -> None:
    _written(tmp_path, "0.1")
    task = plan_convert(open_store(tmp_path), V2_1)
    made = [task.run(number) for number in range(task.count)]
    pennon.write_dataset(TABLE, tmp_path, mode="append")
    with pytest.raises(RetryableConflict):
        commit_convert(task, made)
    assert pennon.dataset(tmp_path).count_rows() == 2 * ROWS
    assert pennon.dataset(tmp_path).data_storage_version == "0.1"


def test_convert_of_empty_table(tmp_path: Path) -> None:
    pennon.write_dataset(TABLE.slice(0, 0), tmp_path, data_storage_version="0.1")
    convert(plan_convert(open_store(tmp_path), V2_1))
    assert pennon.dataset(tmp_path).data_storage_version == "2.1"
    assert pennon.dataset(tmp_path).to_table().num_rows == 0


def test_convert_to_0_1_warns_of_lost_nulls(tmp_path: Path) -> None:
    pennon.write_dataset(pa.table({"a": [1, None]}), tmp_path)
    with pytest.warns(DataLossWarning, match="'a': 1 NULLs"):
        convert(plan_convert(open_store(tmp_path), V0_1))
    assert pennon.dataset(tmp_path).to_table()["a"].to_pylist() == [1, 0]


def test_convert_to_unsupported_version_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    pennon.write_dataset(pa.table({"a": pa.array([{}], pa.struct([]))}), tmp_path)
    with pytest.raises(UnsupportedError, match=r"2\.3 cannot be written yet"):
        plan_convert(store, FileVersion.parse("next"))
    with pytest.raises(UnsupportedError, match="column 'a'"):
        plan_convert(store, V0_1)


FIXED = pa.table({"v": pa.array([[{"x": 1}] * 2], pa.list_(pa.struct([("x", pa.int8())]), 2))})


def test_convert_of_2_2_types_to_older_versions_is_refused(tmp_path: Path) -> None:
    pennon.write_dataset(FIXED.slice(0, 0), tmp_path, data_storage_version="2.2")
    for version in (V0_1, V2_0, V2_1):
        with pytest.raises(UnsupportedError, match=rf"column 'v' .* {version}; 2\.2 can"):
            plan_convert(open_store(tmp_path), version)
    assert pennon.dataset(tmp_path).version == 1


_INNER = pa.map_(pa.string(), pa.list_(pa.map_(pa.int32(), pa.int64())))
MAPS = pa.table(
    {
        "n": range(4),
        "m": pa.array(
            [[("a", [[(1, 2), (3, None)], None, []]), ("b", None)], None, [], []], _INNER
        ),
        "s": pa.array([{"m": [("x", 1)]}, {"m": None}, None, {"m": []}], pa.struct([("m", KIND)])),
        "l": pa.array([[[("x", 1)], None], [], None, [[]]], pa.list_(KIND)),
    }
)


@pytest.mark.parametrize("down", [V2_0, V2_1])
def test_convert_of_maps_to_marked_lists_and_back(down: FileVersion, tmp_path: Path) -> None:
    table = MAPS.drop_columns(["s"]) if down == V2_0 else MAPS  # NULL structs
    pennon.write_dataset(table, tmp_path, data_storage_version="2.2", max_rows_per_file=3)
    dataset = pennon.dataset(tmp_path)
    dataset.delete("n = 1")
    whole = dataset.to_table()
    ids = [field.id() for field in dataset.lance_schema.fields()]
    convert(plan_convert(open_store(tmp_path), down))
    lists = pennon.dataset(tmp_path)
    assert lists.data_storage_version == str(down)
    assert lists.schema.field("m").metadata == {b"pennon:logical-type": b"map"}
    assert "map<" not in str(lists.schema)
    assert lists.to_table(columns=["m"])["m"].to_pylist()[0] == [
        {"key": "a", "value": [[{"key": 1, "value": 2}, {"key": 3, "value": None}], None, []]},
        {"key": "b", "value": None},
    ]
    convert(plan_convert(open_store(tmp_path), V2_2))
    again = pennon.dataset(tmp_path)
    assert again.schema.equals(whole.schema, check_metadata=True)
    assert again.to_table().equals(whole)
    assert [field.id() for field in again.lance_schema.fields()] == ids
    again.validate()


IDS = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.mark.parametrize("to", [V2_0, V2_1])
def test_convert_keeps_stable_row_ids_and_row_versions(to: FileVersion, tmp_path: Path) -> None:
    old = _written(tmp_path, "2.0", enable_stable_row_ids=True)
    old.delete("n % 7 = 3")
    old.update({"t": "'changed'"}, where="n BETWEEN 250 AND 420")
    old = pennon.write_dataset(TABLE.slice(0, 50), tmp_path, mode="append")
    before = old.to_table(columns=["n", "t", *IDS])
    assert before["_rowid"].to_pylist() != list(range(len(before)))
    assert len({*before["_row_last_updated_at_version"].to_pylist()}) == 3
    head = read_manifest(open_store(tmp_path))
    manifest = convert(plan_convert(open_store(tmp_path), to))
    new = pennon.dataset(tmp_path)
    assert new.data_storage_version == str(to)
    assert new.to_table(columns=["n", "t", *IDS]) == before
    assert (manifest.next_row_id, manifest.has_stable_row_ids) == (head.next_row_id, True)
    taken = new._take_rows(before["_rowid"].to_pylist()[::-40], columns=["n"])
    assert taken["n"].to_pylist() == before["n"].to_pylist()[::-40]
    appended = pennon.write_dataset(TABLE.slice(0, 1), tmp_path, mode="append")
    assert appended.to_table(columns=["_rowid"])["_rowid"][-1].as_py() == head.next_row_id
