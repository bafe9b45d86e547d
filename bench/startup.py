"""How long programs take to begin: whole processes, from start to end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
from machine import seconds

import pennon

PROGRAMS = {
    "nothing": "pass",
    "import pyarrow.compute": "import pyarrow.compute",
    "import pennon": "import pennon",
    "import lance": "import lance",
}
HEAD = "pennon head"
RATIOS = (
    ("import pennon", "import pyarrow.compute", 1.3),
    ("import pennon", "import lance", 0.5),
    (HEAD, "import pennon", 1.6),
)
"""What is compared with what, and what the ratio is to be at most."""


def measure_startup(folder: Path, turns: int) -> dict[str, float]:
    """Return milliseconds of each program, the least of several turns after one to warm up."""
    uri = str(folder / "head.lance")
    rows = range(1000)
    pennon.write_dataset(pa.table({"n": rows, "word": [f"word {n}" for n in rows]}), uri)
    commands = {name: [sys.executable, "-c", code] for name, code in PROGRAMS.items()}
    commands[HEAD] = [sys.executable, "-m", "pennon.cli.main", "head", uri]
    # bytecode is kept, as it is wherever a package is installed
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def run(command: list[str]) -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)

    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(turns + 1):
        for name, command in commands.items():
            taken = seconds(partial(run, command))
            if turn:
                times[name].append(taken * 1000)
    return {name: min(values) for name, values in times.items()}


def ratios_of(times: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """Return each comparison as text, its ratio, and what that is to be at most."""
    return [(f"{a} / {b}", times[a] / times[b], most) for a, b, most in RATIOS]
