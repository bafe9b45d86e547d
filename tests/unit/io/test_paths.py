from __future__ import annotations

import os
from pathlib import Path

import pytest

from pennon.errors import ArgumentError, FormatError
from pennon.io.paths import (
    Location,
    check_path,
    check_prefix,
    child_uri,
    parse_uri,
    resolve_below,
    safe_join,
)

ESCAPES = [
    "",
    ".",
    "..",
    "../x",
    "data/../../x",
    "data/./x",
    "data//x",
    "data/",
    "/etc/passwd",
    "//host/share",
    "C:\\x",
    "C:x",
    "c:/x",
    "data\\x",
    "..\\x",
    "a\0b",
    "a\nb",
    "a\x7fb",
    "%2e%2e/x",
    "%2E%2E/x",
    "data/%2e%2e/x",
    "data/.%2e/x",
    "%252e%252e/x",
    "%25252525252e",
    "a%2f..%2fb",
    "%2fetc/passwd",
    "a%5cb",
    "a%00b",
    "s3://other/x",
    "file:///etc/passwd",
]


@pytest.mark.parametrize("path", ESCAPES)
def test_paths_outside_the_root_are_refused(path: str) -> None:
    with pytest.raises(FormatError):
        check_path(path)
    with pytest.raises(FormatError):
        safe_join("/root", path)


@pytest.mark.parametrize(
    "path",
    [
        "x",
        "data/x.lance",
        "a/b/c",
        "_refs/branches/a%2Fb.json",
        "..x/y..",
        "ü b",
        "100%",
        "a=1/b",
    ],
)
def test_plain_paths_are_unchanged(path: str) -> None:
    assert check_path(path) == path
    assert safe_join("/root", path) == f"/root/{path}"
    assert safe_join("/root/", path) == f"/root/{path}"
    assert safe_join("", path) == path


def test_prefixes_may_be_the_root_and_end_in_a_slash() -> None:
    assert check_prefix("") == check_prefix("/") == ""
    assert check_prefix("data/") == "data"
    with pytest.raises(FormatError):
        check_prefix("data//")


def test_links_within_the_root_are_followed_and_links_out_are_refused(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    (root / "data").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"s")
    (tmp_path / "root2").mkdir()
    (root / "data" / "x").write_bytes(b"x")
    (root / "inside").symlink_to("data/x")
    (root / "file").symlink_to(tmp_path / "secret")
    (root / "folder").symlink_to(tmp_path)
    (root / "neighbour").symlink_to(tmp_path / "root2")
    real = os.path.realpath(root)
    assert resolve_below(real, "inside") == f"{real}/data/x"
    assert resolve_below(real, "data/new") == f"{real}/data/new"
    for path in ("file", "folder/secret", "neighbour/x"):
        with pytest.raises(FormatError, match="symbolic link"):
            resolve_below(real, path)


@pytest.mark.parametrize(
    ("uri", "location"),
    [
        ("/a/b", Location("file", "", "/a/b")),
        ("/a/b/", Location("file", "", "/a/b")),
        ("file:///a/b%20c", Location("file", "", "/a/b c")),
        ("file:/a/b", Location("file", "", "/a/b")),
        ("file://localhost/a", Location("file", "", "/a")),
        ("/a/100%20", Location("file", "", "/a/100%20")),
        ("memory://x", Location("memory", "x", "")),
        ("memory://", Location("memory", "", "")),
        ("s3://bucket/a/b.lance/", Location("s3", "bucket", "a/b.lance")),
        ("S3://bucket/a%20b", Location("s3", "bucket", "a b")),
        ("gs://b", Location("gs", "b", "")),
        (
            "abfss://c@account.dfs.core.windows.net/t",
            Location("abfss", "c@account.dfs.core.windows.net", "t"),
        ),
        ("https://host:80/a", Location("https", "host:80", "a")),
    ],
)
def test_uris_are_parsed(uri: str, location: Location) -> None:
    assert parse_uri(uri) == location


def test_relative_paths_become_absolute_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_uri("x/t.lance").path == f"{Path.cwd()}/x/t.lance"
    assert parse_uri(Path("x")).path == f"{Path.cwd()}/x"
    monkeypatch.setenv("HOME", "/home/somebody")
    assert parse_uri("~/t").path == "/home/somebody/t"


@pytest.mark.parametrize("uri", ["", "a\0b", "file://host/a"])
def test_parse_uri_refuses_invalid_uris(uri: str) -> None:
    with pytest.raises(ArgumentError):
        parse_uri(uri)


def test_invalid_uri_error_hides_its_secrets() -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_uri("https://user:pass@host/a?sig=secret")
    assert "secret" not in str(caught.value)
    assert "pass" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "below"),
    [
        ("/a/t.lance", "/a/t.lance/tree/x"),
        ("/a/t.lance/", "/a/t.lance/tree/x"),
        ("/a/why?", "/a/why?/tree/x"),
        ("s3://bucket", "s3://bucket/tree/x"),
        ("s3+ddb://bucket/t?ddbTableName=m", "s3+ddb://bucket/t/tree/x?ddbTableName=m"),
        ("s3+ddb://bucket/t/?ddbTableName=m", "s3+ddb://bucket/t/tree/x?ddbTableName=m"),
    ],
)
def test_a_folder_below_a_uri(uri: str, below: str) -> None:
    assert child_uri(uri, "tree/x") == below
