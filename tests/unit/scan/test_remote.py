"""Scans of object stores: concurrency, number of requests, and early ends."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon
from pennon.core.byte_ranges import ByteRequest
from pennon.dataset.lance_dataset import LanceDataset
from pennon.errors import StoreError
from pennon.io.store import Store
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore, WrappedStore
from tests.unit.scan.remote import (
    LIMITS,
    Meeting,
    far_away,
    open_counted,
    opened,
    wait_until_all_is_quiet,
)

VERSIONS = ("2.0", "2.1")
FRAGMENTS = 2 * LIMITS.concurrency
MIB = 1 << 20


def table(rows: int) -> pa.Table:
    numbers = np.arange(rows)
    texts = pa.array([f"number {n}" for n in range(rows)])
    return pa.table({"a": numbers, "b": texts, "c": numbers / 7, "d": texts, "e": numbers[::-1]})


@pytest.fixture(scope="module", params=VERSIONS)
def many(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a table of many small fragments."""
    folder = tmp_path_factory.mktemp("many") / "t.lance"
    rows = table(FRAGMENTS * 50)
    pennon.write_dataset(rows, folder, max_rows_per_file=50, data_storage_version=request.param)
    return folder


@pytest.fixture(scope="module", params=VERSIONS)
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a table of one fragment: 40 MB in many pages."""
    folder = tmp_path_factory.mktemp("large") / "t.lance"
    rng = np.random.default_rng(3)
    values = {name: rng.integers(0, 1 << 62, 1_000_000) for name in "abcde"}
    options = {"data_storage_version": request.param, "data_cache_bytes": 5 << 20}
    pennon.write_dataset(pa.table(values), folder, **options)
    return folder


@pytest.mark.parametrize("way", ["to_table", "to_batches"])
def test_remote_scan_reads_fragments_concurrently(many: Path, way: str) -> None:
    """As many are being opened, and then read, at once as the store may be asked."""
    dataset = opened(Meeting(far_away(many), LIMITS.concurrency))
    found = getattr(dataset, way)()
    rows = found if isinstance(found, pa.Table) else pa.Table.from_batches(found)
    assert rows.equals(table(FRAGMENTS * 50))


def test_conditions_are_tested_in_many_fragments_at_once(many: Path) -> None:
    dataset = opened(Meeting(far_away(many), LIMITS.concurrency))
    assert dataset.count_rows("a % 2 = 0") == FRAGMENTS * 25
    dataset = opened(Meeting(far_away(many), LIMITS.concurrency))
    found = dataset.to_table(columns=["b"], filter="a % 50 = 7")
    assert found["b"].to_pylist() == [f"number {50 * n + 7}" for n in range(FRAGMENTS)]


def test_remote_scan_opens_each_fragment_once(large: Path) -> None:
    dataset, store = open_counted(large)
    assert dataset.to_table(columns=["a", "b", "c", "d"]).num_rows == 1_000_000
    assert store.counts.verbs["open"] == 1
    assert store.counts.requests < 60
    size = 4 * 8 * 1_000_000
    assert 0.9 * size <= store.counts.read_bytes <= 1.05 * size + 200_000


def test_a_limit_reads_a_page_and_no_table(large: Path) -> None:
    dataset, store = open_counted(large)
    found = dataset.to_table(columns=["a"], limit=10, offset=500_000)
    assert found.num_rows == 10
    assert store.counts.rounds <= 3
    assert store.counts.read_bytes < 200_000
    assert dataset.head(10).num_rows == 10
    assert store.counts.read_bytes < 1_000_000


def test_remote_scan_reads_ahead_within_the_buffer_size(large: Path) -> None:
    dataset, store = open_counted(large)
    batches = dataset.scanner(columns=["a", "b"], io_buffer_size=3 * MIB).to_batches()
    next(batches)
    wait_until_all_is_quiet()
    ahead = store.counts.read_bytes
    assert ahead < 12 * MIB, "a unit, and what fits in the buffer behind it"
    assert sum(batch.num_rows for batch in batches) > 900_000


class Held(WrappedStore):
    """Answers for one object at once, or refuses it, and for no other until ``go``."""

    def __init__(self, inner: Store, path: str, *, refuse: bool) -> None:
        super().__init__(inner)
        self.go = threading.Event()
        self.path = path
        self.refuse = refuse

    def around_read(self, path: str, requests: Sequence[ByteRequest]) -> None:
        """Wait, but for that object."""
        if path != self.path:
            self.go.wait(30)
        elif self.refuse:
            message = "refused"
            raise StoreError(message)


@pytest.mark.parametrize("refuse", [False, True])
def test_remote_scan_that_ends_early_stops_requests(many: Path, refuse: bool) -> None:
    """Of what waits for its turn nothing is done, when the caller goes or a unit fails."""
    counted = CountingStore(far_away(many))
    manifest = read_manifest(counted)
    store = Held(counted, manifest.fragments[0].files[0].store_path, refuse=refuse)
    batches: Any = LanceDataset.of_snapshot("t", Snapshot(store, manifest)).to_batches()
    if refuse:
        with pytest.raises(StoreError, match="refused"):
            next(batches)
    else:
        assert next(batches).num_rows == 50
        batches.close()
    store.go.set()
    wait_until_all_is_quiet()
    asked = [path for path in counted.by_path if path.startswith("data/")]
    assert 1 <= len(asked) <= LIMITS.concurrency + 1 < FRAGMENTS


@pytest.mark.parametrize("version", VERSIONS)
def test_filter_of_a_small_fragment_reads_all_columns_in_one_round(
    tmp_path: Path, version: Any
) -> None:
    rows = table(30_000).select(["a", "c", "e"])
    pennon.write_dataset(
        rows, tmp_path / "t", max_rows_per_file=10_000, data_storage_version=version
    )
    dataset, store = open_counted(tmp_path / "t")
    expected = rows.filter(pc.is_in(rows["a"], pa.array([7, 20_000])))
    condition = "a IN (7, 20000)"
    assert dataset.to_table(filter=condition, columns=["c", "e"]) == expected.select(["c", "e"])
    assert [counts.rounds for counts in store.by_path.values()] == [2, 2, 2], (
        "its end, and all pages"
    )
    store.reset()
    assert dataset.to_table(filter=condition) == expected
    assert [counts.rounds for counts in store.by_path.values()] == [1, 1, 1]
    store.reset()
    assert dataset.to_table(filter=condition, late_materialization=True) == expected
    assert sorted(counts.rounds for counts in store.by_path.values()) == [1, 2, 2]
    assert dataset.count_rows(condition) == 2


def test_filter_of_a_large_fragment_reads_other_columns_of_rows_that_pass(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    rows = pa.table({"a": np.arange(200_000), "b": rng.integers(0, 1 << 62, 200_000)})
    pennon.write_dataset(rows, tmp_path / "t", data_storage_version="2.1")
    dataset, store = open_counted(tmp_path / "t")
    assert dataset.to_table(filter="a < 0").num_rows == 0
    (counts,) = store.by_path.values()
    assert counts.read_bytes < 900_000, "b has 1.6 MB"
    assert dataset.to_table(filter="a = 150000", columns=["b"]) == rows.slice(150_000, 1).select(
        ["b"]
    )
