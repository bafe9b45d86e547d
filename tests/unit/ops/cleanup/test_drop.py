"""Dropping a table."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, NotFoundError, StoreError, UnsupportedError
from pennon.io.memory import MemoryStore
from pennon.io.store import Store
from pennon.ops.cleanup.drop import drop_table
from pennon.ops.write import WriteMode, commit_write, plan_write, write_fragments
from pennon.table.versions import list_locations, read_manifest
from pennon.testing import Fault, FaultyStore

TABLE = pa.table({"a": [1, 2, 3]})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = tmp_path / "above" / "t"
    made = pennon.write_dataset(TABLE, place)
    made.delete("a = 1")
    made.tags.create("first", 1)
    made.create_branch("trial").delete("a = 2")
    (place / "notes" / "deep").mkdir(parents=True)
    (place / "notes" / "deep" / "mine.txt").write_text("x")
    return str(place)


def test_drop_removes_the_whole_table(uri: str) -> None:
    pennon.LanceDataset.drop(uri)
    assert not Path(uri).exists()
    assert Path(uri).parent.exists()
    with pytest.raises(NotFoundError):
        pennon.LanceDataset.drop(uri)
    pennon.LanceDataset.drop(uri, ignore_not_found=True)
    assert pennon.write_dataset(TABLE, uri).version == 1


def test_drop_refuses_folders_other_than_tables(tmp_path: Path, uri: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "precious.txt").write_text("x")
    damaged = tmp_path / "damaged"
    (damaged / "_versions").mkdir(parents=True)
    (damaged / "_versions" / "1.manifest").write_text("x")
    before = sorted(tmp_path.rglob("*"))
    for place in (folder, damaged, Path(uri).parent, Path(uri) / "data"):
        with pytest.raises(ArgumentError, match="is no table"):
            pennon.LanceDataset.drop(place, ignore_not_found=True)
    with pytest.raises(ArgumentError, match="is the branch 'trial'"):
        pennon.LanceDataset.drop(Path(uri) / "tree" / "trial")
    assert sorted(tmp_path.rglob("*")) == before


def test_drop_with_external_manifest_store_is_refused(tmp_path: Path) -> None:
    place = f"file+sqlite://{tmp_path}/t?sqliteFile={tmp_path}/versions.db"
    pennon.write_dataset(TABLE, place)
    with pytest.raises(UnsupportedError, match="external manifest store"):
        pennon.LanceDataset.drop(place)
    assert pennon.dataset(place).count_rows() == 3


def three_versions() -> Store:
    store = MemoryStore(f"drop-{uuid4()}")
    for mode in (WriteMode.CREATE, WriteMode.APPEND, WriteMode.APPEND):
        plan = plan_write(store, TABLE.schema, mode)
        commit_write(plan, write_fragments(plan.task, TABLE.to_batches()))
    return store


def test_interrupted_drop_leaves_the_newest_version_or_no_table() -> None:
    """Whichever delete fails."""
    for number in range(1, len(list(three_versions().list_names(""))) + 1):
        store = three_versions()
        faulty = FaultyStore(store, Fault(number, verbs=frozenset({"delete"}), repeat=True))
        with pytest.raises(StoreError):
            drop_table(faulty)
        assert faulty.fired
        if list_locations(store):
            manifest = read_manifest(store)
            names = {path for path, _ in store.list_names("")}
            assert manifest.version == 3
            assert {file.store_path for f in manifest.fragments for file in f.files} <= names
