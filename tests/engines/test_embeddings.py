"""An embedding model whose package has its weights, in an environment of its own.

``make test-all`` makes the environment (`scripts/setup.sh embeddings`).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-embeddings" / "bin" / "python"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_wordllama_embeds_and_searches_a_table_without_a_download(tmp_path: Path) -> None:
    assert PYTHON.exists(), "make embeddings"
    known = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    run = subprocess.run(
        [PYTHON, HERE / "embeddings_program.py", tmp_path],
        env={**known, "HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.endswith("all steps passed\n"), run.stdout[-2000:] + run.stderr[-6000:]
