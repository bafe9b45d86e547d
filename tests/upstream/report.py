"""Runs of the tests of other projects, what pytest reported, and which tests that passed with pylance fail with Pennon."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET


def run_tests(
    command: Sequence[str], folder: Path, env: Mapping[str, str], options: Sequence[str] = ()
) -> dict[str, str]:
    """Run pytest by a command in a folder; return for each test "" if it passed, else what was said first.

    ``env``: the environment beside HOME, which is an empty folder.  Raises RuntimeError if pytest writes no report.
    """
    with tempfile.TemporaryDirectory() as made:
        report = Path(made) / "report.xml"
        places = [f"--junitxml={report}", f"--basetemp={made}/data", "-p", "no:cacheprovider"]
        run = subprocess.run(
            [*command, *places, *options],
            cwd=folder,
            env={"HOME": made, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        if not report.exists():
            message = f"pytest did not run: {command}: {run.stdout[-1000:]}{run.stderr[-1000:]}"
            raise RuntimeError(message)
        return read_report(report)


def read_report(path: Path) -> dict[str, str]:
    """Return for each test of a report in JUnit's format "" if it passed, else what was said first."""
    cases = ET.parse(path).getroot().iter("testcase")
    return {f"{case.get('classname')}.{case.get('name')}": _said(case) for case in cases}


def _said(case: ET.Element) -> str:
    for kind in ("failure", "error", "skipped"):
        found = case.find(kind)
        if found is not None:
            return f"{kind}: {(found.get('message') or '').splitlines()[0:1]}"
    return ""


def print_comparison(
    title: str, theirs: dict[str, str], ours: dict[str, str], *, all_failures: bool = False
) -> None:
    """Print how many tests that pass with pylance pass with Pennon, and what was said of the others.

    ``all_failures``: also of those that fail with pylance.
    """
    measured = [name for name, said in theirs.items() if not said]
    failed = {name: ours.get(name, "not collected") for name in theirs}
    failed = {name: said for name, said in failed.items() if said}
    lost = {name: said for name, said in failed.items() if not theirs[name]}
    share = 1 - len(lost) / max(len(measured), 1)
    print(
        f"{title}: {len(measured) - len(lost)} of {len(measured)}, {share:.1%}; "
        f"of all {len(theirs)} Pennon passes {len(theirs) - len(failed)}",
        flush=True,
    )
    for name, said in (failed if all_failures else lost).items():
        print(f"    {name}: {said}", flush=True)
