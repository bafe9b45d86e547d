"""A deep examination decodes some megabytes at a time: its memory does not grow with a fragment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MIB = 1 << 20
MOST_BYTES = 256 * MIB
REPOSITORY = Path(__file__).parents[2]

PROGRAM = """
import json, sys
import numpy as np, pyarrow as pa
import pennon
from pennon import doctor
from tests.limits.peak import peak_bytes, start_peak

ROWS, BATCHES = 16_384, 96
WORDS = pa.array([f"a text of some length, number {n}" for n in range(ROWS)])

def batch(number):
    base = np.arange(ROWS, dtype=np.int64) + number * ROWS
    vectors = pa.FixedSizeListArray.from_arrays(np.repeat(base, 64).astype(np.float32), 64)
    return pa.record_batch({"id": base, "vector": vectors, "text": WORDS})

if sys.argv[2] == "write":
    batches = map(batch, range(BATCHES))
    pennon.write_dataset(batches, sys.argv[1], schema=batch(0).schema, max_rows_per_file=1 << 24)
else:
    before = start_peak()
    report = doctor.examine(sys.argv[1], deep=True, threads=1)
    print(json.dumps([peak_bytes() - before, report.values, report.is_sound, report.fragments]))
"""


def run(uri: Path, what: str) -> str:
    command = [sys.executable, "-c", PROGRAM, str(uri), what]
    return subprocess.run(
        command, check=True, cwd=REPOSITORY, capture_output=True, text=True
    ).stdout


@pytest.mark.slow
def test_deep_examination_of_a_large_fragment_holds_a_few_batches(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    run(uri, "write")
    (path,) = (uri / "data").iterdir()
    assert path.stat().st_size > 1.4 * MOST_BYTES
    grown, values, is_sound, fragments = json.loads(run(uri, "examine"))
    assert (values, is_sound, fragments) == (3 * 96 * 16_384, True, 1)
    assert grown < MOST_BYTES
