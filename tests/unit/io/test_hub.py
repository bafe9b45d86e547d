from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, FormatError, NotFoundError, StoreError, UnsupportedError
from pennon.io import open_store
from tests.unit.io.fake_hub import FakeFsspec, FakeHub

URI = "hf://datasets/owner/name@main/t.lance"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    hub = FakeHub(tmp_path)
    monkeypatch.setitem(sys.modules, "fsspec", FakeFsspec(hub))
    table = pa.table({"id": range(1000), "word": ["red"] * 1000})
    pennon.write_dataset(table, tmp_path / "datasets" / "owner" / "name@main" / "t.lance")
    return hub


def test_a_table_of_the_hub_is_read(hub: FakeHub) -> None:
    dataset = pennon.dataset(URI, storage_options={"token": "hf_secret"})
    assert dataset.to_table(filter="id > 997", columns=["id"])["id"].to_pylist() == [998, 999]
    assert hub.options == {"token": "hf_secret"}
    assert pickle.loads(pickle.dumps(dataset)).count_rows() == 1000


@pytest.mark.parametrize("uri", [URI, URI.replace("//", "/")])
def test_a_path_of_the_hub_may_have_lost_a_slash(hub: FakeHub, uri: str) -> None:
    assert pennon.dataset(uri).count_rows() == 1000


def test_takes_from_the_hub_request_no_size(hub: FakeHub) -> None:
    dataset = pennon.dataset(URI)
    hub.calls.clear()
    assert dataset.take([5], columns=["id"])["id"].to_pylist() == [5]
    assert set(hub.calls) == {"open"}


def test_folders_of_the_hub_are_listed(hub: FakeHub) -> None:
    store = open_store(URI)
    assert list(store.list_folders("")) == ["_transactions", "_versions", "data"]
    assert [path for path, _ in store.list_names("data")] == [
        each.path for each in store.list("data")
    ]
    assert list(store.list("nothing")) == []


def test_writes_to_the_hub_are_refused(hub: FakeHub) -> None:
    with pytest.raises(UnsupportedError, match="hf upload"):
        pennon.write_dataset(pa.table({"id": [1]}), URI, mode="append")
    with pytest.raises(UnsupportedError, match="read-only"):
        open_store(URI).delete("data/x")


def test_missing_files_of_the_hub_are_not_found(hub: FakeHub) -> None:
    with pytest.raises(NotFoundError):
        pennon.dataset("hf://datasets/owner/other/t.lance")
    for path in ("data", "data/none.lance"):
        with pytest.raises(NotFoundError):
            open_store(URI).info(path)


def test_errors_of_the_hub_hide_the_token(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> bytes:
        message = f"401 for {path} with hf_secret"
        raise RuntimeError(message)

    monkeypatch.setattr(hub, "cat_file", refuse)
    store = open_store(URI, {"hf_token": "hf_secret"})
    assert "hf_secret" not in repr(store)
    with pytest.raises(StoreError, match="401") as caught:
        store.read_whole("data/x")
    assert "hf_secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_paths_of_the_hub_stay_in_their_table(hub: FakeHub) -> None:
    with pytest.raises(FormatError):
        open_store(URI).read_whole("../other/x")


def test_a_uri_of_the_hub_without_folder_is_refused() -> None:
    with pytest.raises(ArgumentError, match="OWNER/NAME"):
        open_store("hf://datasets/owner")


def test_an_option_that_the_hub_does_not_know_gives_a_warning() -> None:
    with pytest.warns(UserWarning, match="region"):
        open_store(URI, {"region": "x"})


def test_the_hub_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ModuleNotFoundError, match="huggingface"):
        pennon.dataset(URI)
