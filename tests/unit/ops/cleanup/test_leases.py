"""Tags that keep their version and all later ones from clean-ups."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import RefExistsError
from pennon.ops.versions.refs import hold_versions

ROWS = pa.table({"id": [1]})


def test_lease_keeps_its_version_and_all_later_ones(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for number in range(8):
        pennon.write_dataset(ROWS, uri, mode="append" if number else "create")
    ds = pennon.dataset(uri)
    hold_versions(ds.snapshot, "reader", 4)
    hold_versions(ds.snapshot, "another", 6)
    ds.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert [each["version"] for each in ds.versions()] == [4, 5, 6, 7, 8]
    hold_versions(ds.snapshot, "reader", 7)
    ds.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert [each["version"] for each in ds.versions()] == [6, 7, 8]
    ds.tags.delete("another")
    ds.tags.delete("reader")
    ds.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert [each["version"] for each in ds.versions()] == [8]


def test_lease_is_a_tag_to_pylance(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for number in range(3):
        pennon.write_dataset(ROWS, uri, mode="append" if number else "create")
    hold_versions(pennon.dataset(uri).snapshot, "reader", 2)
    assert lance.dataset(uri, version="reader").version == 2


def test_lease_does_not_take_over_a_tag_of_another_use(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    ds = pennon.write_dataset(ROWS, uri)
    ds.tags.create("release", 1)
    with pytest.raises(RefExistsError, match="the tag 'release' names version 1"):
        hold_versions(ds.snapshot, "release", 1)
