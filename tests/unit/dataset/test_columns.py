"""Column changes through the public API: files, schemas, and refusals."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.dataset.metadata import DataFile, FragmentMetadata
from pennon.dataset.new_columns import plan_new_columns
from pennon.errors import (
    ArgumentError,
    DataLossWarning,
    IncompatibleConflict,
    InvalidSchemaError,
    NotFoundError,
    RetryableConflict,
    SchemaMismatchError,
    UnsupportedError,
)
from pennon.file.container.write_limits import RowGroups
from pennon.file.open import create_data_file
from pennon.io import open_store
from pennon.ops.columns.add import commit_add, plan_sql_columns
from pennon.ops.columns.alter import alter_columns, plan_alter
from pennon.ops.columns.alterations import Alteration
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V0_1
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore
from tests.unit.columns import TABLE, bytes_of, files_of, made

DATASETS = Path(__file__).parents[2] / "golden" / "datasets"
VERSIONS = ["0.1", "2.0", "2.2"]


@pytest.mark.parametrize("version", VERSIONS)
def test_add_columns_writes_new_files_only(tmp_path: Path, version: str) -> None:
    dataset = made(tmp_path, version)
    before, old = bytes_of(tmp_path), dataset.checkout_version(2)
    dataset.add_columns({"c": "a + 1", "d": "b"})
    after = bytes_of(tmp_path)
    assert {name: after[name] for name in before} == before
    assert len(after) == 6
    assert files_of(dataset) == [[[0, 1], [2, 3]]] * 3
    expected = [row | {"c": row["a"] + 1, "d": row["b"]} for row in old.to_table().to_pylist()]
    assert dataset.to_table().to_pylist() == expected
    assert old.to_table().num_columns == 2
    dataset.validate()


def test_add_columns_of_a_thousand_fragments() -> None:
    """No file that is there is written, and each fragment gets one more."""
    data = pa.table({"a": range(2000)})
    dataset = pennon.write_dataset(data, "memory://a-thousand-fragments", max_rows_per_file=2)
    store = dataset.snapshot.store
    before = {path: bytes(store.read_whole(path)) for path, _ in store.list_names("data")}
    dataset.add_columns({"b": "a * 2"})
    after = {path: bytes(store.read_whole(path)) for path, _ in store.list_names("data")}
    assert len(after) == 2 * len(before) == 2000
    assert before.items() < after.items()
    assert dataset.to_table(columns=["b"])["b"].to_pylist() == list(range(0, 4000, 2))
    assert dataset.version == 2


def test_add_columns_reads_only_needed_columns(tmp_path: Path) -> None:
    wide = pa.table({"a": range(100), "wide": [bytes([n]) * 10_000 for n in range(100)]})
    store = CountingStore(pennon.write_dataset(wide, tmp_path).snapshot.store)
    plan = plan_sql_columns(Snapshot(store, read_manifest(store)), {"b": "a * 2"})
    store.reset()
    assert plan.task is not None
    plan.task.run(0)
    assert store.counts.asked_bytes < 100_000
    assert store.counts.written_bytes < 2_000


def test_columns_of_nulls_write_no_file(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    before = bytes_of(tmp_path)
    dataset.add_columns(pa.field("n", pa.list_(pa.float32(), 3)))
    dataset.add_columns({"m": "cast(null as string)"})
    assert bytes_of(tmp_path) == before
    assert dataset.to_table(columns=["n", "m"]).to_pylist() == [{"n": None, "m": None}] * 19
    pennon.write_dataset(TABLE, dataset, mode="append")
    assert dataset.checkout_version(5).to_table(columns=["m"]).num_rows == 39


def test_add_columns_skips_field_ids_still_in_files(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    dataset.add_columns({"c": "a", "d": "b"})
    dataset.drop_columns(["d"])
    dataset.add_columns({"d": "a * 10"})
    assert dataset.lance_schema.field("d").id() == 4
    assert dataset.to_table(columns=["d"])["d"].to_pylist()[:3] == [0, 10, 20]


@pytest.mark.parametrize("groups", [[5, 3], [1, 1, 6], [8]])
def test_row_groups_of_old_files(tmp_path: Path, groups: list[int]) -> None:
    """A column beside files of version 0.1 has their row groups, however they are."""
    data = TABLE.slice(0, 8)
    store = open_store(tmp_path)
    pennon.write_dataset(data.slice(0, 0), tmp_path, data_storage_version="0.1")
    borders = np.cumsum([0, *groups])
    schema = schema_from_arrow(data.schema)
    sink, cut = store.open_writer("data/f.lance"), RowGroups(borders=borders)
    with create_data_file(sink, schema, V0_1, groups=cut) as writer:
        writer.write(data.to_batches()[0])
    fragment = FragmentMetadata(0, [DataFile("f.lance", [0, 1], [], 0, 2)], 8)
    append = pennon.LanceOperation.Append([fragment])
    dataset = pennon.LanceDataset.commit(tmp_path, append, read_version=1)
    dataset.delete("a in (0, 4, 7)")
    dataset.add_columns({"c": "a * 2"})
    assert dataset.to_table(columns=["a", "c"]).to_pydict() == {
        "a": [1, 2, 3, 5, 6],
        "c": [2, 4, 6, 10, 12],
    }
    (found,) = dataset.get_fragments()
    reader = dataset.snapshot.open_file(found.fragment.files[1]).data
    assert reader.row_groups is not None
    assert reader.row_groups.tolist() == borders.tolist()


def test_column_tasks_pickle(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    plans = [
        plan_sql_columns(dataset.snapshot, {"c": "a + 1"}),
        plan_new_columns(dataset.snapshot, {"c": "a + 1"}).plan,
    ]
    for plan in plans:
        task = pickle.loads(pickle.dumps(plan.task))
        fragment = task.run(1)
        assert [list(file.field_ids) for file in fragment.files] == [[0, 1], [2]]
        assert fragment.physical_rows == 8
    altering = plan_alter(dataset.snapshot, [Alteration("a", data_type=pa.int32())])
    task = pickle.loads(pickle.dumps(altering.task))
    assert [list(file.field_ids) for file in task.run(0).files] == [[0, 1], [2]]


def test_alter_columns_keeps_old_files_unchanged(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    before = bytes_of(tmp_path)
    dataset.alter_columns({"path": "a", "data_type": pa.int16(), "name": "A", "nullable": True})
    assert bytes_of(tmp_path).items() > before.items()
    assert dataset.schema == pa.schema([("A", pa.int16()), ("b", pa.string())])
    dataset.alter_columns({"path": "b", "data_type": pa.large_string()})
    assert files_of(dataset) == [[[2], [3]]] * 3  # nothing lies in the first files any more
    assert dataset.to_table().to_pylist()[-1] == {"A": 19, "b": "row 19"}
    dataset.alter_columns()
    assert dataset.version == 5


def test_alter_columns_with_failed_cast_commits_no_version(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    dataset.add_columns({"big": "a * 100"})
    with pytest.raises(ArgumentError, match="Can't cast"):
        dataset.alter_columns({"path": "big", "data_type": pa.int8()})
    assert dataset.latest_version == 3
    assert dataset.to_table()["big"].type == pa.int64()


def test_alter_columns_to_required_checks_live_rows(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    dataset.add_columns({"half": "nullif(a, 0)", "gone": "nullif(a, 9)"})
    with pytest.raises(InvalidSchemaError, match="contains NULL"):
        dataset.alter_columns({"path": "half", "nullable": False})
    dataset.alter_columns({"path": "gone", "nullable": False})  # 9 is deleted
    assert not dataset.schema.field("gone").nullable
    with pytest.raises(SchemaMismatchError):
        pennon.write_dataset(TABLE, dataset, mode="append")


def test_append_after_new_required_column_conflicts(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    stale = pennon.dataset(tmp_path)
    fragments = pennon.fragment.write_fragments(TABLE, tmp_path, mode="append")
    dataset.add_columns({"c": "1"})
    assert not dataset.schema.field("c").nullable
    append = pennon.LanceOperation.Append(fragments)
    with pytest.raises(RetryableConflict):
        pennon.LanceDataset.commit(stale, append, read_version=2)


def test_column_changes_after_concurrent_append_conflict(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    plan = plan_sql_columns(dataset.snapshot, {"c": "a"})
    altering = plan_alter(dataset.snapshot, [Alteration("a", data_type=pa.int32())])
    tightening = plan_alter(dataset.snapshot, [Alteration("b", nullable=False)])
    pennon.write_dataset(pa.table({"a": [1], "b": [None]}, TABLE.schema), dataset, mode="append")
    assert plan.task is not None
    with pytest.raises(RetryableConflict):
        commit_add(plan, [plan.task.run(number) for number in range(3)])
    with pytest.raises(RetryableConflict):
        alter_columns(altering)
    with pytest.raises(RetryableConflict):
        alter_columns(tightening)


def test_merge_joins_columns_by_key_and_row_id(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    other = pa.table({"key": [19, 3, 3, 9], "c": ["x", "y", "z", "gone"]})
    dataset.merge(other, "a", "key")
    found = {row["a"]: row["c"] for row in dataset.to_table().to_pylist()}
    assert found == {n: {3: "z", 19: "x"}.get(n) for n in range(20) if n != 9}
    dataset.merge(pa.table({"_rowid": pa.array([1], pa.uint64()), "d": [5]}), "_rowid")
    assert dataset.to_table(filter="d = 5")["a"].to_pylist() == [1]


def test_merge_at_version_0_1_has_no_nulls_but_of_text(tmp_path: Path) -> None:
    dataset = made(tmp_path, "0.1")
    with pytest.raises(UnsupportedError, match=r"NULL.*column 'c'"):
        dataset.merge(pa.table({"a": [1], "c": [1]}), "a")
    dataset.merge(pa.table({"a": [1], "c": ["x"]}), "a")
    assert dataset.to_table()["c"].null_count == 18


@pytest.mark.filterwarnings("ignore::pennon.errors.DataLossWarning")
def test_add_columns_in_0_1_refuses_nulls_and_dictionaries(tmp_path: Path) -> None:
    dataset = made(tmp_path, "0.1")
    with pytest.raises(UnsupportedError, match="NULLs"):
        dataset.add_columns(pa.field("n", pa.int8()))
    words = pa.array(["x"] * 19).dictionary_encode()
    with pytest.raises(UnsupportedError, match="dictionary"):
        dataset.add_columns(pa.table({"d": words}))
    with pytest.warns(DataLossWarning):
        dataset.add_columns({"n": "nullif(a, 3)"})


def test_add_columns_by_name_keeps_dictionary_types(tmp_path: Path) -> None:
    words = pa.array(["x", None, "y", "x"], pa.dictionary(pa.int16(), pa.string()))
    numbers = pa.array([7, 8, None, 7], pa.int64()).dictionary_encode()
    data = pa.table({"d": words, "s": pa.StructArray.from_arrays([numbers], ["n"])})
    dataset = pennon.write_dataset(data, tmp_path, max_rows_per_file=3, data_storage_version="2.1")
    dataset.add_columns({"a": "d", "b": "s.n", "c": "coalesce(d, 'z')"})
    seen = dataset.to_table()
    assert seen.schema.types[2:] == [words.type, numbers.type, pa.string()]
    assert seen["a"].to_pylist() == words.to_pylist()
    assert seen["b"].to_pylist() == numbers.to_pylist()
    assert seen["c"].to_pylist() == ["x", "z", "y", "x"]


def test_add_columns_of_struct_fields_is_refused(tmp_path: Path) -> None:
    data = pa.table({"s": [{"x": 1}]})
    dataset = pennon.write_dataset(data, tmp_path)
    with pytest.raises(UnsupportedError, match="struct"):
        dataset.add_columns(pa.field("s", pa.struct([("y", pa.int8())])))
    with pytest.raises(InvalidSchemaError, match="already exists"):
        dataset.add_columns({"s": "1"})


@pytest.mark.parametrize(
    ("alteration", "error"),
    [
        ({"name": "x"}, ArgumentError),
        ({"path": "a"}, ArgumentError),
        ({"path": "a", "name": None}, ArgumentError),
        ({"path": "a", "type": "string"}, ArgumentError),
        ({"path": "a", "data_type": "int32"}, TypeError),
        ({"path": "a", "nullable": "no"}, TypeError),
    ],
)
def test_alter_columns_with_incomplete_alterations_is_refused(
    tmp_path: Path, alteration: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        made(tmp_path).alter_columns(alteration)


def test_column_changes_with_invalid_arguments_are_refused(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    with pytest.raises(TypeError):
        dataset.add_columns(3)
    with pytest.raises(TypeError):
        dataset.add_columns({"c": 3})
    with pytest.raises(ArgumentError, match="column 'c'"):
        dataset.add_columns({"c": "nope + 1"})
    with pytest.raises(TypeError):
        dataset.drop_columns("a")
    with pytest.raises(NotFoundError, match="nope"):
        dataset.add_columns(lambda batch: batch, read_columns=["nope"])
    with pytest.raises(UnsupportedError):
        dataset.replace_schema(dataset.schema)
    assert dataset.latest_version == 2


def test_truncate_keeps_schema_and_old_versions(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    dataset.truncate_table()
    assert (dataset.count_rows(), dataset.schema) == (0, TABLE.schema)
    assert dataset.checkout_version(2).count_rows() == 19
    grown = pennon.write_dataset(TABLE, dataset, mode="append")
    assert [f.fragment_id for f in grown.get_fragments()] == [3]


def test_update_of_metadata_config_and_field_metadata(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    assert dataset.update_metadata({"x": "1", "y": None}) == {"x": "1"}
    assert dataset.update_config({"k": "v"}) == dataset.config() == {"k": "v"}
    dataset.delete_config_keys(["k", "absent"])
    assert dataset.config() == {}
    assert dataset.update_schema_metadata({"s": "1"}) == {"s": "1"}
    dataset.update_field_metadata({"a": {"unit": "m"}})
    assert dataset.schema.field("a").metadata == {b"unit": b"m"}
    with pytest.warns(DeprecationWarning, match="update_field_metadata"):
        dataset.replace_field_metadata("a", {"z": "1"})
    with pytest.warns(DeprecationWarning, match="update_schema_metadata"):
        dataset.replace_schema_metadata({})
    assert (dataset.schema.field("a").metadata, dataset.schema_metadata) == ({b"z": b"1"}, {})
    with pytest.raises(NotFoundError):
        dataset.update_field_metadata({"nope": {"a": "b"}})
    with pytest.raises(TypeError):
        dataset.update_config({"a": 1})
    other = pennon.dataset(tmp_path, version=2)
    with pytest.raises(IncompatibleConflict):
        other.update_field_metadata({"a": {"unit": "km"}})


def test_table_with_duplicate_field_ids_is_repaired_by_commits(tmp_path: Path) -> None:
    """A table of Lance 0.10.5: read right, and whole after any commit."""
    shutil.copytree(DATASETS / "v0.10.5" / "corrupt_schema", tmp_path / "t")
    old = pennon.dataset(tmp_path / "t")
    expected = {"b": [0, 4, 8, 12], "c": [0, 5, 10, 15]}
    assert old.to_table(columns=["b", "c"]).to_pydict() == expected
    old.add_columns({"d": "c + 1"})
    assert old.to_table(columns=["b", "c"]).to_pydict() == expected
    assert old.lance_schema.field("d").id() == 6
    assert files_of(old) == [[[0], [1, 2], [4, 5], [6]], [[0, 1, 2, 3], [4, 5], [6]]]
    old.validate()


def test_truncate_after_concurrent_changes_deletes_all_rows(tmp_path: Path) -> None:
    made(tmp_path, "2.1")
    stale = pennon.dataset(tmp_path)
    pennon.dataset(tmp_path).delete("a = 1")
    pennon.dataset(tmp_path).update({"a": "a + 1"}, where="a = 2")
    stale.truncate_table()
    assert pennon.dataset(tmp_path).count_rows() == stale.count_rows() == 0
