"""An operation that begins at one call of a clean-up's and ends at another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

from pennon.dataset import LanceDataset
from pennon.errors import NotFoundError, RetryableConflict
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


class PausingStore(WrappedStore):
    """The store of an operation, which pauses before its first call that ``pauses_at`` chooses."""

    def __init__(
        self,
        inner: ClockedStore,
        operate: Callable[[WrappedStore], object],
        pauses_at: Callable[[str, str], bool],
    ) -> None:
        super().__init__(inner)
        self.operate, self.pauses_at = operate, pauses_at
        self.pauses, self.goes_on = threading.Event(), threading.Event()
        self.problem: NotFoundError | RetryableConflict | None = None
        self.thread = threading.Thread(target=self._run)

    def before(self, verb: str, path: str) -> None:
        if not self.pauses.is_set() and self.pauses_at(verb, path):
            self.pauses.set()
            assert self.goes_on.wait(30)

    def _run(self) -> None:
        try:
            self.operate(self)
        except (NotFoundError, RetryableConflict) as error:
            self.problem = error
        finally:
            self.pauses.set()

    def begin(self) -> None:
        self.thread.start()
        assert self.pauses.wait(30)

    def end(self) -> None:
        self.goes_on.set()
        self.thread.join(30)
        assert not self.thread.is_alive()


class Cleaning(ClockedStore):
    """The store of a clean-up, during whose calls an operation begins and ends."""

    def __init__(self, store: ClockedStore, other: PausingStore, begins: int, ends: int) -> None:
        super().__init__()
        self.inner, self.now, self.times = store.inner, store.now, store.times
        self.other, self.begins, self.ends, self.calls = other, begins, ends, 0

    def before(self, verb: str, path: str) -> None:
        super().before(verb, path)
        self.calls += 1
        if self.calls == self.begins:
            self.other.begin()
        if self.calls == self.ends:
            self.other.end()


def interleavings(
    begins: int,
    operate: Callable[[WrappedStore], object],
    pauses_at: Callable[[str, str], bool],
    new: Callable[[], ClockedStore] = new_store,
) -> Iterator[tuple[LanceDataset, Exception | None]]:
    """Run an operation that begins at a call of a clean-up's, and ends at each later one and after the last.

    Yields the table after both, and why the operation was refused.
    """
    ends = begins
    while True:
        store = new()
        other = PausingStore(store, operate, pauses_at)
        cleaning = Cleaning(store, other, begins, ends)
        open_table(cleaning).cleanup_old_versions(
            older_than=timedelta(0), error_if_tagged_old_versions=False, delete_concurrency=1
        )
        if cleaning.calls < begins:
            return
        if cleaning.calls < ends:
            other.end()
        assert not [path for path in store.paths("_versions") if ".tmp_" in path], (begins, ends)
        yield open_table(store), other.problem
        if cleaning.calls < ends:
            return
        ends += 1
