"""Libraries that pylance's users have above it, in an environment of their own, with Pennon under pylance's name.

``make test-all`` makes the environment (`scripts/setup.sh engines`).  Each program checks its own steps.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-engines" / "bin" / "python"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "program", ["daft", "ray", "hugging_face", "hugging_face_load", "documents"]
)
def test_a_library_above_pylance_runs_on_pennon(tmp_path: Path, program: str) -> None:
    assert PYTHON.exists(), "make engines"
    quiet = {
        "DAFT_ANALYTICS_ENABLED": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_raylet_start_wait_time_s": "600",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(tmp_path / "cache"),
    }
    known = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    run = subprocess.run(
        [PYTHON, "-m", "pennon.as_lance", HERE / f"{program}_program.py", tmp_path],
        env={**known, **quiet},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.endswith("all steps passed\n"), run.stdout[-2000:] + run.stderr[-6000:]
