"""Writing and scanning hold a few batches, not the table: peak memory is measured, in a child.

The table has four times the bytes that the process may ever have resident.  Mapped pages count as
resident, so the bound holds for the memory map of the data files as well.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MIB = 1 << 20
LIMIT_BYTES = 512 * MIB
TABLE_BYTES = 4 * LIMIT_BYTES
BATCH_ROWS = 16_384

MAKE_BATCHES = f"""
import json, sys
import numpy as np, pyarrow as pa
import pennon
from tests.limits.peak import peak_bytes

ROWS = {BATCH_ROWS}
WORDS = pa.array([f"a text of some length, number {{n}}" for n in range(ROWS)])

def batch(number):
    base = np.arange(ROWS, dtype=np.int64) + number * ROWS
    vectors = pa.FixedSizeListArray.from_arrays(np.repeat(base, 64).astype(np.float32), 64)
    return pa.record_batch({{"id": base, "vector": vectors, "text": WORDS}})

BATCHES = {TABLE_BYTES} // batch(0).nbytes + 1

def report(**more):
    print(json.dumps({{"peak": peak_bytes(), **more}}))
"""

WRITE = """
batches = (batch(number) for number in range(BATCHES))
pennon.write_dataset(batches, sys.argv[1], schema=batch(0).schema, data_storage_version=sys.argv[2])
report(rows=BATCHES * ROWS)
"""

SCAN = """
dataset = pennon.dataset(sys.argv[1])
rows = total = size = 0
for found in dataset.to_batches():
    rows += found.num_rows
    size += found.nbytes
    total += int(found["id"].to_numpy().sum()) + int(found["vector"].values.to_numpy().sum() > 0)
    total += len(found["text"][found.num_rows - 1].as_py())
assert sum(len(f.take([0])) for f in dataset.get_fragments()) == len(dataset.get_fragments())
report(rows=rows, size=size)
"""


def run(script: str, uri: Path, *more: str) -> dict[str, int]:
    """Run a script in a fresh process; returns what it reports."""
    child = subprocess.run(
        [sys.executable, "-c", MAKE_BATCHES + script, str(uri), *more],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    found: dict[str, int] = json.loads(child.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_a_table_four_times_larger_than_memory_is_written_and_scanned(
    version: str, tmp_path: Path
) -> None:
    """Vectors of whole numbers stay as large in 2.1; the numbers and the text become smaller."""
    uri = tmp_path / "large.lance"
    written = run(WRITE, uri, version)
    assert sum(f.stat().st_size for f in (uri / "data").iterdir()) >= 0.8 * TABLE_BYTES
    scanned = run(SCAN, uri)
    print(f"peak: write {written['peak'] / MIB:.0f} MiB, scan {scanned['peak'] / MIB:.0f} MiB")
    assert scanned["rows"] == written["rows"]
    assert scanned["size"] >= TABLE_BYTES
    assert written["peak"] < LIMIT_BYTES
    assert scanned["peak"] < LIMIT_BYTES


WIDE_ROWS = 40_000
WIDE_BYTES = 20_000
WIDE_LIMIT_BYTES = 400_000_000

WRITE_WIDE = f"""
import random
dice = random.Random(1)

def wide(first):
    texts = [dice.randbytes({WIDE_BYTES}) for _ in range(1000)]
    return pa.record_batch({{"id": list(range(first, first + 1000)), "image": texts}})

batches = (wide(first) for first in range(0, {WIDE_ROWS}, 1000))
schema = pa.schema({{"id": pa.int64(), "image": pa.binary()}})
pennon.write_dataset(batches, sys.argv[1], schema=schema, data_storage_version=sys.argv[2])
report(rows={WIDE_ROWS})
"""

SCAN_WIDE = """
rows = size = 0
for found in pennon.dataset(sys.argv[1]).to_batches():
    rows += found.num_rows
    size += found.nbytes
report(rows=rows, size=size)
"""


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_wide_rows_come_in_smaller_batches(version: str, tmp_path: Path) -> None:
    """8192 rows of 20 KB would be 164 MB, of which a scan holds several."""
    run(WRITE_WIDE, tmp_path / "wide.lance", version)
    scanned = run(SCAN_WIDE, tmp_path / "wide.lance")
    print(f"peak: {scanned['peak'] / MIB:.0f} MiB")
    assert scanned["rows"] == WIDE_ROWS
    assert scanned["size"] >= WIDE_ROWS * WIDE_BYTES
    assert scanned["peak"] < WIDE_LIMIT_BYTES
