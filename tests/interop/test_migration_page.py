"""The program of docs/migrate/from-pylance.md gives the results that the page shows with pylance, too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.documents import ROOT, blocks

CHANGED = "import pennon as lance          # was: import lance"
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.documents import Block, run
import lance
assert lance.__version__ == "14.0.2"
run(Block("from-pylance.md", "python", sys.stdin.read(), 1), {})
"""


def test_program_of_the_page_about_pylance_runs_with_pylance(tmp_path: Path) -> None:
    (block,) = blocks(ROOT / "docs" / "migrate" / "from-pylance.md", "python")
    assert CHANGED in block.text
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT)],
        input=block.text.replace(CHANGED, "import lance"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
