"""``_latest.manifest``: written for tables of version 0.1, read if no version is left."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.errors import FormatError, NotFoundError, StoreError
from pennon.table.manifest_wire import parse_manifest_file

TABLE = pa.table({"a": [1, 2, 3]})
OLD: dict[str, Any] = {"data_storage_version": "legacy", "enable_v2_manifest_paths": False}


def test_latest_manifest_copy_is_written_by_each_commit(tmp_path: Path) -> None:
    modes: list[Any] = ["create", "append", "overwrite"]
    for number, mode in enumerate(modes, 1):
        pennon.write_dataset(TABLE, tmp_path / "t", mode=mode, **OLD)
        copy = (tmp_path / "t" / "_latest.manifest").read_bytes()
        assert parse_manifest_file(copy).version == number
        assert copy == (tmp_path / "t" / "_versions" / f"{number}.manifest").read_bytes()


@pytest.mark.parametrize(
    "options", [{"data_storage_version": "legacy"}, {"enable_v2_manifest_paths": False}]
)
def test_latest_manifest_copy_is_for_0_1_with_v1_names_only(
    options: dict[str, Any], tmp_path: Path
) -> None:
    pennon.write_dataset(TABLE, tmp_path / "t", **options)
    assert not (tmp_path / "t" / "_latest.manifest").exists()


def test_latest_manifest_copy_is_ignored_beside_versions(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    pennon.write_dataset(TABLE, uri, **OLD)
    stale = (uri / "_latest.manifest").read_bytes()
    pennon.write_dataset(TABLE, uri, mode="append", **OLD)
    for body in (stale, b"damaged", b""):
        (uri / "_latest.manifest").write_bytes(body)
        assert pennon.dataset(uri).version == 2
    (uri / "_latest.manifest").unlink()
    assert pennon.dataset(uri).version == 2


def test_latest_manifest_copy_failure_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pennon.io.local import LocalStore

    whole = LocalStore.put

    def put(store: LocalStore, path: str, data: bytes) -> None:
        if path == "_latest.manifest":
            message = "full"
            raise StoreError(message)
        whole(store, path, data)

    monkeypatch.setattr(LocalStore, "put", put)
    assert pennon.write_dataset(TABLE, tmp_path / "t", **OLD).version == 1
    assert not (tmp_path / "t" / "_latest.manifest").exists()


def test_latest_manifest_copy_without_versions_is_read(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    pennon.write_dataset(TABLE, uri, **OLD)
    pennon.write_dataset(TABLE, uri, mode="append", **OLD)
    shutil.rmtree(uri / "_versions")
    table = pennon.dataset(uri)
    assert table.version == table.latest_version == 2
    assert table.to_table().num_rows == 6
    assert [each["version"] for each in table.versions()] == [2]
    assert pennon.dataset(uri, version=2).count_rows() == 6
    with pytest.raises(NotFoundError, match="version 1"):
        pennon.dataset(uri, version=1)
    pennon.write_dataset(TABLE, uri, mode="append")
    assert pennon.dataset(uri).version == 3
    assert pennon.dataset(uri).count_rows() == 9


def test_damaged_latest_manifest_copy_without_versions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_latest.manifest").write_bytes(b"damaged")
    with pytest.raises(FormatError, match=r"_latest\.manifest"):
        pennon.dataset(tmp_path)
