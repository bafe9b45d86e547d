"""Batches that an application numbers, over a store that fails at any call: run again, each is there once."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from threading import Barrier, Thread

import pyarrow as pa
import pytest

import pennon
from pennon.errors import AlreadyCommittedError, LanceError
from pennon.io import open_store
from pennon.io.store import Store
from pennon.ops.write import WriteMode, commit_write, plan_write, write_fragments
from pennon.table.transaction import AppVersion
from pennon.testing import Fault, FaultyStore

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
MOST_CALLS = 60


def commit(store: Store, version: int) -> None:
    """Append the rows of a batch, unless it was committed before."""
    plan = plan_write(store, ROWS.schema, WriteMode.APPEND)
    fragments = write_fragments(plan.task, iter(ROWS.to_batches()))
    commit_write(plan, fragments, AppVersion("app", version).properties())


@pytest.mark.parametrize("kind", ["before", "after", "torn"])
@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_numbered_batch_run_again_after_any_failure_is_there_once(
    tmp_path: Path, kind: str, scheme: str
) -> None:
    for nth in itertools.count(1):
        uri = f"memory://{kind}{nth}" if scheme == "memory" else str(tmp_path / str(nth))
        inner = open_store(uri)
        pennon.write_dataset(ROWS, uri)
        store = FaultyStore(inner, Fault(nth, kind))
        with contextlib.suppress(LanceError):
            commit(store, 0)
        if not store.fired:
            break
        assert nth < MOST_CALLS
        with contextlib.suppress(AlreadyCommittedError):
            commit(inner, 0)
        assert pennon.dataset(uri).count_rows() == 6, (kind, nth)


def test_numbered_batch_committed_by_several_drivers_at_once_is_there_once(tmp_path: Path) -> None:
    """As when one query runs twice by mistake."""
    uri, drivers, batches = str(tmp_path / "t"), 4, 12
    pennon.write_dataset(ROWS.slice(0, 0), uri)
    start, refused = Barrier(drivers), []

    def drive() -> None:
        store = open_store(uri)
        start.wait()
        for version in range(batches):
            try:
                commit(store, version)
            except AlreadyCommittedError:
                refused.append(version)

    threads = [Thread(target=drive) for _ in range(drivers)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert pennon.dataset(uri).count_rows() == 3 * batches
    assert len(refused) == (drivers - 1) * batches
