"""A store with a clock of its own, which tests set, and tables in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from pennon.dataset import LanceDataset
from pennon.io import MemoryStore
from pennon.io.store import ObjectInfo
from pennon.ops.write import WriteMode, commit_write, plan_write, write_fragments
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest
from pennon.testing.wrapped import WrappedStore

START = datetime(2030, 1, 1, tzinfo=UTC)
_NUMBERS = itertools.count()


class CrashError(Exception):
    """The process is gone."""


class ClockedStore(WrappedStore):
    """A memory store whose listings tell times of ``now``, and that may crash at the n-th delete."""

    def __init__(self, inner: MemoryStore | None = None) -> None:
        super().__init__(inner or MemoryStore(f"clocked-{next(_NUMBERS)}"))
        self.now = START
        self.times: dict[str, datetime] = {}
        self.deletes_left: int | None = None
        self.deleted: list[str] = []

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self.now += by

    def before(self, verb: str, path: str) -> None:
        """Crash, if it is time."""
        if verb == "delete":
            if self.deletes_left == 0:
                raise CrashError(path)
            self.deletes_left = None if self.deletes_left is None else self.deletes_left - 1

    def after(self, verb: str, path: str) -> None:
        """Note the time of what was written."""
        if verb in {"put", "put_if_absent", "close"}:
            self.times[path] = self.now
        elif verb == "delete":
            self.deleted.append(path)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """List a folder, with the times of this clock."""
        for info in super().list(prefix):
            yield replace(info, modified=self.times.get(info.path, START))

    def paths(self, prefix: str = "") -> set[str]:
        """Return all paths."""
        return {info.path for info in self.list(prefix)}

    def copy(self) -> ClockedStore:
        """Return another store with the same objects and times."""
        other = ClockedStore()
        for path in self.paths():
            other.inner.put(path, self.inner.read_whole(path).to_pybytes())
        other.now, other.times = self.now, dict(self.times)
        return other


def open_table(store: ClockedStore, version: int | None = None) -> LanceDataset:
    """Open the table in a store."""
    snapshot = Snapshot(store, read_manifest(store, version))
    return LanceDataset.of_snapshot(store.uri, snapshot)


def write(store: ClockedStore, numbers: list[int], mode: str = "append", rows: int = 4) -> None:
    """Write rows, a few to a file."""
    data = pa.table({"n": pa.array(numbers, pa.int64())})
    plan = plan_write(store, data.schema, WriteMode(mode))
    pieces = (data[at : at + rows] for at in range(0, len(numbers), rows))
    fragments = [
        fragment for piece in pieces for fragment in write_fragments(plan.task, piece.to_batches())
    ]
    commit_write(plan, fragments)
