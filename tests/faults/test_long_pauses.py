"""A writer that sleeps for days in the middle of a commit; found by the simulator (`tests/faults/simulation`)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pennon.errors import NotFoundError
from pennon.io.store import Store
from pennon.table.commit.loop import commit
from pennon.table.naming import transaction_path
from pennon.table.versions import latest_version
from tests.faults.test_commit import Hooked, new_store
from tests.unit.table.tables import FakeTime, append, new_fragment

DAY = 86400.0


def slept(store: Store, clock: FakeTime, seconds: float, *gone: str) -> Hooked:
    """Return a store whose writer sleeps once it has written its transaction; files go meanwhile."""

    def sleep() -> None:
        clock.now += seconds
        for path in gone:
            store.delete(path)

    return Hooked(store, "put", sleep, late=True)


def options_of(clock: FakeTime) -> Callable[[], int]:
    return lambda: int(clock.now * 10**9)


def test_files_are_looked_for_after_each_long_pause() -> None:
    store = new_store("slept with files")
    store.put("data/mine.lance", b"x" * 100)
    clock = FakeTime()
    sleepy = slept(store, clock, 8 * DAY, "data/mine.lance")
    options = clock.options(planned_ns=1, now_ns=options_of(clock))
    with pytest.raises(NotFoundError, match=r"data/mine\.lance"):
        commit(sleepy, append(2, new_fragment(name="mine.lance")), options)
    assert latest_version(store) == 2


def test_a_transaction_that_was_cleaned_up_is_written_again() -> None:
    store = new_store("slept with a transaction")
    mine = append(2)
    clock = FakeTime()
    path = transaction_path(mine.file_name)
    made = commit(slept(store, clock, 8 * DAY, path), mine, clock.options(now_ns=options_of(clock)))
    assert made.version == 3
    assert store.open(path).size_bytes > 0
