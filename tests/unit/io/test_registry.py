from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pennon.errors import ArgumentError
from pennon.io import LocalStore, MemoryStore, open_store
from pennon.io.hub import HubStore
from pennon.io.remote import RemoteStore
from pennon.io.store import Store


@pytest.mark.parametrize(
    ("uri", "kind"),
    [
        ("relative/t.lance", LocalStore),
        ("/abs/t.lance", LocalStore),
        ("file:///abs/t.lance", LocalStore),
        ("memory://x/t.lance", MemoryStore),
        ("s3://bucket/t.lance", RemoteStore),
        ("gs://bucket/t.lance", RemoteStore),
        ("az://container/t.lance", RemoteStore),
        ("https://host/t.lance", RemoteStore),
        ("hf://datasets/owner/name/t.lance", HubStore),
    ],
)
def test_the_scheme_chooses_the_store(uri: str, kind: type[Store]) -> None:
    store = open_store(uri)
    assert isinstance(store, kind)
    assert store.uri == uri


def test_open_store_of_a_path_object(tmp_path: Path) -> None:
    assert open_store(tmp_path).uri == str(tmp_path)


@pytest.mark.parametrize(
    "uri", ["ftp://host/t", "s3:///t", "s3+ddb://bucket/t", "hf://datasets/owner"]
)
def test_open_store_refuses_unknown_uris(uri: str) -> None:
    with pytest.raises(ArgumentError):
        open_store(uri)


def test_memory_is_shared_by_name_within_a_process() -> None:
    open_store("memory://shared-name/t").put("a", b"1")
    assert open_store("memory://shared-name/t").open("a").size_bytes == 1
    assert [found.path for found in open_store("memory://shared-name").list("")] == ["t/a"]
    assert list(open_store("memory://other-name/t").list("")) == []


def test_unnamed_memory_store_is_private_and_reopened_by_uri() -> None:
    first, second = open_store("memory://"), open_store("memory://")
    first.put("a", b"1")
    assert list(second.list("")) == []
    assert open_store(first.uri).open("a").size_bytes == 1


def test_opening_a_local_store_does_not_load_obstore() -> None:
    script = "import sys, pennon.io as io; io.open_store('x'); io.open_store('memory://x')\n"
    script += "io.open_store('s3://b/x'); sys.exit('obstore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0
