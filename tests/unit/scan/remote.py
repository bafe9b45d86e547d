"""Tables that are read as if from an object store, with counted requests."""

from __future__ import annotations

import threading
from pathlib import Path

from pennon.core.thread_pools import PoolSpec, pool
from pennon.dataset.lance_dataset import LanceDataset
from pennon.io import open_store
from pennon.io.limits import FetchLimits
from pennon.io.store import Store
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore, LatencyStore, WrappedStore

LIMITS = FetchLimits(concurrency=24)


def far_away(folder: Path, seconds: float = 0) -> LatencyStore:
    """Return a store that says it is remote; by default it answers at once."""
    return LatencyStore(open_store(folder), seconds, limits=LIMITS)


def opened(store: Store) -> LanceDataset:
    """Open the newest version of the table that a store holds."""
    return LanceDataset.of_snapshot(store.uri, Snapshot(store, read_manifest(store)))


def open_counted(folder: Path) -> tuple[LanceDataset, CountingStore]:
    """Open a table in a store that counts; the counts begin after the manifest."""
    store = CountingStore(far_away(folder))
    dataset = opened(store)
    store.reset()
    return dataset, store


class Meeting(WrappedStore):
    """Answers no read until ``parties`` of them wait at once, so that whoever asks one by one fails.

    ``meets`` are the folders it is about.  ``once``: after the first meeting all pass.
    """

    def __init__(
        self, inner: Store, parties: int, meets: tuple[str, ...] = ("data/",), *, once: bool = False
    ) -> None:
        super().__init__(inner)
        self.barrier = threading.Barrier(parties, self._meet, timeout=30)
        self.meets = meets
        self.once = once
        self.have_met = False

    def _meet(self) -> None:
        self.have_met = True

    def before(self, verb: str, path: str) -> None:
        """Wait for the others."""
        if verb == "read" and path.startswith(self.meets) and not (self.once and self.have_met):
            self.barrier.wait()


def wait_until_all_is_quiet() -> None:
    """Return when no thread reads a unit any more: all threads of that pool meet here."""
    together = threading.Barrier(LIMITS.concurrency, timeout=30)
    workers = pool(PoolSpec.reads(LIMITS.concurrency))
    for meeting in [workers.submit(together.wait) for _ in range(LIMITS.concurrency)]:
        meeting.result()
