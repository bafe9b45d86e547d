"""Tables that old releases of Lance wrote have the contents that their README lists."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon
from pennon.errors import FormatError, LanceError, NotFoundError
from pennon.ops.commit_checks.contents import contents_of
from pennon.schema.named_fields import named_fields

DATASETS = Path(__file__).parent / "datasets"

# folder, latest version, rows
READABLE = [
    ("v0.7.5/with_deletions", 2, 90),
    ("v0.8.0/migrated_from_v0.7.5", 3, 92),
    ("v0.8.14/corrupt_index", 5, 1900),
    ("v0.10.5/corrupt_schema", 6, 4),
    ("v0.15.0/v1_with_files.lance", 1, 3),
    ("v0.16.0/wrong_data_version_no_fix.lance", 2, 4),
    ("v0.13.0/0.13.0_string_encoding.lance", 1, 3),
    ("v0.15.0/v2_no_files.lance", 1, 0),
    ("v0.15.0/v2_with_files.lance", 1, 3),
    # The manifest says 0.1, but the files are of the preview of 2.0, marked (0, 3).
    ("v0.16.0/wrong_data_version_can_fix.lance", 2, 3),
    ("v0.18.2/index_no_details.lance", 2, 100),
    ("v0.20.0/old_btree_bitmap_indices.lance", 3, 4),
    ("v0.21.0/bad_index_fragment_bitmap", 4, 288),
    ("0.27.0/legacy_fts_index", 2, 3),
    ("v0.27.1/pq_in_schema", 2, 512),
    ("0.36.0/btree_in_index_pkg.lance", 2, 1000),
]
# They read, but they are not whole: two fragments have one id.
NOT_WHOLE = {
    "v0.16.0/wrong_data_version_no_fix.lance": "two fragments have the id 1",
}


@pytest.mark.parametrize(("folder", "version", "rows"), READABLE)
def test_tables_of_old_releases_are_read_and_validated(
    folder: str, version: int, rows: int
) -> None:
    table = pennon.dataset(DATASETS / folder)
    assert table.version == table.latest_version == version
    assert table.count_rows() == rows
    read = table.to_table()
    assert read.num_rows == rows
    assert read.schema == table.schema
    assert sum(batch.num_rows for batch in table.to_batches(batch_size=7)) == rows
    order = list(range(rows))[::-1]
    assert table.take(order).to_pylist() == read.to_pylist()[::-1]
    if folder in NOT_WHOLE:
        with pytest.raises(FormatError, match=NOT_WHOLE[folder]):
            table.validate()
    else:
        table.validate()
    assert [at["version"] for at in table.versions()][-1] == version


@pytest.mark.parametrize("folder", [each for each, _, _ in READABLE])
def test_data_files_of_old_releases_name_their_columns(folder: str) -> None:
    """Footers have the names and types of the table's schema, by which a commit checks new files."""
    snapshot = pennon.dataset(DATASETS / folder).snapshot
    wanted = named_fields(snapshot.manifest.schema)
    files = [file for fragment in snapshot.manifest.fragments for file in fragment.files]
    contents = [contents_of(snapshot, file) for file in files]
    for each in contents:
        assert each is not None
        assert {n: f for n, f in each.named.items() if n in wanted}.items() <= wanted.items()
    assert folder == "v0.15.0/v2_no_files.lance" or any(each and each.named for each in contents)


def test_fields_with_duplicate_ids_have_their_own_values(tmp_path: Path) -> None:
    """``b`` is x * 4 and ``c`` x * 5: the dropped columns that had their ids are x * 3 and -x."""
    shutil.copytree(DATASETS / "v0.10.5" / "corrupt_schema", tmp_path / "t")
    table = pennon.dataset(tmp_path / "t")
    rows = pa.table({"x": range(4), "y": [0, 2, 4, 6], "b": [0, 4, 8, 12], "c": [0, 5, 10, 15]})

    def check(rows: pa.Table) -> None:
        numbers = list(range(len(rows)))[::-1]
        assert table.to_table().equals(rows)
        assert table.take(numbers).equals(rows.take(numbers))
        for name in rows.column_names:
            assert table.to_table([name]).equals(rows.select([name]))
            kept = rows.filter(pc.field(name) >= rows[name][1])
            assert table.to_table(filter=f"{name} >= {rows[name][1]}").equals(kept)
            assert table.count_rows(f"{name} >= {rows[name][1]}") == len(kept)

    check(rows)
    table.update({"c": "c + b"}, where="b > 8")
    rows = rows.set_column(3, "c", pa.array([0, 5, 10, 27]))
    check(rows)
    table.insert(rows.slice(1, 1))
    rows = pa.concat_tables([rows, rows.slice(1, 1)])
    check(rows)
    table.optimize.compact_files()
    check(rows)
    table.drop_columns(["b"])
    check(rows.drop_columns(["b"]))
    table.validate()


def test_take_of_duplicate_row_id_is_refused() -> None:
    """To say which is meant would be to guess; the rows at places of the table are told apart."""
    table = pennon.dataset(DATASETS / "v0.16.0" / "wrong_data_version_no_fix.lance")
    row_ids = table.to_table(columns=[], with_row_id=True)["_rowid"].to_pylist()
    assert row_ids[1] == row_ids[2] == 1 << 32
    assert [table.take([place])["foo"].to_pylist() for place in range(4)] == [[1], [2], [1], [3]]
    assert table._take_rows([row_ids[3], row_ids[0]])["foo"].to_pylist() == [3, 1]
    with pytest.raises(FormatError, match="two fragments have the id 1"):
        table._take_rows(row_ids)


@pytest.mark.parametrize("folder", ["v0.5.9/no_fragments", "v0.15.0/v1_no_files.lance"])
def test_tables_without_fragments_have_no_rows(folder: str) -> None:
    table = pennon.dataset(DATASETS / folder)
    assert table.count_rows() == 0
    assert table.to_table().schema == table.schema


@pytest.mark.parametrize(
    ("folder", "version", "fragments"),
    [
        ("v0.5.9/dataset_with_fragments", 3, 3),
        ("v0.30.0_pre_created_at/index_without_created_at", 2, 1),
    ],
)
def test_missing_data_file_matters_only_when_rows_are_read(
    folder: str, version: int, fragments: int
) -> None:
    table = pennon.dataset(DATASETS / folder)
    assert table.version == version
    assert len(table.get_fragments()) == fragments
    assert len(table.schema) > 0
    with pytest.raises(NotFoundError, match=r"data/.*\.lance"):
        table.to_table()


def test_missing_data_file_of_version_2_0(tmp_path: Path) -> None:
    copy = tmp_path / "t.lance"
    shutil.copytree(DATASETS / "v0.15.0/v2_with_files.lance", copy)
    for file in (copy / "data").iterdir():
        file.unlink()
    table = pennon.dataset(copy)
    assert table.count_rows() == 3
    assert table.versions()[0]["metadata"]["total_rows"] == "3"
    for read in (table.to_table, lambda: table.take([0]), lambda: list(table.to_batches())):
        with pytest.raises(NotFoundError, match=r"data/.*\.lance"):
            read()
    with pytest.raises(LanceError):
        table.validate()


@pytest.mark.parametrize(
    ("folder", "rows"), [("v0.7.5/with_deletions", 90), ("v0.8.0/migrated_from_v0.7.5", 92)]
)
def test_append_corrects_row_counts_of_old_releases(folder: str, rows: int, tmp_path: Path) -> None:
    copy = tmp_path / "t.lance"
    shutil.copytree(DATASETS / folder, copy)
    old = pennon.dataset(copy)
    more = pa.table({"x": pa.array([1, 2, 3], pa.int64())})
    new = pennon.write_dataset(more, copy, mode="append")
    assert new.count_rows() == rows + 3
    assert new.to_table() == pa.concat_tables([old.to_table(), more])
    assert next(f.physical_rows for f in new.get_fragments()) == 100
    assert next(f.num_deletions for f in new.get_fragments()) == 10
    metadata = new.get_version()["metadata"]
    assert (metadata["total_rows"], metadata["total_deletion_file_rows"]) == (str(rows + 3), "10")
    new.validate()
