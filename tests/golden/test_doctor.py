"""The doctor finds the known faults of tables of old releases, and has nothing against all the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pennon import doctor
from tests.golden.archives import unpack

HERE = Path(__file__).parent
DATASETS = HERE / "datasets"
ARCHIVES = sorted([*HERE.glob("indices/*.tar.xz"), *HERE.glob("vector_indices/*.tar.xz")])
SAMPLE = {"indices/0.15.0", "indices/2.0.1", "vector_indices/0.15.0"}
TABLES = sorted(
    path.parent.relative_to(DATASETS).as_posix()
    for path in DATASETS.rglob("_versions")
    if "_blobs" not in path.parts
)

FAULTS = {
    "v0.5.9/dataset_with_fragments": {"missing-file", "incomplete-version"},
    "v0.8.14/corrupt_index": {"index-coverage"},
    "v0.10.5/corrupt_schema": {"reused-field-id"},
    "v0.16.0/wrong_data_version_can_fix.lance": {"wrong-file-version"},
    "v0.16.0/wrong_data_version_no_fix.lance": {"repeated-fragment-id", "mixed-versions"},
    "v0.21.0/bad_index_fragment_bitmap": {"index-coverage"},
    "v0.30.0_pre_created_at/index_without_created_at": {"missing-file", "incomplete-version"},
    # of the archives
    "0.15.0/btree.lance": {"unusable-index"},  # in files of version 0.1, which lose NULLs
    "0.19.2/btree.lance": {"unusable-index"},
    "1.0.4/btree_pages.lance": {"damaged-index"},  # which a compaction broke
    "14.0.2/ivf_pq_data_2_3.lance": {"not-readable-here", "unusable-index"},  # files of 2.3
}
"""The faults that these tables have, by the ledger and their README."""


def alarms(report: doctor.Report) -> set[str]:
    return {each.code for each in report if each.severity is not doctor.Severity.NOTE}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("deep", [False, True], ids=["light", "deep"])
def test_doctor_finds_the_known_faults_of_old_tables_and_no_others(table: str, deep: bool) -> None:
    report = doctor.examine(DATASETS / table, deep=deep)
    assert alarms(report) == FAULTS.get(table, set()), str(report)


def _names(archive: Path) -> str:
    return f"{archive.parent.name}/{archive.name.removesuffix('.tar.xz')}"


def _marked() -> Iterator[object]:
    for archive in ARCHIVES:
        marks = () if _names(archive) in SAMPLE else (pytest.mark.slow,)
        yield pytest.param(archive, marks=marks, id=_names(archive))


@pytest.mark.parametrize("archive", list(_marked()))
def test_tables_with_indices_of_old_releases_give_no_false_alarm(
    archive: Path, tmp_path: Path
) -> None:
    unpack(archive, tmp_path)
    found = sorted(path.parent for path in tmp_path.rglob("_versions") if "tree" not in path.parts)
    assert found
    for table in found:
        report = doctor.examine(table, deep=True)
        name = table.relative_to(tmp_path).as_posix()
        expected = next((FAULTS[each] for each in FAULTS if name.endswith(each)), set())
        assert alarms(report) == expected, f"{name}: {report}"


def test_wrong_indices_of_a_repaired_table_are_gone(tmp_path: Path) -> None:
    (archive,) = (each for each in ARCHIVES if _names(each) == "indices/1.0.4")
    unpack(archive, tmp_path)
    (table,) = tmp_path.rglob("btree_pages.lance")
    plan = doctor.repair(table)
    assert [(step.action, step.index) for step in plan.steps] == [("drop-index", "i_idx")]
    plan.apply()
    assert doctor.examine(table, deep=True).is_sound
