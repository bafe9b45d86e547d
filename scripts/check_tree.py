"""Hold what no linter knows: no address or path of one machine, no file that grew too long."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

# Put together from parts, so that this file passes its own check.
FORBIDDEN = re.compile(
    "|".join(["/" + "work/", "py" + "pi\\.org", "python" + "hosted", "file:" + "///opt"])
)
LONGEST = 450
# The import contracts do not see Cython: a kernel knows arrays, not pages, files or stores.
KERNEL_IMPORT = re.compile(
    r"^\s*(?:from|c?import)\s+pennon\.(?!errors\b|core\.memory\b|encoding\.kernels\b)"
)
GENERATED = ("_pb2.py", "_pb2.pyi", ".lock", ".lance")


def tracked() -> list[Path]:
    """Return the files that git knows."""
    listing = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True)
    return [path for name in listing.stdout.split("\0") if name and (path := Path(name)).is_file()]


def faults(path: Path) -> list[str]:
    """Return what is wrong with one file."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    lines = text.splitlines()
    found = [
        f"{path}:{number}: an address or a path of one machine: {match.group()}"
        for number, line in enumerate(lines, start=1)
        if (match := FORBIDDEN.search(line))
    ]
    if path.suffix in {".pyx", ".pxd"}:
        found += [
            f"{path}:{number}: a kernel may import only pennon.errors, pennon.core.memory and other kernels"
            for number, line in enumerate(lines, start=1)
            if KERNEL_IMPORT.match(line)
        ]
    is_code = path.suffix in {".py", ".pyx", ".pyi"} and not path.name.endswith(GENERATED)
    if is_code and len(lines) > LONGEST:
        found.append(f"{path}: {len(lines)} lines; {LONGEST} is the most, split it")
    return found


def main() -> int:
    """Print the faults; return the exit code."""
    found = [fault for path in tracked() for fault in faults(path)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
