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

from tests.unit.io.web_server import serving

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


def run(script: str, uri: Path | str, *more: str) -> dict[str, int]:
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


KINDS = """
def binary(rows=2000):
    data = random.integers(0, 256, rows * 20_000, dtype=np.uint8)
    ends = np.arange(rows + 1, dtype=np.int32) * 20_000
    return pa.BinaryArray.from_buffers(pa.binary(), rows, [None, *map(pa.py_buffer, (ends, data))])

def text(rows=100_000):
    words = pa.array([f"{number:x}" for number in random.integers(0, 1 << 40, 5000)])
    parts = [words.take(pa.array(random.integers(0, 5000, rows))) for _ in range(20)]
    return pc.binary_join_element_wise(*parts, " ")

def vector(rows=10_000):
    return pa.FixedSizeListArray.from_arrays(random.random(rows * 768, np.float32), 768)

import pyarrow.compute as pc
random = np.random.default_rng(2013)
made = [pa.record_batch([globals()[sys.argv[3]]()], ["c"]) for _ in range(3)]
COUNT = TABLE_BYTES // made[0].nbytes + 1
"""

WRITE_KIND = f"""
TABLE_BYTES = {TABLE_BYTES}
{KINDS}
batches = (made[number % 3] for number in range(COUNT))
pennon.write_dataset(batches, sys.argv[1], schema=made[0].schema, data_storage_version=sys.argv[2])
report(rows=sum(made[number % 3].num_rows for number in range(COUNT)))
"""

SCAN_KIND = """
rows = size = 0
for found in pennon.dataset(sys.argv[1]).to_batches(filter=sys.argv[2] if sys.argv[2:] else None):
    rows += found.num_rows
    size += found.nbytes
    for buffer in found.column(0).buffers():
        size += 0 if buffer is None else int(np.frombuffer(buffer, np.uint8)[::512].max(initial=0)) & 0
report(rows=rows, size=size)
"""

SHARES = {
    "_rowid >= 0": 1,
    "_rowid % 2 = 0": 2,
    "_rowid % 10 = 0": 10,
    "_rowid % 100 = 0": 100,
    "_rowid % 1000 = 0": 1000,
}
"""Filters that keep one row of so many: close to each other, and far apart."""

SCAN_LIMIT_BYTES = 400_000_000


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0", "2.1"])
@pytest.mark.parametrize("kind", ["binary", "text", "vector"])
def test_scans_of_wide_rows_stay_below_400_mb(kind: str, version: str, tmp_path: Path) -> None:
    """Values of 20 KB and vectors of 3 KB: a batch of the usual 8192 rows would not fit.

    Filtered scans keep to it as well.  The caller touches every page of what it gets, so maps of the file count in full.
    """
    uri = tmp_path / "large.lance"
    written = run(WRITE_KIND, uri, version, kind)
    scanned = run(SCAN_KIND, uri)
    print(f"{kind} {version}: scan {scanned['peak'] / MIB:.0f} MiB")
    assert scanned["rows"] == written["rows"]
    assert scanned["size"] >= TABLE_BYTES
    assert scanned["peak"] < SCAN_LIMIT_BYTES
    for text, share in SHARES.items():
        some = run(SCAN_KIND, uri, text)
        print(f"{kind} {version}: one row of {share} {some['peak'] / MIB:.0f} MiB")
        assert abs(some["rows"] - written["rows"] / share) <= share
        assert some["peak"] < SCAN_LIMIT_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_scans_of_a_remote_table_stay_below_400_mb(version: str, tmp_path: Path) -> None:
    """What is under way is held as it came and as it becomes."""
    written = run(WRITE_KIND, tmp_path / "t", version, "text")
    with serving(tmp_path) as server:
        for text in ("_rowid >= 0", "_rowid % 10 = 0", "_rowid % 1000 = 0", ""):
            some = run(SCAN_KIND, f"{server.url}/t", *[text] * bool(text))
            print(f"far text {version}, {text or 'all'}: {some['peak'] / MIB:.0f} MiB")
            assert abs(some["rows"] - written["rows"] / SHARES.get(text, 1)) <= 1000
            assert some["peak"] < SCAN_LIMIT_BYTES
