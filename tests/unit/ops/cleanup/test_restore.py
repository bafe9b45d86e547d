"""A restore and a clean-up at once: what is restored has its files, wherever either of them pauses."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from pennon.errors import NotFoundError
from pennon.testing import WrappedStore
from tests.unit.ops.cleanup.clocked import ClockedStore, open_table, write

DAY = timedelta(days=1)
MOST_STEPS = 60
"""A clean-up makes fewer calls than that."""


def new_store() -> ClockedStore:
    """Return a table of three versions: rows, others in their place, and one more."""
    store = ClockedStore()
    write(store, [1, 2], "create")
    store.advance(DAY)
    write(store, [3], "overwrite")
    store.advance(DAY)
    write(store, [4])
    store.advance(DAY)
    return store


class Restoring(WrappedStore):
    """The store of a restore, which pauses before it creates the manifest."""

    def __init__(self, inner: ClockedStore) -> None:
        super().__init__(inner)
        self.pauses, self.goes_on = threading.Event(), threading.Event()
        self.problem: NotFoundError | None = None
        self.thread = threading.Thread(target=self._run)

    def before(self, verb: str, path: str) -> None:
        if verb == "put_if_absent" and path.endswith(".manifest"):
            self.pauses.set()
            assert self.goes_on.wait(30)

    def _run(self) -> None:
        try:
            open_table(self, 1).restore()  # type: ignore[arg-type] # a store of the same objects
        except NotFoundError as error:
            self.problem = error
        finally:
            self.pauses.set()

    def begin(self) -> None:
        self.thread.start()
        assert self.pauses.wait(30)

    def end(self) -> None:
        self.goes_on.set()
        self.thread.join(30)


class Cleaning(ClockedStore):
    """The store of a clean-up, during whose calls a restore begins and ends."""

    def __init__(self, store: ClockedStore, begins: int, ends: int) -> None:
        super().__init__()
        self.inner, self.now, self.times = store.inner, store.now, store.times
        self.restoring = Restoring(store)
        self.begins, self.ends, self.calls = begins, ends, 0

    def before(self, verb: str, path: str) -> None:
        super().before(verb, path)
        self.calls += 1
        if self.calls == self.begins:
            self.restoring.begin()
        if self.calls == self.ends:
            self.restoring.end()


@pytest.mark.parametrize("begins", range(1, MOST_STEPS))
def test_restore_beside_clean_up_keeps_its_files_or_is_refused(begins: int) -> None:
    ends = begins
    while True:
        store = new_store()
        cleaning = Cleaning(store, begins, ends)
        open_table(cleaning).cleanup_old_versions(older_than=timedelta(0), delete_concurrency=1)
        if cleaning.calls < begins:
            return
        if cleaning.calls < ends:
            cleaning.restoring.end()
        assert not cleaning.restoring.thread.is_alive()
        table = open_table(store)
        expected = [1, 2] if cleaning.restoring.problem is None else [3, 4]
        assert table.to_table()["n"].to_pylist() == expected, (begins, ends)
        assert not [path for path in store.paths("_versions") if ".tmp_hold" in path]
        if cleaning.calls < ends:
            return
        ends += 1
