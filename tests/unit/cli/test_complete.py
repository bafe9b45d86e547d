"""Completion of tables, columns, versions and indices, through click's protocol."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from click.shell_completion import BashComplete

import pennon
from pennon.cli.main import app
from tests.unit.cli.commands import done


def completed(*words: str, last: str = "") -> list[str]:
    complete = BashComplete(app, {}, "pennon", "_PENNON_COMPLETE")
    return [each.value for each in complete.get_completions(list(words), last)]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    rows = {"id": [1], "s": [{"x": 1, "word": "a"}], "evil\x1b[2J": [1], "a b": [1], "idle": [1]}
    ds = pennon.write_dataset(pa.table(rows), "t.lance")
    ds.tags.create("v1.0")
    ds.create_branch("trial")
    ds.create_scalar_index("id", "BTREE")
    (tmp_path / "folder").mkdir()
    (tmp_path / "$(touch oops).lance" / "_versions").mkdir(parents=True)
    return "t.lance"


def test_commands_complete() -> None:
    assert completed(last="he") == ["head"]
    assert completed("index", last="cr") == ["create"]


def test_tables_complete_and_folders_with_a_slash(table: str) -> None:
    assert completed("head", last="t") == ["t.lance"]
    assert completed("head") == ["t.lance", "folder/"]
    assert completed("head", last="folder/") == ["folder/"]
    assert completed("head", last="/no/such/") == []


def test_columns_complete_behind_the_last_comma_without_names_a_shell_obeys(table: str) -> None:
    assert completed("head", table, "-c", last="id") == ["id", "idle"]
    assert completed("head", table, "--columns", last="id,s") == ["id,s", "id,s.x", "id,s.word"]
    assert completed("head", table, "-c", last="e") == []
    assert completed("head", table, "--order-by", last="idl") == ["idle"]
    assert completed("index", "create", table, last="s.w") == ["s.word"]


def test_versions_and_indices_complete(table: str) -> None:
    assert completed("head", table, "--at") == ["v1.0", "trial", "2", "1"]
    assert completed("tags", "delete", table, last="v") == ["v1.0"]
    assert completed("index", "drop", table, last="i") == ["id_idx"]


def test_completion_of_a_damaged_or_absent_table_is_empty(table: str, tmp_path: Path) -> None:
    for manifest in (tmp_path / "t.lance" / "_versions").iterdir():
        manifest.write_bytes(b"damaged")
    assert completed("head", table, "-c", last="i") == []
    assert completed("head", "nix.lance", "-c", last="i") == []
    assert completed("head", "nix.lance", "--at") == []


def test_completion_scripts_name_the_command_and_answer(table: str) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_PENNON_COMPLETE" in done("completion", shell)
    environment = {
        "_PENNON_COMPLETE": "bash_complete",
        "COMP_WORDS": f"pennon head {table} -c id",
        "COMP_CWORD": "4",
    }
    command = [sys.executable, "-m", "pennon.cli.main"]
    answer = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    assert answer.stdout.split() == ["plain,id", "plain,idle"]
