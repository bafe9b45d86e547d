"""Processes that kill themselves at a step of an operation, as `kill -9` would.

What such a process told the system is not lost, so nothing is synced here: power cuts are another
matter, and syncs take most of the time.  But they are steps like others.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from pennon.io import open_store
from pennon.io.store import Store
from pennon.table.external import ExternalStore
from pennon.testing import Fault, FaultyStore, WrappedManifests
from tests.faults.operations import OPERATIONS

SYSTEM_CALLS = ("mkdir", "open", "write", "fsync", "link", "replace", "unlink")
CHANGES = frozenset(
    {"write", "close", "put", "put_if_absent", "delete", "put_if_not_exists", "put_if_exists"}
)
"""What changes anything in a store, or in its manifest store."""
_SECONDS = 120


@dataclass(frozen=True)
class Place:
    """Where a table lies."""

    uri: str
    options: dict[str, str] | None = None

    @property
    def store(self) -> Store:
        return open_store(self.uri, self.options)


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives that")


def never_sync() -> None:
    """Let syncs of this process do nothing."""
    os.fsync = lambda fd: None


def die_at(step: int) -> None:
    """Let this process die before the ``step``-th of the calls that local writes are made of.

    A write that is cut off does half of its work first, as a real one would.  To open what is there
    is no step: it changes nothing.
    """
    left = [step]
    never_sync()

    def deadly(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            left[0] -= name != "open" or bool(args[1] & os.O_CREAT)
            if left[0] == 0:
                if name == "write":
                    real(args[0], args[1][: len(args[1]) // 2])
                die()
            return real(*args, **kwargs)

        return call

    for name in SYSTEM_CALLS:
        setattr(os, name, deadly(name, getattr(os, name)))


def dies_at_system_call(place: Place, name: str, step: int) -> bool:
    """Run an operation in a process that dies at a step; return whether it came so far."""
    return _dies(_run_to_system_call, place, name, step)


def dies_after_change(place: Place, name: str, step: int) -> bool:
    """Run an operation in a process that dies after its ``step``-th change of a store."""
    return _dies(_run_to_change, place, name, step)


def _run_to_system_call(place: Place, name: str, step: int) -> None:
    store = place.store
    die_at(step)
    OPERATIONS[name](store)


def _run_to_change(place: Place, name: str, step: int) -> None:
    never_sync()
    OPERATIONS[name](with_fault(place.store, Fault(step, "after", CHANGES, error=die)))


def with_fault(store: Store, fault: Fault) -> Store:
    """Return a store of which a call fails, or one of its manifest store's if it has one."""
    if not isinstance(store, ExternalStore):
        return FaultyStore(store, fault)
    faulty = FaultyStore(store.inner, fault)
    return ExternalStore(faulty, WrappedManifests(faulty, store.manifests), store.uri)


def _dies(run: Callable[..., None], *arguments: Any) -> bool:
    """Run a function in a child; return whether it was killed.  The child has no other threads."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["tests.faults.preloaded"])
    child = server.Process(target=run, args=arguments)
    child.start()
    child.join(_SECONDS)
    assert child.exitcode in {0, -signal.SIGKILL}
    return child.exitcode != 0
