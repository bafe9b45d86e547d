"""Links in a table's folder: followed to read, within a list's places if there is one, never to write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pennon.errors import FormatError, UntrustedPathError
from pennon.io import fenced, open_store
from pennon.io.fenced import open_in
from pennon.io.paths import has_dot_segments

READ = os.O_RDONLY


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with links out of it, as data managers make them."""
    (tmp_path / "cache" / "more").mkdir(parents=True)
    (tmp_path / "cache" / "x").write_bytes(b"bytes")
    (tmp_path / "table" / "data").mkdir(parents=True)
    (tmp_path / "table" / "data" / "own").write_bytes(b"own")
    (tmp_path / "table" / "data" / "x").symlink_to("../../cache/x")
    (tmp_path / "table" / "inside").symlink_to("data/own")
    (tmp_path / "table" / "folder").symlink_to(tmp_path / "cache")
    return tmp_path / "table"


def test_links_out_are_read_and_not_written_through(root: Path) -> None:
    store = open_store(root)
    assert store.read_whole("data/x").to_pybytes() == b"bytes"
    assert store.open("folder/x").size_bytes == 5
    assert [path for path, _ in store.list_names("folder")] == ["folder/x"]
    for verb in (
        lambda: store.put("folder/new", b""),
        lambda: store.put_if_absent("folder/new", b""),
        lambda: store.open_writer("folder/new"),
        lambda: store.delete("folder/x"),
    ):
        with pytest.raises(FormatError, match="symbolic link"):
            verb()
    store.put("data/x", b"replaces the link itself")
    store.delete("data/x")
    assert (root.parent / "cache" / "x").read_bytes() == b"bytes"


@pytest.mark.parametrize("walks", [True, False])
def test_links_are_followed_within_trusted_places_only(
    root: Path, monkeypatch: pytest.MonkeyPatch, walks: bool
) -> None:
    monkeypatch.setattr(fenced, "WALKS", walks)
    strict = open_store(root, trusted=[])
    assert strict.read_whole("inside").to_pybytes() == b"own"
    assert strict.read_whole("data/own").to_pybytes() == b"own"
    for verb in (
        lambda: strict.open("data/x"),
        lambda: strict.read_whole("folder/x"),
        lambda: list(strict.list("folder")),
        lambda: strict.list_names("folder"),
    ):
        with pytest.raises(UntrustedPathError, match="trusted_bases"):
            verb()
    for place in (root.parent / "cache", root / "folder", "*"):
        assert open_store(root, trusted=[place]).read_whole("data/x").to_pybytes() == b"bytes"
    monkeypatch.setenv("PENNON_TRUSTED_BASES", "")
    with pytest.raises(UntrustedPathError):
        open_store(root).open("data/x")
    monkeypatch.setenv("PENNON_TRUSTED_BASES", str(root.parent))
    assert open_store(root).open("data/x").size_bytes == 5


def test_link_created_after_the_check_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder is resolved and judged; then somebody puts a link in its place."""
    real = str(root / "data" / "own")
    before = os.path.realpath

    def swap(path: str) -> str:
        found = before(path)
        (root / "data").rename(root / "old")
        (root / "data").symlink_to(root.parent / "cache")
        (root.parent / "cache" / "own").write_bytes(b"secret")
        return found

    monkeypatch.setattr(os.path, "realpath", swap)
    with pytest.raises(OSError, match=r"Too many levels|Not a directory"):
        open_in((str(root),), str(root / "inside"), READ)
    monkeypatch.undo()
    with pytest.raises(UntrustedPathError):
        open_in((str(root),), real, READ)


def test_fenced_open_leaks_no_descriptor(root: Path) -> None:
    strict = open_store(root, trusted=[])
    count = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with pytest.raises(UntrustedPathError):
            strict.open("data/x")
        assert strict.read_whole("inside").to_pybytes() == b"own"
        fd = open_in((str(root),), str(root / "data"), READ)
        assert stat.S_ISDIR(os.fstat(fd).st_mode)
        os.close(fd)
    assert len(list(Path("/proc/self/fd").iterdir())) == count


@pytest.mark.parametrize(
    "path",
    ["zone/../x", "zone/./x", "%2e%2e/x", "a/%252E%252e/x", "a%2f..%2fx", "a/..\\x", "a/..;v=1/x"],
)
def test_dot_segments_in_any_encoding(path: str) -> None:
    assert has_dot_segments(path)


@pytest.mark.parametrize("path", ["", "zone/x", "..x/y..", "a//b", "100%", "a.b"])
def test_other_remote_paths(path: str) -> None:
    assert not has_dot_segments(path)
