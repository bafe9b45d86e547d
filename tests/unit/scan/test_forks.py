"""Tables that were opened and read before a fork, in many children at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = "tests.unit.scan.fork_rounds"


@pytest.mark.parametrize("rounds", [3, pytest.param(200, marks=pytest.mark.slow)])
def test_forked_children_read_concurrently(tmp_path: Path, rounds: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", PROGRAM, str(tmp_path), str(rounds)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
