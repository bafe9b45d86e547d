"""Run Lance's own tests with Pennon and with pylance: ``python -m tests.upstream FOLDER test_vector.py …``.

FOLDER is ``python/python/tests`` of Lance's repository, which is no part of this tree.  The measure is
the tests that pylance passes on this machine: how many of them does Pennon pass?
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.upstream.report import print_comparison, run_tests

ROOT = Path(__file__).parents[2]
EXTRAS = "build/upstream"
"""What those tests and pylance import, and nothing of ours does."""


def outcomes(folder: Path, file: str, options: Sequence[str]) -> dict[str, str]:
    """Run one file of tests; return for each test "" if it passed, else what was said first."""
    env = {
        "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}:{ROOT / EXTRAS}",
        "PATH": str(Path(sys.executable).parent),
    }
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", file]
    return run_tests(command, folder, env, options)


def main() -> int:
    """Run the files with both, and say what only pylance passes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="python/python/tests of Lance's repository")
    parser.add_argument("files", nargs="+", help="files of tests there")
    parser.add_argument("-k", dest="name", help="only tests that pytest selects so")
    parser.add_argument("-W", dest="warnings", help="pytest's -W: ignore::DeprecationWarning")
    parser.add_argument("--all", action="store_true", help="show failures that pylance has, too")
    asked = parser.parse_args()
    options = ["-k", asked.name] if asked.name else []
    options += ["-W", asked.warnings] if asked.warnings else []
    for file in asked.files:
        theirs = outcomes(asked.folder, file, options)
        ours = outcomes(asked.folder, file, [*options, "-p", "tests.upstream.alias"])
        print_comparison(file, theirs, ours, all_failures=asked.all)
    return 0


if __name__ == "__main__":
    sys.exit(main())
