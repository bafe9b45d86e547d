"""The tables of old releases, read by pylance and by Pennon."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest

import pennon
from tests.golden.test_old_releases import DATASETS, READABLE

# Their writers did not count rows, or counted them wrongly; Pennon looks into the files instead.
UNCOUNTED = {"v0.7.5/with_deletions", "v0.8.0/migrated_from_v0.7.5"}
# Ids of fields stand twice; pylance reads the wrong files, until a commit puts that right.
TWICE = "v0.10.5/corrupt_schema"


def test_duplicate_row_ids_read_as_after_a_commit_of_pylance(tmp_path: Path) -> None:
    ours = pennon.dataset(DATASETS / TWICE).to_table(with_row_id=True)
    shutil.copytree(DATASETS / TWICE, tmp_path / "t")
    theirs = lance.dataset(str(tmp_path / "t"))
    assert not ours.equals(theirs.to_table(with_row_id=True))
    theirs.delete("false")
    assert ours.equals(lance.dataset(str(tmp_path / "t")).to_table(with_row_id=True))


@pytest.mark.parametrize("folder", [folder for folder, _, _ in READABLE if folder != TWICE])
def test_tables_of_old_releases_read_as_in_pylance(folder: str) -> None:
    path = str(Path(DATASETS) / folder)
    theirs, ours = lance.dataset(path), pennon.dataset(path)
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.to_table(with_row_id=True).equals(theirs.to_table(with_row_id=True))
    for mine, other in zip(
        map(dict[str, Any], ours.versions()), map(dict[str, Any], theirs.versions()), strict=True
    ):
        # pylance computes its times in floating point, and may be a microsecond off.
        assert abs(mine.pop("timestamp") - other.pop("timestamp")) <= timedelta(microseconds=1)
        if folder not in UNCOUNTED:
            assert mine == other
    assert ours.config() == theirs.config()
    for fragment, twin in zip(ours.get_fragments(), theirs.get_fragments(), strict=True):
        if folder not in UNCOUNTED:
            assert fragment.metadata.to_json() == twin.metadata.to_json()
        assert fragment.count_rows() == twin.count_rows()
    for version in ours.version_refs():
        number = version["version"]
        old = ours.checkout_version(number)
        assert old.to_table().equals(theirs.checkout_version(number).to_table())
