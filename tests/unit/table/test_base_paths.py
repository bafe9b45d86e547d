"""Base paths: places within the table's root are read, others only if trusted."""

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


def test_base_id_is_part_of_the_store_path(tmp_path: Path) -> None:
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
def test_paths_outside_their_base_are_refused(tmp_path: Path, path: str) -> None:
    _put(tmp_path / "secret", b"secret")
    base = BasePath(3, str(tmp_path / "t"), None, is_dataset_root=True)
    with pytest.raises(FormatError):
        _store(tmp_path, base).read_whole(path)


@pytest.mark.parametrize("where", ["/etc", "s3://other/bucket", "file:///etc", "../..", "/"])
def test_base_path_outside_the_table_must_be_trusted(tmp_path: Path, where: str) -> None:
    store = _store(tmp_path, BasePath(0, where), trust=Trust(()))
    with pytest.raises(UntrustedPathError, match="trusted_bases"):
        store.open("@0/data/passwd")


@pytest.mark.parametrize("home", ["file", "s3", "http"])
def test_base_path_trust_without_trusted_bases(tmp_path: Path, home: str) -> None:
    """Local places for a local table, those of the bucket for one in a bucket; none is written."""
    _put(tmp_path / "other/x", b"other")
    local = str(tmp_path / "other")
    near, far = {
        "file": ([local], ["s3://b/x", "http://h/x", "memory://m"]),
        "s3": (["s3://b/x", "s3a://b/x"], [local, "s3://c/x", "gs://b/x", "http://b/x"]),
        "http": ([], [local, "http://h/x", "http://i/x"]),
    }[home]
    root = {"file": str(tmp_path / "t"), "s3": "s3://b/t", "http": "http://h/t"}[home]
    inner = open_store(root, {} if home == "file" else {"region": "mine"})
    for place in near:
        store = BasedStore(inner, (BasePath(0, place),))
        opened, _ = store._place("@0/data/x")
        assert dict(getattr(opened, "options", ())) == dict(getattr(inner, "options", ()))
        with pytest.raises(UntrustedPathError, match="may not be written"):
            store.open_writer("@0/data/new")
    for place in far:
        with pytest.raises(UntrustedPathError, match="may not be read"):
            BasedStore(inner, (BasePath(0, place),)).open("@0/data/x")


@pytest.mark.parametrize("scheme", ["http", "https", "s3", "gs", "az"])
@pytest.mark.parametrize("dots", ["..", "%2e%2e", "%252e%252e", ".%2E", "..%2f.."])
@pytest.mark.parametrize("trusted", ["{scheme}://h/zone", "*"])
def test_dot_segments_out_of_a_remote_base_are_refused(
    tmp_path: Path, scheme: str, dots: str, trusted: str
) -> None:
    zone = f"{scheme}://h/zone"
    trust = Trust((trusted.format(scheme=scheme),))
    store = _store(tmp_path, BasePath(0, f"{zone}/{dots}/private"), trust=trust)
    with pytest.raises(UntrustedPathError):
        store.open("@0/data/x")
    assert Trust((zone,)).covers(f"{zone}/a")
    assert not Trust((zone,)).covers(f"{zone}/{dots}/private")
    assert not Trust((f"{zone}/{dots}",)).covers(f"{scheme}://h/private")


def test_symbolic_link_out_of_a_trusted_base_path_is_refused(tmp_path: Path) -> None:
    _put(tmp_path / "secret/x", b"secret")
    _put(tmp_path / "trusted/real/x", b"good")
    (tmp_path / "trusted/link").symlink_to(tmp_path / "secret")
    (tmp_path / "trusted/real/y").symlink_to(tmp_path / "secret/x")
    (tmp_path / "also").symlink_to(tmp_path / "trusted")
    for name in ("trusted", "also"):
        trust = Trust((str(tmp_path / name),))
        for base, path in (("link", "x"), ("real", "y")):
            place = str(tmp_path / "trusted" / base)
            with pytest.raises(UntrustedPathError):
                _store(tmp_path, BasePath(0, place), trust=trust).open(f"@0/data/{path}")
        store = _store(tmp_path, BasePath(0, str(tmp_path / "trusted/real")), trust=trust)
        assert store.read_whole("@0/data/x").to_pybytes() == b"good"


def test_unknown_or_invalid_base_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no base path 7"):
        _store(tmp_path).open("@7/data/x")
    with pytest.raises(FormatError, match="not a valid location"):
        _store(tmp_path, BasePath(0, "")).open("@0/data/x")
    inside = _store(tmp_path, BasePath(0, f"{tmp_path}/t/tree"))
    with pytest.raises(FormatError):
        inside.open("@0/data/../../../../x")


def test_trust_covers_listed_places_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENNON_TRUSTED_BASES", "/a/b:s3://bucket/x:")
    trust = Trust.given(["/c/"], None)
    for place in ("/a/b", "/a/b/c", "/c/d", "s3://bucket/x/y"):
        assert trust.covers(place)
    for place in ("/a", "/a/bc", "/", "s3://bucket/xy", "s3://other/x"):
        assert not trust.covers(place)
    assert Trust(("*",)).covers("gs://any/thing")
    assert "secret" not in repr(Trust.given(None, {"key": "secret"}))


def test_relative_base_path_resolves_to_the_table_root() -> None:
    root = "/home/me/tables/t.lance"
    assert base_uri(BasePath(0, "t.lance"), root) == root
    assert base_uri(BasePath(0, "tables/t.lance/tree/dev"), root) == f"{root}/tree/dev"
    assert base_uri(BasePath(0, "/x/t.lance"), root) == "/x/t.lance"
    assert below(base_uri(BasePath(0, "xt.lance"), root), root) is None


def test_uris_are_compared_by_segment() -> None:
    assert below("s3://b/t/tree/x", "s3://b/t/") == "tree/x"
    assert below("s3+ddb://b/t?ddbTableName=d", "s3://b/t") == ""
    assert below("s3://b/table", "s3://b/t") is None


def test_branch_opened_by_its_folder_finds_the_table_root(tmp_path: Path) -> None:
    store = open_store(tmp_path / "t/tree/dev/one")
    manifest = Manifest(SCHEMA, DatasetVersion(1), branch="dev/one")
    placed = place_store(store, manifest)
    assert isinstance(placed, PrefixStore)
    assert root_of(placed).uri == str(tmp_path / "t")
    assert placed.uri == store.uri
    assert place_store(placed, manifest) == placed


def test_store_of_table_without_base_paths_is_unchanged(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert place_store(store, Manifest(SCHEMA, DatasetVersion(1))) is store
