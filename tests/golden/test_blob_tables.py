"""A column of storage class blob, in a nested table, as pylance 0.19.2 wrote it: read, and brought home."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import pennon
from pennon.errors import FormatError, LanceError, NotFoundError, UnsupportedError
from pennon.io import open_store
from pennon.ops.convert import convert, plan_convert
from pennon.schema.version import FileVersion
from pennon.table.manifest_wire import serialize_manifest_file

GOLDEN: Final = Path(__file__).parent / "datasets" / "v0.19.2" / "blob_storage_class"
FOUR: Final = b"four" * 100
IDS: Final = [2, 3, 4, 5, 7]
BLOBS: Final = [None, b"", FOUR, b"five", None]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Return a copy that may be changed."""
    return str(shutil.copytree(GOLDEN, tmp_path / "t"))


def test_scan_of_columns_in_a_nested_table() -> None:
    """Values come by row id: past deleted rows, of all fragments, in batches of any size."""
    table = pennon.dataset(GOLDEN)
    assert table.version == 4
    read = table.to_table()
    assert read.column_names == ["id", "b", "t", "u"]
    assert read["id"].to_pylist() == IDS
    assert read["b"].to_pylist() == BLOBS
    for size in (1, 2, 100):
        batches = table.to_batches(columns=["b"], batch_size=size)
        assert [each.as_py() for batch in batches for each in batch.column(0)] == BLOBS
    fragments = table.get_fragments()
    assert [f.to_table(columns=["b"])["b"].to_pylist() for f in fragments] == [
        BLOBS[:1],
        BLOBS[1:3],
        BLOBS[3:],
    ]
    assert table.to_table(order_by=["b"])["b"].to_pylist() == [b"", b"five", FOUR, None, None]
    assert pickle.loads(pickle.dumps(table)).to_table() == read
    assert "nested table of blobs" in table.scanner(columns=["b"]).explain_plan(verbose=True)


def test_old_versions_of_a_table_with_a_nested_table() -> None:
    """Each version has its own version of the nested table."""
    first, second = (pennon.dataset(GOLDEN, version=number) for number in (1, 2))
    assert first.to_table()["b"].to_pylist() == [b"one", None, b"", FOUR]
    assert second.to_table()["b"].to_pylist() == [b"one", None, b"", FOUR, b"five", b"six", None]


def test_takes_and_filters_of_columns_in_a_nested_table() -> None:
    table = pennon.dataset(GOLDEN)
    assert table.take([3, 1, 0, 3])["b"].to_pylist() == [b"five", b"", None, b"five"]
    assert table.take([2], columns={"n": "octet_length(b)"})["n"].to_pylist() == [400]
    for condition, ids in {
        "b IS NULL": [2, 7],
        "b IS NOT NULL": [3, 4, 5],
        "octet_length(b) > 3": [4, 5],
        "b = X'66697665'": [5],
        "id > 3 AND b IS NOT NULL": [4, 5],
        "t = 't3' OR octet_length(b) = 4": [3, 5],
    }.items():
        found = table.to_table(filter=condition)
        assert found["id"].to_pylist() == ids, condition
        assert found["b"].to_pylist() == [BLOBS[IDS.index(each)] for each in ids], condition
        assert table.count_rows(filter=condition) == len(ids), condition


def test_blobs_as_files_of_a_nested_table() -> None:
    table = pennon.dataset(GOLDEN)
    ids = table.to_table(columns=["id"], with_row_id=True)["_rowid"].to_pylist()
    for rows in ({"indices": [2, 0, 3]}, {"ids": [ids[2], ids[0], ids[3]]}):
        found = table.take_blobs("b", **rows)
        assert [blob and blob.readall() for blob in found] == [FOUR, None, b"five"]
    (blob,) = table.take_blobs("b", indices=[2])
    assert blob is not None
    assert (blob.size(), blob.read_range(4, 6)) == (400, b"fourfo")
    assert pickle.loads(pickle.dumps(blob)).readall() == FOUR
    assert [data for _, data in table.read_blobs("b", indices=[3, 1, 0])] == [b"five", b"", None]
    assert table.read_blob_ranges("b", [(3, 1, 2)], selector="indices")[0][2] == b"iv"


WRITES: Final[dict[str, Callable[[pennon.LanceDataset], Any]]] = {
    "append": lambda it: pennon.write_dataset(it.to_table(), it.uri, mode="append"),
    "delete": lambda it: it.delete("id = 2"),
    "update": lambda it: it.update({"t": "'x'"}),
    "merge": lambda it: it.merge_insert("id").when_matched_update_all().execute(it.to_table()),
    "add": lambda it: it.add_columns({"z": "id"}),
    "drop": lambda it: it.drop_columns(["t"]),
    "compact": lambda it: it.optimize.compact_files(),
    "index": lambda it: it.create_scalar_index("id", "BTREE"),
    "config": lambda it: it.update_config({"a": "b"}),
    "restore": lambda it: pennon.dataset(it.uri, version=1).restore(),
    "branch": lambda it: it.create_branch("x"),
    "clone": lambda it: it.shallow_clone(it.uri + "2", it.version),
    "deep clone": lambda it: it.deep_clone(it.uri + "2", it.version),
}


@pytest.mark.parametrize("write", WRITES)
def test_writes_to_a_table_with_a_nested_table_are_refused(uri: str, write: str) -> None:
    """The error names the nested table and the way out; nothing changes."""
    table = pennon.dataset(uri)
    with pytest.raises(UnsupportedError, match=r"storage class blob.*_blobs/.*pennon convert"):
        WRITES[write](table)
    assert pennon.dataset(uri).version == 4
    assert pennon.dataset(uri).to_table()["b"].to_pylist() == BLOBS


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_convert_moves_nested_blobs_into_the_table(uri: str, version: str) -> None:
    """The values lie in the table's own data files then, row ids stay, and the table can be written to."""
    before = pennon.dataset(uri).to_table(with_row_id=True)
    convert(plan_convert(open_store(uri), FileVersion.parse(version)))
    table = pennon.dataset(uri)
    assert table.data_storage_version == version
    assert table.schema.field("b").metadata is None
    assert table.to_table(with_row_id=True).cast(before.schema) == before
    table.update({"t": "'x'"}, where="id = 4")
    table.insert(table.to_table(filter="id = 5"))
    assert sorted(table.to_table()["b"].to_pylist(), key=str) == sorted([*BLOBS, b"five"], key=str)
    assert pennon.dataset(uri, version=4).to_table()["b"].to_pylist() == BLOBS


def test_overwrite_of_a_table_with_a_nested_table(uri: str) -> None:
    """An overwrite replaces all rows, so the nested table belongs to older versions alone."""
    rows = pa.table({"b": pa.array([b"x", None], pa.large_binary())})
    table = pennon.write_dataset(rows, uri, mode="overwrite")
    table.insert(rows)
    assert pennon.dataset(uri).to_table()["b"].to_pylist() == [b"x", None] * 2


def test_clean_up_keeps_the_nested_blob_table(uri: str) -> None:
    files = {path: path.read_bytes() for path in Path(uri, "_blobs").rglob("*") if path.is_file()}
    table = pennon.write_dataset(pa.table({"x": [1]}), uri, mode="overwrite")
    table.tags.create("kept", 4)
    table.cleanup_old_versions(
        timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
    )
    assert [each["version"] for each in table.versions()] == [4, 5]
    assert {p: p.read_bytes() for p in Path(uri, "_blobs").rglob("*") if p.is_file()} == files
    assert pennon.dataset(uri, version="kept").to_table()["b"].to_pylist() == BLOBS


def test_damage_of_the_nested_table_is_an_error(uri: str) -> None:
    """Other columns can be read; this one gives no NULLs for values that are not there."""
    data = sorted(Path(uri, "_blobs", "data").iterdir())
    data[0].unlink()
    with pytest.raises(NotFoundError):
        pennon.dataset(uri).to_table()
    older = b"\x88\x01\x01"  # field 17 says version 1, which has four rows
    manifest = replace(pennon.dataset(uri).snapshot.manifest, unknown=older)
    Path(uri, "_versions", "4.manifest").write_bytes(serialize_manifest_file(manifest))
    table = pennon.dataset(uri)
    assert table.to_table(columns=["id"])["id"].to_pylist() == IDS
    with pytest.raises(FormatError, match="nested table"):
        table.get_fragments()[2].to_table(columns=["b"])
    shutil.rmtree(Path(uri, "_blobs"))
    with pytest.raises(LanceError, match="_blobs"):
        pennon.dataset(uri).to_table(columns=["b"])
