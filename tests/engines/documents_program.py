"""The Python blocks of the pages about Hugging Face, Ray and Daft; run by test_engines."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.documents import ROOT, blocks, run

PAGES = ("huggingface.md", "ray-daft.md")


def main(folder: str) -> None:
    """Run each page in a folder of its own."""
    for page in PAGES:
        below = Path(folder) / page
        below.mkdir()
        os.chdir(below)
        names: dict[str, Any] = {}
        for block in blocks(ROOT / "docs" / page, "python"):
            run(block, names)


if __name__ == "__main__":
    main(sys.argv[1])
    print("all steps passed")
