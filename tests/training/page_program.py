"""Runs the blocks of docs/training.md in an empty folder: ``page_program.py FOLDER``, in an interpreter with torch."""

from __future__ import annotations

import os
import sys
from typing import Any

from tests.documents import ROOT, blocks, run

if __name__ == "__main__":
    os.chdir(sys.argv[1])
    names: dict[str, Any] = {}
    for block in blocks(ROOT / "docs" / "training.md", "python"):
        run(block, names)
    print("all blocks ran")
