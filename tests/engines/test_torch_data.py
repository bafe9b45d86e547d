"""``lance.torch.data`` under pylance's name, in the environment that has torch."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-train" / "bin" / "python"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_lance_torch_data_runs_on_pennon(tmp_path: Path) -> None:
    assert PYTHON.exists(), "the environment with torch: scripts/setup.sh train"
    run = subprocess.run(
        [PYTHON, "-m", "pennon.as_lance", HERE / "torch_data_program.py", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.endswith("all steps passed\n"), run.stdout[-2000:] + run.stderr[-6000:]
