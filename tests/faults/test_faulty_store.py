"""A store that fails its n-th call, for every n of every operation.

A call that changes nothing fails in one way only.  One that does can fail before, or after, when its
answer is lost; and what writes bytes of a new object can be torn.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pennon.io.memory import _STORES, MemoryStore
from pennon.io.store import Store
from pennon.table.external import ExternalStore
from pennon.testing import Fault, FaultyStore, MemoryManifests, WrappedManifests, WrappedStore
from tests.faults.killing import CHANGES
from tests.faults.operations import (
    OPERATIONS,
    Operation,
    Rows,
    attempt,
    check,
    check_that_work_goes_on,
    copy_memory,
    dataset_of,
    make_table,
    outcomes,
    rows_of,
)

KINDS = {"before": frozenset[str](), "after": CHANGES, "torn": frozenset({"write", "put"})}
_NAMES = itertools.count()


@pytest.fixture(scope="module")
def base() -> Iterator[MemoryStore]:
    store = MemoryStore(uuid.uuid4().hex)
    make_table(store)
    yield store
    for name in [name for name in _STORES if name.startswith("faulty")]:
        del _STORES[name]


class ByManifests:
    """The table once more, in a store whose manifests are granted by another."""

    def __init__(self, inner: MemoryStore) -> None:
        self.inner, self.manifests = inner, MemoryManifests()
        self.store = ExternalStore(inner, self.manifests, inner.uri)

    def watched(self, watcher: WrappedStore) -> ExternalStore:
        return ExternalStore(watcher, WrappedManifests(watcher, self.manifests), self.inner.uri)


def new_copy(base: MemoryStore) -> MemoryStore:
    return copy_memory(base, f"faulty-{next(_NAMES)}")


@dataclass(frozen=True)
class Trial:
    """An operation, the table before it, and the rows before and after."""

    operation: Operation
    base: MemoryStore
    before: Rows
    allowed: set[Rows]

    @classmethod
    def of(cls, name: str, base: MemoryStore) -> Trial:
        operation = OPERATIONS[name]
        return cls(operation, base, rows_of(base), outcomes(operation, new_copy(base)))

    def run(self, fault: Fault, *, external: bool) -> bool:
        """Let one call fail; return whether there was one to fail."""
        copy = new_copy(self.base)
        faulty = FaultyStore(copy, fault)
        clean: Store = copy
        troubled: Store = faulty
        if external:
            table = ByManifests(copy)
            clean, troubled = table.store, table.watched(faulty)
        self.operation.prepare(dataset_of(clean))
        succeeded = attempt(self.operation, troubled)
        check(clean, self.allowed, gaps=self.operation.cleans, reads_all=False)
        if succeeded and not self.operation.cleans:  # which goes on past what it cannot delete
            assert self.operation.done(clean, self.before)
        check_that_work_goes_on(self.operation, clean, self.before)
        check(clean, {rows_of(clean)}, gaps=self.operation.cleans)
        del _STORES[copy.name]
        return faulty.calls >= fault.nth


def try_all(name: str, base: MemoryStore, kind: str, *, external: bool = False) -> None:
    trial = Trial.of(name, base)
    for nth in range(1, 1000):
        if not trial.run(Fault(nth, kind, KINDS[kind]), external=external):
            assert nth > 4 or kind != "before"
            return
    pytest.fail("the faults never ended")


@pytest.mark.parametrize("kind", KINDS)
def test_append_with_one_failing_call(base: MemoryStore, kind: str) -> None:
    try_all("append", base, kind)


@pytest.mark.parametrize("kind", ["before", "after"])
def test_append_with_one_failing_call_of_a_manifest_store(base: MemoryStore, kind: str) -> None:
    try_all("append", base, kind, external=True)


@pytest.mark.slow
@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_with_one_failing_call(
    base: MemoryStore, name: str, kind: str, external: bool
) -> None:
    try_all(name, base, kind, external=external)
