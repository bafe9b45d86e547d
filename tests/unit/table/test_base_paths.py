"""Base paths: what lies inside of a table's root is read, the rest for those who trust it."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from pennon.core.units import DatasetVersion
from pennon.errors import FormatError, UntrustedPathError
from pennon.io import LocalStore, open_store
from pennon.io.prefix_store import PrefixStore
from pennon.schema.arrow import schema_from_arrow
from pennon.table.base_paths import BasedStore, Trust, base_uri, below, place_store, root_of
from pennon.table.fragment import BasePath, DataFileRef
from pennon.table.manifest import Manifest

SCHEMA = schema_from_arrow(pa.schema([("a", pa.int8())]))


def _store(tmp_path: Path, *bases: BasePath, trust: Trust | None = None) -> BasedStore:
    home = LocalStore(str(tmp_path / "t"), str(tmp_path / "t"))
    return BasedStore(home, bases, trust or Trust())


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def test_a_files_place_is_part_of_its_path(tmp_path: Path) -> None:
    root = BasePath(3, str(tmp_path / "t"), None, is_dataset_root=True)
    flat = BasePath(4, str(tmp_path / "t" / "flat"))
    store = _store(tmp_path, root, flat)
    _put(tmp_path / "t/data/x.lance", b"own")
    _put(tmp_path / "t/flat/x.lance", b"flat")
    for base, want in ((None, b"own"), (3, b"own"), (4, b"flat")):
        path = DataFileRef("x.lance", (), (), 2, 0, base_id=base).store_path
        assert store.read_whole(path).to_pybytes() == want
        assert pickle.loads(pickle.dumps(store)).read_whole(path).to_pybytes() == want
    assert store.identity("data/x.lance") != store.identity("@4/data/x.lance")


@pytest.mark.parametrize("path", ["@3/../secret", "@3/data/../../secret", "@3//etc/passwd"])
def test_no_path_leaves_its_base(tmp_path: Path, path: str) -> None:
    _put(tmp_path / "secret", b"secret")
    base = BasePath(3, str(tmp_path / "t"), None, is_dataset_root=True)
    with pytest.raises(FormatError):
        _store(tmp_path, base).read_whole(path)


@pytest.mark.parametrize("where", ["/etc", "s3://other/bucket", "file:///etc", "../..", "/"])
def test_what_lies_outside_must_be_trusted(tmp_path: Path, where: str) -> None:
    store = _store(tmp_path, BasePath(0, where))
    with pytest.raises(UntrustedPathError, match="trusted_bases"):
        store.open("@0/data/passwd")


def test_base_paths_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no base path 7"):
        _store(tmp_path).open("@7/data/x")
    with pytest.raises(FormatError, match="no place"):
        _store(tmp_path, BasePath(0, "")).open("@0/data/x")
    inside = _store(tmp_path, BasePath(0, f"{tmp_path}/t/tree"))
    with pytest.raises(FormatError):
        inside.open("@0/data/../../../../x")


def test_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENNON_TRUSTED_BASES", "/a/b:s3://bucket/x:")
    trust = Trust.given(["/c/"], None)
    for place in ("/a/b", "/a/b/c", "/c/d", "s3://bucket/x/y"):
        assert trust.covers(place)
    for place in ("/a", "/a/bc", "/", "s3://bucket/xy", "s3://other/x"):
        assert not trust.covers(place)
    assert Trust(("*",)).covers("gs://any/thing")
    assert "secret" not in repr(Trust.given(None, {"key": "secret"}))


def test_relative_paths_mean_the_root_that_they_end_like() -> None:
    root = "/home/me/tables/t.lance"
    assert base_uri(BasePath(0, "t.lance"), root) == root
    assert base_uri(BasePath(0, "tables/t.lance/tree/dev"), root) == f"{root}/tree/dev"
    assert base_uri(BasePath(0, "/x/t.lance"), root) == "/x/t.lance"
    assert below(base_uri(BasePath(0, "xt.lance"), root), root) is None


def test_uris_are_compared_by_segment() -> None:
    assert below("s3://b/t/tree/x", "s3://b/t/") == "tree/x"
    assert below("s3+ddb://b/t?ddbTableName=d", "s3://b/t") == ""
    assert below("s3://b/table", "s3://b/t") is None


def test_a_branch_that_is_opened_by_its_folder_knows_its_root(tmp_path: Path) -> None:
    store = open_store(tmp_path / "t/tree/dev/one")
    manifest = Manifest(SCHEMA, DatasetVersion(1), branch="dev/one")
    placed = place_store(store, manifest)
    assert isinstance(placed, PrefixStore)
    assert root_of(placed).uri == str(tmp_path / "t")
    assert placed.uri == store.uri
    assert place_store(placed, manifest) == placed


def test_tables_without_bases_are_left_alone(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert place_store(store, Manifest(SCHEMA, DatasetVersion(1))) is store
