"""The doctor names the file of every damage that a reader meets, and damage never ends it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import pennon
from pennon import doctor
from pennon.errors import ArgumentError, RetryableConflict
from pennon.table.manifest_wire import serialize_manifest_file
from tests.faults.blob_files import COLUMNS, BlobDamager
from tests.faults.blob_files import place as place_blob_file
from tests.faults.damage import Damager
from tests.faults.doctored import (
    DAMAGE,
    Everything,
    files_of,
    named_files,
    place,
    read_all,
)
from tests.faults.mutants import mutants_of
from tests.faults.test_mutants import TABLES, data_file_regions, manifest_regions
from tests.faults.try_blob_mutants import reads_of

VERSIONS = ("0.1", "2.0", "2.1", "2.2")
SEED = int(os.environ.get("PENNON_MUTANTS_SEED", "3"))
REPOSITORY = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Everything:
    """Tables with files of every kind, written once."""
    return Everything(tmp_path_factory.mktemp("everything"))


@pytest.fixture(autouse=True)
def without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def check_examined(uri: Path, relative: str, damage: object) -> doctor.Report:
    """Check that what a reader of damaged bytes meets is found, and return the report."""
    met = read_all(uri)
    report = doctor.examine(uri, deep=True)
    assert not [each for each in report if each.code == "failed-check"], (damage, str(report))
    if met:
        assert named_files(report) & {relative, *met}, (damage, met, str(report))
    return report


@pytest.mark.parametrize(
    "stable", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["addresses", "stable ids"]
)
def test_missing_empty_and_cut_files_of_every_kind_are_named(
    everything: Everything, tmp_path: Path, stable: bool
) -> None:
    uri = everything.copy(tmp_path / "t.lance", stable=stable)
    sound = doctor.examine(uri, deep=True)
    assert sound.findings == (), str(sound)
    files = sorted(files_of(uri))
    kinds = {path.suffix for path in files}
    assert kinds == {".lance", ".blob", ".arrow", ".idx"}
    for path in files:
        data = path.read_bytes()
        for damaged in (None, data[: len(data) // 2]):
            place(path, damaged)
            report = doctor.examine(uri)
            errors = {each.file for each in report if each.severity is doctor.Severity.ERROR}
            assert str(path.relative_to(uri)) in errors, (path, damaged, str(report))
        place(path, data)
    assert doctor.examine(uri).findings == ()


@pytest.mark.parametrize("folder", ["_versions", "_transactions", "_refs"])
def test_damaged_manifests_transactions_and_refs_are_named(
    everything: Everything, tmp_path: Path, folder: str
) -> None:
    uri = everything.copy(tmp_path / "t.lance")
    newest = pennon.dataset(uri).version
    for path in sorted(each for each in (uri / folder).rglob("*.*") if each.is_file()):
        data = path.read_bytes()
        place(path, b"\x07 none")
        report = doctor.examine(uri)
        if folder != "_transactions" or path.name.startswith(f"{newest - 1}-"):
            relative = str(path.relative_to(uri))
            # a transaction also stands in its manifest
            found = {each.file for each in report}
            assert relative in found or folder == "_transactions", (path, str(report))
        place(path, data)


def test_examination_goes_on_with_the_newest_readable_version(
    everything: Everything, tmp_path: Path
) -> None:
    uri = everything.copy(tmp_path / "t.lance")
    newest = min((uri / "_versions").iterdir())
    place(newest, newest.read_bytes()[:100])
    report = doctor.examine(uri)
    assert [(each.code, each.file) for each in report if each.code != "no-clean-up"] == [
        ("damaged-manifest", f"_versions/{newest.name}")
    ]
    assert report.version == 6


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_damage_of_data_files_that_readers_meet_is_found(
    tmp_path: Path, version: str, count: int
) -> None:
    met = 0
    for name, make in TABLES.items():
        uri = tmp_path / name
        table = make()
        if version in {"2.1", "2.2"} and name == "nested":
            table = table.drop_columns(["packed"])
        pennon.write_dataset(table, uri, data_storage_version=version)
        (path,) = (uri / "data").iterdir()
        for damage, data in _mutants(name, path.read_bytes(), version, count):
            place(path, data)
            met += not check_examined(uri, str(path.relative_to(uri)), damage).is_sound
    assert met > count // 2


def _mutants(name: str, data: bytes, version: str, count: int) -> Iterator[tuple[object, bytes]]:
    if version in {"2.1", "2.2"}:
        damager = Damager(name, data, SEED)
        for number in range(count):
            found = damager.mutant(number)
            yield (found.part, found.how, number), found.data
        return
    end = len(data)
    regions = data_file_regions(data) if version == "2.0" else [(0, end - 400), (end - 400, end)]
    for mutant in mutants_of(name, data, regions, SEED, count):
        yield mutant, mutant.apply(data)


@pytest.mark.parametrize("count", [12, pytest.param(500, marks=pytest.mark.slow)])
def test_damage_of_manifests_that_readers_meet_is_found(
    everything: Everything, tmp_path: Path, count: int
) -> None:
    uri = everything.copy(tmp_path / "t.lance", version="2.1")
    path = min((uri / "_versions").iterdir())
    data = path.read_bytes()
    for mutant in mutants_of("manifest", data, manifest_regions(data), SEED, count):
        place(path, mutant.apply(data))
        check_examined(uri, str(path.relative_to(uri)), mutant)


@pytest.mark.parametrize("count", [1, pytest.param(30, marks=pytest.mark.slow)])
def test_damage_of_deletion_and_index_files_is_found(
    everything: Everything, tmp_path: Path, count: int
) -> None:
    """What a filter or search cannot read of an index is damage; what it reads as other values nobody can tell."""
    uri = everything.copy(tmp_path / "t.lance", version="2.1")
    for path in sorted(files_of(uri)):
        if path.parent.name == "data":
            continue
        data, relative = path.read_bytes(), str(path.relative_to(uri))
        for mutant in mutants_of(path.name, data, [(0, len(data))], SEED, count):
            place(path, mutant.apply(data))
            report = check_examined(uri, relative, mutant)
            described = pennon.dataset(uri).describe_indices()
            why = {each.details.get("not_asked") for each in described} - {None}
            broken = [each for each in report if each.index is not None]
            assert bool(broken) >= bool(why), (relative, mutant, why, str(report))
        place(path, data)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("alone", 8),
        pytest.param("alone", 200, marks=pytest.mark.slow),
        pytest.param("in-structs", 200, marks=pytest.mark.slow),
    ],
)
def test_damage_of_blobs_that_readers_meet_is_found(tmp_path: Path, name: str, count: int) -> None:
    command = [sys.executable, "-m", "tests.faults.blob_files", "pennon", str(tmp_path)]
    subprocess.run(command, check=True, cwd=REPOSITORY)
    uri = tmp_path / name
    table = pennon.dataset(uri).to_table(columns={"b": COLUMNS[name]})
    damager = BlobDamager(uri, table["b"].to_pylist(), SEED)
    assert doctor.examine(uri, deep=True).is_sound
    met = 0
    for number in range(count):
        mutant = damager.mutant(number)
        place_blob_file(mutant.path, mutant.data)
        found = _met(uri)
        report = doctor.examine(uri, deep=True)
        assert not [each for each in report if each.code == "failed-check"], str(report)
        if found:
            met += 1
            assert not report.is_sound, (mutant.part, mutant.how, number, found)
        damager.restore(mutant)
    assert met > 1


def _met(uri: Path) -> list[str]:
    """Read rows and blobs; return the errors of damage."""
    found = []
    try:
        reads = list(reads_of(uri))
    except DAMAGE as error:
        return [str(error)]
    except pennon.errors.LanceError:
        return []
    for read in reads:
        try:
            read()
        except DAMAGE as error:
            found.append(str(error))
        except pennon.errors.LanceError:
            continue
    return found


def test_examination_leaves_all_files_of_a_table_as_they_are(
    everything: Everything, tmp_path: Path
) -> None:
    uri = everything.copy(tmp_path / "t.lance")

    def contents() -> dict[str, bytes]:
        found = [path for path in uri.rglob("*") if path.is_file()]
        return {str(path.relative_to(uri)): path.read_bytes() for path in found}

    before = contents()
    doctor.examine(uri, deep=True)
    doctor.repair(uri)
    assert contents() == before
    shutil.rmtree(uri / "data")
    assert doctor.repair(uri).rows_lost == 570


def test_file_of_a_shallow_clone_is_named_by_its_whole_path(
    everything: Everything, tmp_path: Path
) -> None:
    uri, clone = everything.copy(tmp_path / "t.lance"), tmp_path / "clone.lance"
    pennon.dataset(uri).shallow_clone(clone)
    assert doctor.examine(clone, deep=True).is_sound
    strict = doctor.examine(clone, trusted_bases=[])
    assert {each.code for each in strict} == {"untrusted-place"}
    assert doctor.repair(clone, trusted_bases=[]).steps == ()
    path = min((uri / "data").glob("*.lance"))
    path.unlink()
    report = doctor.examine(clone)
    assert str(path) in {each.file for each in report if each.code == "missing-file"}


def test_table_with_a_newer_feature_is_not_taken_for_damaged(tmp_path: Path) -> None:
    """To let an older version follow would take away what a newer release wrote."""
    uri = tmp_path / "t.lance"
    pennon.write_dataset(pa.table({"id": range(3)}), uri)
    pennon.write_dataset(pa.table({"id": range(3)}), uri, mode="append")
    path = min((uri / "_versions").iterdir())
    manifest = pennon.dataset(uri).snapshot.manifest
    place(path, serialize_manifest_file(replace(manifest, reader_flags=1 << 40)))
    report = doctor.examine(uri)
    assert [(each.code, each.file) for each in report if each.code != "no-clean-up"] == [
        ("not-readable-here", f"_versions/{path.name}")
    ]
    plan = doctor.repair(uri)
    assert (plan.steps, "no manifest of the table can be read" in plan.summary) == ((), True)
    with pytest.raises(ArgumentError):
        plan.apply()


def test_repair_does_not_follow_a_commit_that_came_since(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    pennon.write_dataset(pa.table({"id": range(30)}), uri, max_rows_per_file=10)
    min((uri / "data").iterdir()).unlink()
    plan = doctor.repair(uri)
    pennon.write_dataset(pa.table({"id": range(3)}), uri, mode="append")
    with pytest.raises(RetryableConflict):
        plan.apply()
    assert doctor.repair(uri).apply() == 3
    assert pennon.dataset(uri).count_rows() == 23


@pytest.mark.parametrize("count", [3, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_repaired_table_is_read_without_errors_after_random_damage(
    everything: Everything, tmp_path: Path, version: str, count: int
) -> None:
    """Several files at once are damaged; no read of the repaired table fails, and rows are those that are left."""
    rng = Random(f"{SEED}:{version}")
    for number in range(count):
        uri = everything.copy(
            tmp_path / f"{number}.lance", stable=bool(number % 2), version=version
        )
        may_have_other_values = number % 3 == 0
        for path in rng.sample(sorted(files_of(uri)), 3):
            data = path.read_bytes()
            (mutant,) = mutants_of(path.name, data, [(0, len(data))], rng.randrange(1 << 30), 1)
            other = mutant.apply(data) if may_have_other_values else b"x"
            place(path, rng.choice((None, other, data[: len(data) // 3])))
        plan = doctor.repair(uri)
        if plan.steps:
            plan.apply()
        again = doctor.repair(uri)  # an index of what was lost could not be asked before
        assert {step.action for step in again.steps} <= {"drop-index"}
        if again.steps:
            again.apply()
        report = doctor.examine(uri, deep=True)
        assert report.count(doctor.Severity.ERROR) == 0, (number, str(plan.steps), str(report))
        assert read_all(uri) == set()
        found = pennon.dataset(uri)
        assert found.count_rows() == found.to_table().num_rows == 570 - plan.rows_lost
        for condition in () if may_have_other_values else ("id > 100", "few = 'city 3'"):
            with_index = found.count_rows(condition)
            scanner = found.scanner(filter=condition, columns=["id"], use_scalar_index=False)
            assert with_index == scanner.to_table().num_rows, (number, condition)
        shutil.rmtree(uri)
