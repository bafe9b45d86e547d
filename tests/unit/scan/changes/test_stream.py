"""A table as a stream that lags: what it asks a store for, and what it keeps."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa

import pennon
from pennon.io.store import Store
from pennon.scan.changes.stream import Position, StreamLimits, StreamRules, TableStream
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore, WrappedStore
from tests.unit.scan.remote import far_away

VERSIONS = 30


def appended(folder: Path, versions: int = VERSIONS) -> Path:
    """Make a table of so many versions, one row each."""
    for number in range(versions):
        pennon.write_dataset(pa.table({"id": [number]}), folder / "t", mode="append")
    return folder / "t"


def stream(store: Store) -> TableStream:
    """Return the stream of all rows."""
    snapshot = Snapshot(store, read_manifest(store))
    return TableStream(snapshot, snapshot.manifest.schema, StreamRules())


def test_stream_that_lags_reads_each_manifest_once(tmp_path: Path) -> None:
    store = CountingStore(far_away(appended(tmp_path)))
    lagging = stream(store)
    newest = lagging.newest()
    store.reset()
    end, amount = lagging.advance(Position(1), newest, StreamLimits(fragments=20))
    assert (end, amount.rows) == (Position(21), 20)
    assert len(list(lagging.parts(Position(1), end))) == 20
    planned = store.counts.requests
    assert planned <= 20 + 8 + 2  # some are read ahead, and the newest tells how versions are named
    lagging.advance(end, newest, StreamLimits(fragments=20))
    assert store.counts.requests <= VERSIONS + 2


class _Meeting(WrappedStore):
    """Answers the second to the ninth read of a manifest once all eight wait, others at once."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._barrier = threading.Barrier(8, timeout=30)
        self._lock = threading.Lock()
        self.reads = 0

    def before(self, verb: str, path: str) -> None:
        """Wait for the others."""
        if verb != "read" or not path.startswith("_versions/"):
            return
        with self._lock:
            self.reads += 1
            meets = 2 <= self.reads <= 9
        if meets:
            self._barrier.wait()


def test_stream_that_lags_reads_manifests_of_a_far_store_side_by_side(tmp_path: Path) -> None:
    store = _Meeting(far_away(appended(tmp_path)))
    lagging = stream(store)
    newest = lagging.newest()
    store.reads = 0
    end, _ = lagging.advance(Position(1), newest, StreamLimits(fragments=9))
    assert end == Position(10)
    assert store.reads == 18
