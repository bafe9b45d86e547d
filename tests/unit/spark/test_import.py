"""Spark is optional: Pennon alone does not import it."""

from __future__ import annotations

import subprocess
import sys


def test_pennon_does_not_import_pyspark() -> None:
    program = "import pennon, sys; sys.exit('pyspark' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
