"""`LanceDataset.changes`: what each kind of version changes, and columns that are not what they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, NotFoundError, SchemaMismatchError
from tests.unit.scan.remote import open_counted

ROWS = pa.table({"id": [1, 2, 3, 4], "x": [0.5, 1.5, None, float("nan")]})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t.lance")


def shown(reader: pa.RecordBatchReader, *columns: str) -> list[tuple[Any, ...]]:
    """Return changes as tuples: version, kind, columns."""
    names = ["_commit_version", "_change_type", *columns]
    return [tuple(row[name] for name in names) for row in reader.read_all().to_pylist()]


def test_changes_from_version_0_insert_the_rows_of_the_first_version(uri: str) -> None:
    ds = pennon.write_dataset(ROWS, uri)
    assert shown(ds.changes(0), "id") == [(1, "insert", each) for each in (1, 2, 3, 4)]
    assert shown(ds.changes(1)) == []
    changes = ds.changes(0).read_all()
    assert changes.schema.field("_commit_timestamp").type == pa.timestamp("us", "UTC")
    assert changes["_commit_timestamp"][0].as_py() == ds.snapshot.manifest.timestamp


def test_update_with_stable_row_ids_shows_rows_before_and_after(uri: str) -> None:
    ds = pennon.write_dataset(ROWS, uri, enable_stable_row_ids=True)
    ds.update({"x": "id * 2"}, where="id < 3")
    assert shown(ds.changes(1), "id", "x") == [
        (2, "update_preimage", 1, 0.5),
        (2, "update_preimage", 2, 1.5),
        (2, "update_postimage", 1, 2.0),
        (2, "update_postimage", 2, 4.0),
    ]


def test_update_without_stable_row_ids_is_a_deletion_and_an_insertion(uri: str) -> None:
    ds = pennon.write_dataset(ROWS, uri)
    ds.update({"x": "9"}, where="id = 3")
    assert shown(ds.changes(1), "id", "x") == [(2, "delete", 3, None), (2, "insert", 3, 9.0)]


def test_columns_written_in_place_change_rows_with_other_values_only(uri: str) -> None:
    ds = pennon.write_dataset(ROWS, uri)
    (fragment,) = ds.get_fragments()
    new = pa.table({"id": [1, 3, 4], "x": [0.5, 7.0, float("nan")]})
    updated, fields, *_ = fragment.update_columns(new, left_on="id", right_on="id")
    operation = pennon.LanceOperation.Update(
        updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns"
    )
    ds = pennon.LanceDataset.commit(uri, operation, read_version=1)
    assert shown(ds.changes(1), "id", "x") == [
        (2, "update_preimage", 3, None),
        (2, "update_postimage", 3, 7.0),
    ]


def test_compaction_columns_and_indices_change_no_rows(uri: str) -> None:
    ds = pennon.write_dataset(ROWS, uri, max_rows_per_file=2)
    ds.optimize.compact_files()
    ds.add_columns({"y": "id + 1"})
    ds.drop_columns(["x"])
    ds.create_scalar_index("id", "BTREE")
    assert ds.version > 4
    assert shown(ds.changes(1)) == []


def test_rows_of_old_versions_have_null_in_columns_that_are_new(uri: str) -> None:
    ds = pennon.write_dataset(ROWS.select(["id"]), uri)
    ds.delete("id = 2")
    ds.add_columns({"y": "id + 1"})
    ds.insert(pa.table({"id": [9], "y": pa.array([10], pa.int64())}))
    assert shown(ds.changes(1), "id", "y") == [(2, "delete", 2, None), (4, "insert", 9, 10)]


def test_renamed_column_is_shown_under_its_new_name(uri: str) -> None:
    ds = pennon.write_dataset(ROWS, uri)
    ds.delete("id = 1")
    ds.alter_columns({"path": "x", "name": "z"})
    assert shown(ds.changes(1), "id", "z") == [(2, "delete", 1, 0.5)]


def test_column_with_the_id_of_a_dropped_one_does_not_show_its_values(uri: str) -> None:
    ds = pennon.write_dataset(ROWS, uri)
    ds.drop_columns(["x"])
    ds.optimize.compact_files(target_rows_per_fragment=100, materialize_deletions=True)
    ds = pennon.write_dataset(ROWS.select(["id"]), uri, mode="overwrite")
    ds.add_columns({"w": "id * 0.5"})
    feed = ds.changes(0, 1)
    values = feed.read_all()["w"].to_pylist()
    assert values == [None] * 4


def test_column_that_got_a_wider_type_is_cast(uri: str) -> None:
    ds = pennon.write_dataset(pa.table({"id": pa.array([1, 2], pa.int32())}), uri)
    ds.delete("id = 1")
    ds.alter_columns({"path": "id", "data_type": pa.int64()})
    changes = ds.changes(0).read_all()
    assert changes.schema.field("id").type == pa.int64()
    assert changes["id"].to_pylist() == [1, 2, 1]


def test_changes_refuse_old_values_that_do_not_fit_the_type_of_their_column(uri: str) -> None:
    pennon.write_dataset(pa.table({"id": ["a", "b"]}), uri)
    ds = pennon.write_dataset(pa.table({"id": [1]}), uri, mode="overwrite")
    with pytest.raises(SchemaMismatchError, match="'id' had another type at version 1"):
        ds.changes(0).read_all()
    assert shown(pennon.dataset(uri, version=1).changes(0), "id") == [
        (1, "insert", "a"),
        (1, "insert", "b"),
    ]


def test_restore_with_stable_row_ids_shows_only_rows_that_differ(uri: str) -> None:
    ds = pennon.write_dataset(ROWS, uri, enable_stable_row_ids=True)
    ds.update({"x": "9"}, where="id = 1")
    ds.delete("id = 2")
    pennon.dataset(uri, version=1).restore()
    ds = pennon.dataset(uri)
    assert sorted(shown(ds.changes(3), "id", "x")) == [
        (4, "insert", 2, 1.5),
        (4, "update_postimage", 1, 0.5),
        (4, "update_preimage", 1, 9.0),
    ]


def test_overwrite_deletes_all_rows_and_inserts_the_new_ones(uri: str) -> None:
    pennon.write_dataset(ROWS, uri)
    ds = pennon.write_dataset(ROWS.slice(0, 1), uri, mode="overwrite")
    kinds = [kind for _, kind in shown(ds.changes(1))]
    assert sorted(kinds) == ["delete"] * 4 + ["insert"]


def test_changes_choose_columns(uri: str) -> None:
    ds = pennon.write_dataset(ROWS, uri)
    names = ds.changes(0, columns=["x"]).schema.names
    assert names == ["x", "_change_type", "_commit_version", "_commit_timestamp"]


def test_changes_after_clean_up_name_the_missing_version(uri: str) -> None:
    ds = pennon.write_dataset(ROWS, uri)
    ds.delete("id = 1")
    ds.delete("id = 2")
    ds.cleanup_old_versions(retain_versions=1)
    with pytest.raises(NotFoundError, match=r"version 1 .* was it cleaned up"):
        ds.changes(1).read_all()


@pytest.mark.parametrize("versions", [(2, 1), (-1, 1)])
def test_changes_of_versions_out_of_order_are_refused(uri: str, versions: tuple[int, int]) -> None:
    ds = pennon.write_dataset(ROWS, uri)
    ds.delete("id = 1")
    with pytest.raises(ArgumentError, match="from an older version to a newer one"):
        ds.changes(*versions).read_all()


@pytest.mark.parametrize("stable", [False, True])
def test_changes_read_no_more_than_the_fragments_that_differ(tmp_path: Path, stable: bool) -> None:
    rows = pa.table({"id": range(400_000), "x": [n * 0.5 for n in range(400_000)]})
    ds = pennon.write_dataset(
        rows, tmp_path / "t", max_rows_per_file=100_000, enable_stable_row_ids=stable
    )
    files = [each.data_files()[0] for each in ds.get_fragments()]
    ds.update({"x": "x + 1"}, where="id < 200000 AND id % 100 = 3")
    ds.delete("id > 300000 AND id % 100 = 5")
    touched = [files[0], files[1], files[3], *ds.get_fragments()[-1].data_files()]
    counted, store = open_counted(tmp_path / "t")
    assert counted.changes(1).read_all().num_rows == 2 * 2000 + 1000
    read = sum(each.read_bytes for path, each in store.by_path.items() if path.startswith("data/"))
    assert read <= 1.1 * sum(each.file_size_bytes or 0 for each in touched)
