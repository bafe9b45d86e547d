"""A scan of a far store takes as long as its bytes need on the line, or its rounds one after another.

The store sleeps for real, so this is a matter of time, and slow: best of a few runs counts.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.io import open_store
from pennon.testing import CountingStore, LatencyStore
from tests.unit.scan.remote import opened

LATENCY_S = 0.02
BYTES_PER_S = 50e6
RUNS = 5
FRAGMENTS = 100


def _table(rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "a": rng.integers(0, 1 << 62, rows),
            "b": rng.random(rows),
            "c": [f"text {n}" for n in rng.integers(0, 1 << 40, rows)],
            "d": rng.integers(0, 1 << 62, rows),
            "e": rng.random(rows),
        }
    )


def _fastest(folder: Path, way: str) -> tuple[float, float]:
    """Return the best time of a scan, opening included, and what the line needs for its bytes."""
    best = line = float("inf")
    for _ in range(RUNS):
        store = CountingStore(LatencyStore(open_store(folder), LATENCY_S, BYTES_PER_S))
        begun = time.perf_counter()
        found = getattr(opened(store), way)()
        rows = found.num_rows if way == "to_table" else sum(batch.num_rows for batch in found)
        best = min(best, time.perf_counter() - begun)
        assert rows > 0
        line = store.counts.read_bytes / BYTES_PER_S
    return best, line


@pytest.mark.slow
@pytest.mark.parametrize("way", ["to_table", "to_batches"])
@pytest.mark.parametrize(("version", "rounds"), [("2.0", 5), ("2.1", 4)])
def test_many_fragments_take_as_long_as_their_bytes(
    tmp_path: Path, version: str, rounds: int, way: str
) -> None:
    """The rounds are: the listing, the manifest, the ends of files, their pages (2.0: text twice)."""
    rows = _table(FRAGMENTS * 10_000)
    pennon.write_dataset(
        rows, tmp_path / "t", max_rows_per_file=10_000, data_storage_version=version
    )
    best, line = _fastest(tmp_path / "t", way)
    assert best <= 1.3 * max(line, rounds * LATENCY_S)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "rounds"), [("2.0", 5), ("2.1", 4)])
def test_one_fragment_takes_as_long_as_its_rounds(
    tmp_path: Path, version: str, rounds: int
) -> None:
    pennon.write_dataset(_table(5000), tmp_path / "t", data_storage_version=version)
    best, line = _fastest(tmp_path / "t", "to_table")
    assert line < rounds * LATENCY_S / 10
    assert best <= 1.3 * rounds * LATENCY_S
