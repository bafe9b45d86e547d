"""Operations on a cluster that loses an executor when files are written: each row once, one version."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.changes import OPERATIONS, rows_of

ROOT = Path(__file__).parents[2]


def run(module: str, *arguments: str) -> dict[str, Any]:
    """Run a program of this folder, and return what it saw."""
    command = [sys.executable, "-m", f"tests.spark.{module}", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


@pytest.mark.parametrize(("deed", "names"), [("kills", ["merge"])])
def test_an_operation_outlives_its_executors(deed: str, names: list[str], tmp_path: Path) -> None:
    seen = run("kills", deed, str(tmp_path), *names)
    for name in names:
        told = seen[name]
        assert (told["failed"], told["happened"]) == ("", True), (name, told)
        assert told["version"] == 2, name
        assert told["orphans"] > 0, name
        assert rows_of(str(tmp_path / f"{name}.lance")) == OPERATIONS[name].after, name
