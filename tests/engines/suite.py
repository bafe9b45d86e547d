"""Run a library's own tests of Lance with Pennon and with pylance: ``make engine-suite SUITE=FOLDER ARGS=…``.

FOLDER is the root of the library's repository, which is no part of this tree: lance-ray, daft-lance,
Daft, Hugging Face's datasets.  The measure is the tests that pass here with pylance.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pennon.as_lance.install import PATH as ALIAS
from tests.upstream.report import print_comparison, run_tests

ROOT: Final = Path(__file__).parents[2]
PYTHON: Final = ROOT / ".venv-engines" / "bin" / "python"
TOOLS: Final = ROOT / "build" / "engine-suite" / "tools"
"""What those tests import, and nothing of ours does."""
PYLANCE: Final = ROOT / "build" / "engine-suite" / "pylance"

QUIET: Final = {
    "DAFT_ANALYTICS_ENABLED": "0",
    "DAFT_RUNNER": "native",
    "HF_HUB_OFFLINE": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "600",
}


def outcomes(
    folder: Path, files: Sequence[str], lance: Path | str, options: Sequence[str]
) -> dict[str, str]:
    """Run tests with the module ``lance`` of a folder; return for each test "" if it passed, else what was said."""
    env = {
        "PYTHONPATH": os.pathsep.join(str(place) for place in (lance, ROOT / "src", TOOLS)),
        "PATH": f"{PYTHON.parent}:/usr/bin:/bin",
        **QUIET,
    }
    command = [str(PYTHON), "-m", "pytest", "-q", "--no-header", "-o", "addopts=", *files]
    command += ["--timeout=600", "--continue-on-collection-errors"]
    return run_tests(command, folder, env, options)


def main() -> int:
    """Run the files with both, and say what only pylance passes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="root of the library's repository")
    parser.add_argument("files", nargs="+", help="files or folders of tests there")
    parser.add_argument("-k", dest="name", help="only tests that pytest selects so")
    parser.add_argument("--confcutdir", help="conftest.py of folders above this one is not used")
    parser.add_argument(
        "--apart",
        action="store_true",
        help="run a copy of the tests, so that the installed library is tested",
    )
    asked = parser.parse_args()
    options = ["-k", asked.name] if asked.name else []
    options += ["--confcutdir", asked.confcutdir] if asked.confcutdir else []
    with TemporaryDirectory() as copy:
        folder = asked.folder
        if asked.apart:
            folder = Path(copy)
            for name in asked.files:
                shutil.copytree(asked.folder / name, folder / name)
        theirs = outcomes(folder, asked.files, PYLANCE, options)
        ours = outcomes(folder, asked.files, ALIAS, options)
    print_comparison(asked.folder.name, theirs, ours)
    return 0


if __name__ == "__main__":
    sys.exit(main())
