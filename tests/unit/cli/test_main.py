from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import pennon


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pennon.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("cli") / "t.lance")
    rows = pa.table({"id": [1, 2, 3], "word": ["a", None, "[bold]c"]})
    pennon.write_dataset(rows, uri, data_storage_version="2.0")
    pennon.write_dataset(rows, uri, mode="append")
    return uri


def test_info_shows_version_rows_fragments_and_types(table: str) -> None:
    shown = run("info", table).stdout
    for part in ("version       2 (newest: 2)", "rows          6", "fragments     2", "int64"):
        assert part in shown


def test_info_names_the_pylance_releases_that_read_the_files(tmp_path: Path) -> None:
    rows, shown = pa.table({"id": [1]}), []
    for version in ("0.1", "2.0", "2.1", "2.2"):
        uri = str(tmp_path / version)
        pennon.write_dataset(rows, uri, data_storage_version=version)
        shown.append(run("info", uri).stdout)
    pennon.write_dataset(rows, uri, mode="append", data_storage_version="2.0")
    shown.append(run("info", uri).stdout)
    lines = [next(x for x in each.splitlines() if "file version" in x) for each in shown]
    assert [line.removeprefix("file version  ") for line in lines] == [
        "0.1, read by every pylance",
        "2.0, read by pylance 0.16 and later",
        "2.1, read by pylance 0.38 and later",
        "2.2, read by pylance 3.0 and later",
        "2.2 (and files of 2.0), read by pylance 12.0 and later",
    ]


def test_info_of_an_older_version(table: str) -> None:
    assert "rows          3" in run("info", table, "--at", "1").stdout


def test_malformed_storage_option_error_hides_its_value(table: str) -> None:
    done = run("info", table, "-s", "a=b", "-s", "hunter2")
    assert done.returncode
    assert "word 2 of 2" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr


def test_head_shows_nulls_and_markup_text(table: str) -> None:
    shown = run("head", table, "-n", "3").stdout
    assert "NULL" in shown
    assert "[bold]c" in shown


def test_head_of_one_column(table: str) -> None:
    shown = run("head", table, "-c", "word").stdout
    assert "word" in shown
    assert "id" not in shown


def test_versions_lists_each(table: str) -> None:
    lines = [line.split() for line in run("versions", table).stdout.splitlines()]
    assert [line[0] for line in lines if line and line[0].isdigit()] == ["1", "2"]


def test_inspect_ends_with_the_footer(table: str) -> None:
    file = next((Path(table) / "data").iterdir())
    shown = run("inspect", str(file)).stdout
    assert "footer" in shown
    assert f"{file.stat().st_size:,}" in shown


def test_inspect_explains_the_pages_of_2_1(tmp_path: Path) -> None:
    rows = pa.table({"id": range(3_000), "list": [[n] * (n % 3) for n in range(3_000)]})
    pennon.write_dataset(rows, tmp_path / "t", data_storage_version="2.1")
    file = next((tmp_path / "t" / "data").iterdir())
    shown = run("inspect", str(file)).stdout
    for part in (
        "id, page 0: 3,000 rows, mini-block\n",
        " in line)\n",
        "list (empty) > item; ",
        "repetition index ",
        "column table",
        "version 2.1, 3,000 rows, ",
    ):
        assert part in shown, part
    pages = run("inspect", "--no-ranges", str(file)).stdout
    assert "list.item, page 0" in pages
    assert "column table  " not in pages
    ranges = run("inspect", "--no-pages", "--no-chunks", str(file)).stdout
    assert "    values " not in ranges
    assert "headers and padding" not in ranges


@pytest.mark.parametrize(
    "words",
    [
        ("info", "/no/such/table"),
        ("head", "TABLE", "-c", "nix"),
        ("info", "TABLE", "--at", "99"),
        ("info", "TABLE", "-s", "novalue"),
        ("inspect", __file__),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(table: str, words: tuple[str, ...]) -> None:
    done = run(*(table if word == "TABLE" else word for word in words))
    assert done.returncode == 1
    assert done.stderr.startswith("pennon: ")
    assert done.stderr.count("\n") == 1


def test_help_loads_no_more_than_the_package_does() -> None:
    code = (
        "import sys; sys.argv[1:] = ['--help']\n"
        "try:\n    from pennon.cli.main import main; main()\n"
        "except SystemExit: pass\n"
        "heavy = {'pyspark', 'obstore', 'pandas', 'polars', 'pyarrow.dataset', 'pennon.cli.rows'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")


def test_convert_makes_a_version(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"id": [1, 2, 3], "word": ["a", None, "c"]})
    pennon.write_dataset(rows, uri, data_storage_version="legacy")
    done = run("convert", uri, "--to", "2.1")
    assert done.returncode == 0, done.stderr
    assert "version 2 has files of version 2.1" in done.stdout
    assert "indices" not in done.stdout
    assert pennon.dataset(uri).to_table().equals(rows)
    assert pennon.dataset(uri).data_storage_version == "2.1"
    failed = run("convert", uri, "--to", "2.3")
    assert failed.returncode == 1
    assert "cannot be written yet" in failed.stderr


def test_convert_names_the_indices_that_it_drops(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"id": [1, 2, 3], "word": ["a", None, "c"]})
    table = pennon.write_dataset(rows, uri, data_storage_version="2.0")
    table.create_scalar_index("word", "BITMAP")
    table.create_scalar_index("id", "BTREE", "by id")
    done = run("convert", uri, "--to", "2.1")
    assert "these indices were dropped, make them anew: by id, word_idx" in done.stdout
    assert pennon.dataset(uri).describe_indices() == []
