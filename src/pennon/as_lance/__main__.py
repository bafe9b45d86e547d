"""Run a Python program in which ``import lance`` imports Pennon: ``python -m pennon.as_lance program.py``."""

from __future__ import annotations

import os
import subprocess
import sys

from pennon.as_lance.install import PATH, put_on_python_path

USAGE = """\
usage: python -m pennon.as_lance PROGRAM.PY [ARGUMENTS]
       python -m pennon.as_lance -m MODULE [ARGUMENTS]
       python -m pennon.as_lance -c CODE
       python -m pennon.as_lance --path

Runs Python with these arguments; there and in the processes that it starts, `import lance` imports Pennon.
--path prints the folder that PYTHONPATH needs for this, for programs that do not start as `python ...`.
"""


def main(arguments: list[str]) -> int:
    """Run Python with the arguments, and return its exit code; where the system can, in this process's place."""
    if arguments in ([], ["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0 if arguments else 2
    if arguments == ["--path"]:
        sys.stdout.write(f"{PATH}\n")
        return 0
    put_on_python_path(os.environ)
    command = [sys.executable, *arguments]
    if os.name == "posix":
        os.execv(command[0], command)  # noqa: S606 - the user's own program
    return subprocess.run(command, check=False).returncode  # noqa: S603 - as above


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
