"""What the doctor repairs, pylance reads; `pennon verify` finds that both read the same, or where they differ."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import pennon
from pennon import doctor
from pennon.cli.main import app
from tests.faults.doctored import Everything, place
from tests.interop.oracle import Oracle


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Everything:
    """Tables with files of every kind, written once."""
    return Everything(tmp_path_factory.mktemp("everything"))


@pytest.fixture(autouse=True)
def without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def fragment_files(uri: Path, number: int) -> list[Path]:
    files = pennon.dataset(uri).snapshot.manifest.fragments[number].files
    return [uri / each.store_path for each in files]


def delete_all(paths: list[Path]) -> None:
    for path in paths:
        path.unlink()


def deletion_file(uri: Path, number: int) -> Path:
    fragment = pennon.dataset(uri).snapshot.manifest.fragments[number]
    assert fragment.deletion_file is not None
    return uri / fragment.deletion_file.store_path(fragment.id)


def folder_of(uri: Path, name: str) -> Path:
    found = {each.name: each for each in pennon.dataset(uri).describe_indices()}
    return uri / "_indices" / found[name].segments[0].uuid


LIVE = [n for n in range(600) if n % 20 != 3]
FIRST, REST = LIVE[:190], LIVE[190:]

Break = Callable[[Path], object]
CASES: dict[str, tuple[Break, dict[str, Any], list[int], tuple[int, int, int]]] = {
    "data file of most columns": (
        lambda uri: place(fragment_files(uri, 0)[0], None),
        {},
        LIVE,
        (0, 190 * 5, 0),
    ),
    "rows of lost columns go": (
        lambda uri: place(fragment_files(uri, 0)[0], None),
        {"lost_columns": "drop"},
        REST,
        (190, 0, 0),
    ),
    "all data files": (
        lambda uri: delete_all(fragment_files(uri, 0)),
        {},
        REST,
        (190, 0, 0),
    ),
    "a cut data file": (
        lambda uri: place(fragment_files(uri, 0)[1], fragment_files(uri, 0)[1].read_bytes()[:90]),
        {},
        LIVE,
        (0, 190, 0),
    ),
    "deletion file": (lambda uri: place(deletion_file(uri, 0), b"x"), {}, REST, (190, 0, 0)),
    "deletion file, rows return": (
        lambda uri: place(deletion_file(uri, 0), None),
        {"restore_deleted": True},
        [*range(200), *REST],
        (0, 0, 10),
    ),
    "index": (
        lambda uri: place(folder_of(uri, "id_idx") / "page_data.lance", b"x"),
        {},
        LIVE,
        (0, 0, 0),
    ),
    "vector index": (
        lambda uri: place(folder_of(uri, "vec_idx") / "index.idx", None),
        {},
        LIVE,
        (0, 0, 0),
    ),
    "newest manifest": (
        lambda uri: place(min((uri / "_versions").iterdir()), b"x"),
        {},
        list(range(600)),
        (0, 0, 0),
    ),
}


@pytest.mark.parametrize(
    "stable", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["addresses", "stable ids"]
)
@pytest.mark.parametrize("name", CASES)
def test_repaired_table_is_read_by_pylance_with_the_rows_that_are_left(
    everything: Everything, newest: Oracle, tmp_path: Path, name: str, stable: bool
) -> None:
    uri = everything.copy(tmp_path / "t.lance", stable=stable)
    damage, options, rows, lost = CASES[name]
    damage(uri)
    before = {path for path in uri.rglob("*") if path.is_file()}
    plan = doctor.repair(uri, **options)
    assert (plan.rows_lost, plan.values_lost, plan.rows_restored) == lost, str(plan.steps)
    assert {path for path in uri.rglob("*") if path.is_file()} == before
    version = plan.apply()
    assert before < {path for path in uri.rglob("*") if path.is_file()}
    assert doctor.repair(uri).summary == "nothing to repair"
    report = doctor.examine(uri, deep=True)
    old = {"incomplete-version", "damaged-version", "no-clean-up", "damaged-manifest"}
    left = [each for each in report if each.code not in old]
    assert left == [], str(report)
    ours = pennon.dataset(uri)
    assert ours.version == version
    theirs = newest.scan(str(uri), columns=["id", "few", "twice"])
    assert theirs.equals(ours.to_table(columns=["id", "few", "twice"]))
    twice = ours.to_table(columns=["twice"])["twice"].to_pylist()
    ids = ours.to_table(columns=["id"])["id"].to_pylist()
    assert [
        n if n is not None else m // 2
        for n, m in zip(ids, twice, strict=True)
        if n is not None or m is not None
    ] == rows
    for wanted in (7, 207, 404):
        found = ours.to_table(columns=["id"], filter=f"id = {wanted}")["id"].to_pylist()
        assert found == ids.count(wanted) * [wanted]
        assert (
            newest.scan(str(uri), columns=["id"], filter=f"id = {wanted}")["id"].to_pylist()
            == found
        )
    ours.insert(ours.to_table(limit=2, columns=["id", "few", "text", "vec", "twice"]))
    assert newest.scan(str(uri), columns=["id"]).num_rows == len(rows) + 2


def test_repeated_stable_row_ids_become_distinct(newest: Oracle, tmp_path: Path) -> None:
    from dataclasses import replace

    from pennon.table.manifest_wire import serialize_manifest_file
    from pennon.table.naming import Naming

    uri = tmp_path / "t.lance"
    pennon.write_dataset(
        pa.table({"id": range(30)}), uri, max_rows_per_file=10, enable_stable_row_ids=True
    )
    manifest = pennon.dataset(uri).snapshot.manifest
    first, second, third = manifest.fragments
    wrong = replace(manifest, fragments=(first, replace(second, row_ids=first.row_ids), third))
    place(uri / Naming.V2.manifest_path(1), serialize_manifest_file(wrong))
    report = doctor.examine(uri)
    assert [(each.code, each.fragment) for each in report] == [("repeated-row-ids", 1)]
    assert doctor.repair(uri).apply() == 2
    assert doctor.examine(uri, deep=True).is_sound
    found = newest.scan(str(uri), with_row_id=True)
    assert found["id"].to_pylist() == list(range(30))
    assert sorted(found["_rowid"].to_pylist()) == [*range(10), *range(20, 40)]


def test_mem_wal_of_pylance_is_a_note(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    program = (
        "import sys, uuid, lance, pyarrow as pa; rows = pa.table({'k': [1, 2]});"
        "lance.write_dataset(rows, sys.argv[1]).initialize_mem_wal(unsharded=True);"
        "writer = lance.dataset(sys.argv[1]).mem_wal_writer(str(uuid.uuid4()));"
        "writer.put(rows); writer.close()"
    )
    subprocess.run([sys.executable, "-c", program, str(uri)], check=True)
    (found,) = doctor.examine(uri, deep=True)
    assert (found.severity, found.code) == ("note", "mem-wal")
    assert "not looked at" in found.what


def test_verify_finds_that_pylance_reads_the_same(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    numbers = [None if n % 5 == 2 else n for n in range(1000)]
    table = pa.table(
        {
            "i": pa.array(numbers, pa.int16()),
            "f": pa.array([None if n is None else n / 3 for n in numbers], pa.float32()),
            "b": pa.array([None if n is None else n % 2 == 0 for n in numbers]),
            "s": pa.array([None if n is None else f"text {n}" for n in numbers]),
            "d": pa.array([f"w{n % 7}" for n in range(1000)]).dictionary_encode(),
            "l": pa.array([None if n is None else [n, None][: n % 3] for n in numbers]),
            "st": pa.array([None if n is None else {"x": n, "y": [str(n)]} for n in numbers]),
            "v": pa.array([[float(n)] * 4 for n in range(1000)], pa.list_(pa.float32(), 4)),
            "dec": pa.array([Decimal(n) / 10 for n in range(1000)], pa.decimal128(20, 1)),
            "a b": pa.array(range(1000)),
        }
    )
    ds = pennon.write_dataset(table, uri, max_rows_per_file=300)
    ds.delete("i % 7 = 0")
    done = CliRunner().invoke(app, ["verify", str(uri), "--against", "pylance", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["equal"]
    assert found["against"] == "pylance 14.0.2"
    assert {each["verdict"] for each in found["columns"].values()} == {"same"}
    assert found["columns"].keys() == set(table.column_names)


def test_verify_names_the_column_that_pylance_reads_otherwise(tmp_path: Path) -> None:
    """Of a fragment with two files of one field Pennon reads the newer one: see reused-field-id."""
    golden = Path(__file__).parents[1] / "golden" / "datasets" / "v0.10.5" / "corrupt_schema"
    command = ["verify", str(golden), "--against", "pylance", "--python", sys.executable]
    done = CliRunner().invoke(app, [*command, "--columns", "x,b"])
    assert done.exit_code == 3
    verdicts = dict(
        line.split()[:2] for line in done.output.splitlines() if line[:2] in {"x ", "b "}
    )
    assert verdicts == {"x": "same", "b": "differs"}, done.output
    assert "1 of 2 columns are the same" in done.output


def test_verify_with_a_python_that_lacks_pylance_is_refused(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    pennon.write_dataset(pa.table({"id": [1]}), uri)
    command = ["verify", str(uri), "--against", "pylance", "--python", "/usr/bin/python3"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code != 0
    assert "pylance did not read the table" in str(done.exception)
