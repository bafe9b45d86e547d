"""`import pennon.spark` sets the Python of Spark's workers, if it would be another one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHOW = "import os; print(os.environ.get('PYSPARK_PYTHON'))"


def shown(path: str, program: str = "import pennon.spark", **settings: str) -> str:
    """PYSPARK_PYTHON after a program, in a process with this PATH."""
    known = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK")}
    run = subprocess.run(
        [sys.executable, "-c", f"{program}\n{SHOW}"],
        env={**known, "PATH": path, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip()


@pytest.fixture
def elsewhere(tmp_path: Path) -> str:
    """A PATH on which another Python comes first."""
    (tmp_path / "python3").symlink_to(sys.executable)
    return f"{tmp_path}:{Path(sys.executable).parent}"


def test_python_of_unactivated_environment_is_set(elsewhere: str, tmp_path: Path) -> None:
    assert shown(elsewhere) == sys.executable
    assert shown(str(tmp_path / "empty")) == sys.executable


def test_an_activated_one_needs_no_name() -> None:
    assert shown(str(Path(sys.executable).parent)) == "None"


def test_python_of_workers_keeps_the_users_setting(elsewhere: str) -> None:
    assert shown(elsewhere, PYSPARK_PYTHON="/opt/python") == "/opt/python"


def test_python_of_workers_is_unset_with_running_jvm(elsewhere: str) -> None:
    runs = "import pyspark; pyspark.SparkContext._gateway = object()\nimport pennon.spark"
    assert shown(elsewhere, runs) == "None"
    assert shown(elsewhere, PYSPARK_GATEWAY_PORT="1234") == "None"
