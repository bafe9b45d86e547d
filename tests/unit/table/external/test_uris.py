from __future__ import annotations

from pathlib import Path

import pytest

import pennon
from pennon.errors import ArgumentError
from pennon.io import LocalStore, open_store, registry
from pennon.table.external import ExternalStore
from pennon.table.external.dynamodb import DynamoManifests
from pennon.table.external.sqlite import SqliteManifests
from pennon.testing import MemoryManifests, MemoryStore


def external(uri: str, **options: str) -> ExternalStore:
    store = open_store(uri, options)
    assert isinstance(store, ExternalStore)
    assert store.uri == uri
    return store


def test_dynamodb_uri_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DYNAMODB_ENDPOINT", raising=False)
    uri = "s3+ddb://bucket/a%20b/t.lance?ddbTableName=Table-1"
    store = external(uri, AWS_Region="somewhere")
    options = (("aws_region", "somewhere"),)
    assert store.manifests == DynamoManifests("Table-1", "bucket", "a b/t.lance", None, options)
    assert store.inner == open_store("s3://bucket/a%20b/t.lance", {"AWS_Region": "somewhere"})
    monkeypatch.setenv("DYNAMODB_ENDPOINT", "http://one")
    assert external(uri).manifests == DynamoManifests(
        "Table-1", "bucket", "a b/t.lance", "http://one"
    )
    chosen = external(uri, dynamodb_endpoint="http://two").manifests
    assert chosen == DynamoManifests("Table-1", "bucket", "a b/t.lance", "http://two")


def test_sqlite_uri_options(tmp_path: Path) -> None:
    store = external(f"file+sqlite://{tmp_path}/t.lance?sqliteFile={tmp_path}/m.db")
    assert isinstance(store.inner, LocalStore)
    assert store.manifests == SqliteManifests(f"{tmp_path}/m.db", f"file://{tmp_path}/t.lance")
    bucket = external("s3+sqlite://bucket/t.lance?sqliteFile=/m.db").manifests
    assert bucket == SqliteManifests("/m.db", "s3://bucket/t.lance")


def test_external_uri_key_ignores_links_and_trailing_slashes(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    end = f"?sqliteFile={tmp_path}/m.db"
    one = external(f"file+sqlite://{tmp_path}/t.lance{end}")
    other = external(f"file+sqlite://{tmp_path}/link/x/../t.lance/{end}")
    assert one.manifests == other.manifests


@pytest.mark.parametrize(
    "uri",
    [
        "s3+ddb://bucket/t",
        "s3+ddb://bucket/t?ddbTableName=",
        "s3+ddb://bucket/t?ddbTableName=a&b=c",
        "s3+ddb://bucket/t?ddbTableName=a#b",
        "s3+ddb://bucket/t?tableName=a",
        "gs+ddb://bucket/t?ddbTableName=a",
        "s3+ddb:///t?ddbTableName=a",
        "file+sqlite:///t",
        "s3+unknown://bucket/t?x=y",
        "nowhere+sqlite://bucket/t?sqliteFile=y",
    ],
)
def test_external_store_with_wrong_uri_is_refused(uri: str) -> None:
    with pytest.raises(ArgumentError):
        open_store(uri)


def test_a_further_manifest_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_OPENERS", dict(registry._OPENERS))
    manifests = MemoryManifests()
    registry.register(
        "Mine", lambda uri, _: ExternalStore(MemoryStore("a further one"), manifests, uri)
    )
    pennon.write_dataset({"a": [1]}, "memory+mine://there/t?any=thing")
    assert pennon.dataset("memory+mine://there/t?any=thing").count_rows() == 1
    latest = manifests.get_latest()
    assert latest is not None
    assert (latest.version, latest.path) == (1, "_versions/18446744073709551614.manifest")
