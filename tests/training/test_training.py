"""The page about training, and the demo, in an environment of their own that has torch (`scripts/setup.sh train`)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-train" / "bin" / "python"


def run(*words: object) -> subprocess.CompletedProcess[str]:
    assert PYTHON.exists(), "make train"
    mine = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    paths = f"{ROOT}:{mine.get('PYTHONPATH', '')}"
    return subprocess.run(
        [PYTHON, *map(str, words)],
        env={**mine, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_python_blocks_of_the_page_about_training_run(tmp_path: Path) -> None:
    done = run(ROOT / "tests" / "training" / "page_program.py", tmp_path)
    assert done.stdout == "all blocks ran\n", done.stdout[-2000:] + done.stderr[-4000:]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("program", ["loader_in_torch.py", "worker_memory_in_torch.py"])
def test_loaders_of_torch_give_all_rows_with_workers_of_all_kinds(
    tmp_path: Path, program: str
) -> None:
    tests = ROOT / "tests" / "training" / program
    options = "-q", "--noconftest", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'data'}"
    done = run("-m", "pytest", tests, *options)
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_training_that_was_killed_goes_on_with_other_ranks_and_the_same_losses() -> None:
    done = run(ROOT / "demo" / "train.py")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "all 200 steps saw the same rows and had the same loss" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_torch_loads_on_a_machine_without_an_accelerator_from_the_locked_packages() -> None:
    program = "import torch; print(torch.ones(3, requires_grad=True).sum().item(), torch.cuda.is_available())"
    assert run("-c", program).stdout == "3.0 False\n"
