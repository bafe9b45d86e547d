"""``pennon doctor``: text, JSON, exit codes, and repairs that write only when they are told to."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import pennon
from pennon.cli.main import app

FINDING = {
    *("severity", "code", "what", "where", "advice", "file", "fragment", "column", "page"),
    *("byte_range", "index"),
}


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words)


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = tmp_path / "t.lance"
    pennon.write_dataset(pa.table({"n": range(30)}), uri, max_rows_per_file=10)
    return str(uri)


@pytest.fixture
def lost(table: str) -> str:
    """Return a data file of a table that is gone."""
    path = pennon.dataset(table).get_fragments()[1].data_files()[0].path
    Path(table, "data", path).unlink()
    return f"data/{path}"


def test_doctor_command_of_a_sound_table_ends_with_0(table: str) -> None:
    done = run("doctor", table, "--deep")
    assert done.exit_code == 0
    assert done.stdout.endswith("3 fragments, 30 rows, 30 values decoded\n")
    found = json.loads(run("doctor", table, "--json").stdout)
    assert (found["is_sound"], found["findings"], found["version"]) == (True, [], 1)


def test_doctor_command_names_the_file_that_is_gone_and_ends_with_3(table: str, lost: str) -> None:
    done = run("doctor", table)
    assert done.exit_code == 3
    assert "error missing-file" in done.stdout
    assert lost in done.stdout
    done = run("doctor", table, "--json")
    assert done.exit_code == 3
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding.keys() == FINDING
    assert (finding["severity"], finding["file"], finding["fragment"]) == ("error", lost, 1)


def test_repair_is_a_dry_run_until_it_is_applied(table: str, lost: str) -> None:
    done = run("doctor", table, "--repair")
    assert done.exit_code == 0
    assert "fragment 1 goes: no column of it is left: 10 rows lost" in done.stdout
    assert "nothing was written; --apply makes this version" in done.stdout
    assert pennon.dataset(table).version == 1
    found = json.loads(run("doctor", table, "--repair", "--json").stdout)
    assert (found["rows_lost"], found["version_made"]) == (10, None)
    assert found["steps"][0]["file"] == lost
    done = run("doctor", table, "--repair", "--apply")
    assert "version 2 is without what was broken" in done.stdout
    assert pennon.dataset(table).to_table()["n"].to_pylist() == [*range(10), *range(20, 30)]
    assert "nothing to repair" in run("doctor", table, "--repair", "--apply").stdout
    assert pennon.dataset(table).version == 2


def test_doctor_command_refuses_options_that_do_not_go_together(table: str) -> None:
    for words in (("--apply",), ("--repair", "--at", "1")):
        done = run("doctor", table, *words)
        assert done.exit_code == 1
        assert "--repair" in str(done.exception)


def test_doctor_command_of_a_missing_table_ends_with_1(tmp_path: Path) -> None:
    done = run("doctor", str(tmp_path / "none"))
    assert done.exit_code == 1
    assert "no table" in str(done.exception) or "there is no" in str(done.exception)
