"""Runs a module of the tests in a process of its own, so that a crash of the reader ends that one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]


def summary_of(*command: str) -> dict[str, Any]:
    """Run a module with arguments; return the last line that it prints.  Fails if the child does."""
    child = subprocess.run(
        [sys.executable, "-m", *command],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "RUST_BACKTRACE": "0"},
        check=False,
    )
    lines = child.stdout.splitlines() or ["{}"]
    assert child.returncode == 0, f"the child ended at {lines[-1]}:\n{child.stderr[-3000:]}"
    summary: dict[str, Any] = json.loads(lines[-1])
    return summary
