"""Build the source archive and the wheel into ``dist/`` with the locked build tools, and check both.

The wheel is built of what the archive holds, so that an archive which lacks a file never leaves this
machine.  ``--wheel`` builds the wheel of the tree alone; ``--check`` builds nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

DIST = Path("dist").absolute()
MOST_WHEEL_BYTES = 6_000_000
ONLY_SOURCES = (".pyx", ".pxd", ".c", ".h", ".pyc")
NEEDED_IN_ARCHIVE = ("setup.py", "tests/unit/test_import.py", "requirements/dev.lock", "LICENSE")
HOOK = """
import sys
from setuptools import build_meta
print(getattr(build_meta, sys.argv[1])(sys.argv[2]))
"""


def main() -> None:
    """Build what was asked for, check it, and print names and sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", action="store_true", help="only the wheel, of the tree itself")
    parser.add_argument("--check", action="store_true", help="only check what dist/ holds")
    options = parser.parse_args()
    if not options.check:
        for old in [*DIST.glob("pennon-*.whl"), *DIST.glob("pennon-*.tar.gz")]:
            old.unlink()
        os.environ.setdefault("SOURCE_DATE_EPOCH", commit_seconds())
        if options.wheel:
            run_hook("build_wheel", Path())
        else:
            build_wheel_of(DIST / run_hook("build_sdist", Path()))
    for built in sorted(DIST.glob("pennon-*")):
        faults = {".whl": wheel_faults, ".gz": archive_faults}.get(built.suffix, no_faults)(built)
        print(
            f"{built.relative_to(Path.cwd())}: {built.stat().st_size:,} bytes", *faults, sep="\n  "
        )
        if faults:
            sys.exit(1)


def commit_seconds() -> str:
    """Return when the newest commit was made, as files in archives are dated: a build repeats byte by byte."""
    told = ["git", "log", "-1", "--format=%ct"]
    found = subprocess.run(told, capture_output=True, text=True, check=False).stdout.strip()
    return found or "1767225600"  # 2026, where there is no repository


def run_hook(hook: str, tree: Path) -> str:
    """Run a hook of the build system in a process of its own; return the name of what it made."""
    DIST.mkdir(exist_ok=True)
    command = [sys.executable, "-c", HOOK, hook, str(DIST)]
    done = subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()[-1]


def build_wheel_of(archive: Path) -> None:
    """Unpack a source archive elsewhere, and build the wheel there."""
    with tempfile.TemporaryDirectory(prefix="pennon-build-") as folder:
        shutil.unpack_archive(archive, folder)
        (tree,) = Path(folder).iterdir()
        run_hook("build_wheel", tree)


def wheel_faults(wheel: Path) -> list[str]:
    """Return what a wheel holds and should not, and what it lacks."""
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    kernels = {name.partition(".")[0] for name in names if name.endswith((".so", ".pyd"))}
    wanted = {str(path.relative_to("src").with_suffix("")) for path in Path("src").rglob("*.pyx")}
    found = [f"holds {name}" for name in names if name.endswith(ONLY_SOURCES)]
    found += [f"lacks the kernel {name}" for name in sorted(wanted - kernels)]
    found += [f"holds {name}" for name in names if not name.startswith(("pennon", "pyspark_lance"))]
    if wheel.stat().st_size > MOST_WHEEL_BYTES:
        found.append(f"is larger than {MOST_WHEEL_BYTES:,} bytes")
    return found


def archive_faults(archive: Path) -> list[str]:
    """Return what a source archive holds and should not, and what it lacks."""
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    wanted = {str(path) for end in ("pyx", "pxd", "pyi") for path in Path("src").rglob(f"*.{end}")}
    found = [f"lacks {name}" for name in sorted({*NEEDED_IN_ARCHIVE, *wanted} - names)]
    return found + [f"holds {name}" for name in names if name.endswith((".so", ".c", ".pyc"))]


def no_faults(_: Path) -> list[str]:
    """Return nothing: other files in ``dist/`` are not ours to judge."""
    return []


if __name__ == "__main__":
    main()
