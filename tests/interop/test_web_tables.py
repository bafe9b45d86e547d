"""Tables on a plain web server, which serves files and ranges and has no listing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import CannotListError, NotFoundError, UnsupportedError
from tests.unit.io.web_server import WebServer, serving

ROWS = pa.table({"a": range(20_000), "b": [f"text {n}" for n in range(20_000)]})


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebServer]:
    with serving(tmp_path) as server:
        yield server


@pytest.mark.parametrize("version", ["2.0", "2.1"])
@pytest.mark.parametrize("v2_names", [False, True])
def test_web_table_is_scanned_and_taken_from(web: WebServer, version: Any, v2_names: bool) -> None:
    folder = web.folder / "t"
    for first in (0, 5000, 10_000, 15_000):
        part, mode = ROWS.slice(first, 5000), "append" if first else "create"
        lance.write_dataset(
            part,
            folder,
            mode=mode,
            data_storage_version=version,
            enable_v2_manifest_paths=v2_names,
        )
    lance.dataset(folder).delete("a % 1000 = 7")
    expected = lance.dataset(folder).to_table()
    dataset = pennon.dataset(f"{web.url}/t")
    assert dataset.version == 5
    assert dataset.to_table().equals(expected)
    assert dataset.to_table(columns=["b"], filter="a > 19990").num_rows == 9
    assert dataset.take([3, 17_000, 1]).equals(expected.take([3, 17_000, 1]))
    assert pennon.dataset(f"{web.url}/t", version=2).to_table().equals(ROWS.slice(0, 10_000))
    assert dataset.checkout_version(1).count_rows() == 5000


@pytest.mark.parametrize(
    "hint", [None, '{"version":7}', '{"version":12}', '{"version":99}', "[[", "7"]
)
def test_latest_version_is_found_with_any_version_hint(web: WebServer, hint: str | None) -> None:
    for number in range(12):
        pennon.write_dataset(
            pa.table({"a": [number]}), web.folder / "t", mode="append" if number else "create"
        )
    if hint is not None:
        (web.folder / "t/_versions/latest_version_hint.json").write_text(hint)
    assert pennon.dataset(f"{web.url}/t").version == 12
    versions = [path for _, path, _ in web.requests if "_versions" in path]
    assert len(versions) <= 12
    if hint == '{"version":12}':
        assert len(versions) == 4, "the hint, that it is there, that no other is, its manifest"


def test_version_hint_finds_latest_after_old_versions_are_deleted(web: WebServer) -> None:
    for number in range(5):
        pennon.write_dataset(
            pa.table({"a": [number]}), web.folder / "t", mode="append" if number else "create"
        )
    versions = web.folder / "t/_versions"
    for version in (1, 2):
        (versions / f"{2**64 - 1 - version}.manifest").unlink()
    with pytest.raises(NotFoundError, match="no Lance table"):
        pennon.dataset(f"{web.url}/t")
    (versions / "latest_version_hint.json").write_text('{"version":4}')
    assert pennon.dataset(f"{web.url}/t").version == 5
    with pytest.raises(NotFoundError, match="version 2"):
        pennon.dataset(f"{web.url}/t", version=2)


def test_web_table_refuses_listing_and_append(web: WebServer) -> None:
    pennon.write_dataset(ROWS, web.folder / "t")
    dataset = pennon.dataset(f"{web.url}/t")
    with pytest.raises(CannotListError, match="does not list"):
        dataset.versions()
    with pytest.raises(UnsupportedError, match="read-only"):
        pennon.write_dataset(ROWS, f"{web.url}/t", mode="append")
    with pytest.raises(NotFoundError, match="no Lance table"):
        pennon.dataset(f"{web.url}/nothing")
