"""``pennon compact`` and ``pennon clean``."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import pennon
from pennon.cli.main import app


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words)


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "t.lance")
    for number in range(3):
        pennon.write_dataset(pa.table({"n": [number]}), uri, mode="append" if number else "create")
    return uri


def test_compact_then_clean(table: str) -> None:
    assert "version 5 has 1 fragments in the place of 3" in run("compact", table).stdout
    assert "nothing to compact" in run("compact", table).stdout
    told = run("clean", table, "--retain", "1")
    assert "would delete 4 versions, 7 files" in told.stdout
    assert "transaction" in told.stdout
    assert len(pennon.dataset(table).versions()) == 5
    assert "deleted 4 versions, 7 files" in run("clean", table, "--retain", "1", "--delete").stdout
    assert len(pennon.dataset(table).versions()) == 1
    assert pennon.dataset(table).to_table()["n"].to_pylist() == [0, 1, 2]


def test_clean_command_parses_ages(table: str) -> None:
    assert "would delete 0 versions, 0 files" in run("clean", table, "--older-than", "30d").stdout
    wrong = run("clean", table, "--older-than", "soon")
    assert wrong.exit_code == 2
    assert "must be an age like" in wrong.stderr
