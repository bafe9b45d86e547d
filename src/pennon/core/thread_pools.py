"""The thread pools of a process, made when first needed.

A pool does not survive a fork: the child gets a pool object without threads and would wait for
ever.  So each process makes its own.

Most work keeps a processor busy, and `WORK` has as many threads as there are processors.  What waits
for a remote store does not, so it runs on many more.  What runs in a pool may wait for a pool further
down, never for its own or one further up:

    jobs            fragments that an operation works on
    makers          batches of which new columns are made
    work, reads     pieces of a scan: decoded (local), or waited for and decoded (remote)
    objects         the objects that one piece reads side by side
    requests        the requests to one object
    lanes           shares of work that takes milliseconds (`call_all`)
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import chain, islice
from queue import Empty
from typing import Any, Generic, TypeVar

from pennon.core.address_space import has_room_for_thread
from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_places import apart, processors

T = TypeVar("T")
R = TypeVar("R")

MIN_THREADS = 4
SMALL_COST = 64 * 1024
"""Bytes to work on that are not worth a thread."""
_BUNDLE_COST = 512 * 1024
"""Bytes of several such works that are worth one."""


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """The threads of one kind of work (above); none: as many as there are processors."""

    work: str
    threads: int = 0

    @classmethod
    def reads(cls, threads: int) -> PoolSpec:
        """Return the pool for pieces of a scan of a remote store."""
        return cls("reads", threads)

    @classmethod
    def objects(cls, threads: int) -> PoolSpec:
        """Return the pool for the objects that are read side by side."""
        return cls("objects", threads)

    @classmethod
    def requests(cls, threads: int) -> PoolSpec:
        """Return the pool for the requests to one object."""
        return cls("requests", threads)


WORK = PoolSpec("work")
_LANES = PoolSpec("lanes")


class Workers(ThreadPoolExecutor):
    """A pool that makes do with the threads that it gets.

    A process with little address space, or few process ids left, cannot start one.  Then those there
    are do the work; if there is none, whoever submits it.  So does who works on while the interpreter
    ends: another thread, or a function that `atexit` calls.
    """

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        """Begin work, on a thread if there is one."""
        try:
            future = super().submit(fn, *args, **kwargs)
        except RuntimeError:  # once the main thread has ended, no executor takes work any more
            return _done(fn, *args, **kwargs)
        if not self._threads:
            self._work_here()
        return future

    @property
    def ids(self) -> list[int]:
        """Return what the system calls the threads."""
        threads = list(self._threads)  # at once: another caller may start one
        return [each.native_id for each in threads if each.native_id is not None]

    def _adjust_thread_count(self) -> None:
        """Start a thread if it takes one; the executor calls this with the work in its queue."""
        if has_room_for_thread():
            with suppress(RuntimeError):
                super()._adjust_thread_count()

    def _work_here(self) -> None:
        make_context = getattr(self, "_create_worker_context", None)  # Python 3.14's work has one
        context = () if make_context is None else (make_context(),)
        with suppress(Empty):
            while True:
                self._work_queue.get_nowait().run(*context)


def _done(fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
    """Return the future of work that is done here."""
    future: Future[R] = Future()
    try:
        future.set_result(fn(*args, **kwargs))
    except BaseException as error:  # noqa: BLE001 - the future has it, whatever it is
        future.set_exception(error)
    return future


_pools: dict[tuple[int, PoolSpec], Workers] = {}
_lock = threading.Lock()


def in_forked_child(start_again: Callable[[], object]) -> None:
    """Let each child of a fork call ``start_again`` first; a system without forks (Windows) never does."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=start_again)


def _fresh_lock() -> None:
    """Replace the lock in a forked child: another thread of the parent may have held it."""
    global _lock  # noqa: PLW0603 - the one piece of state that a fork can break
    _lock = threading.Lock()
    _pools.clear()


in_forked_child(_fresh_lock)


def pool(pool_spec: PoolSpec = WORK) -> Workers:
    """Return this process's pool of a kind."""
    key = os.getpid(), pool_spec
    with _lock:
        mine = _pools.get(key)
        if mine is None:
            threads = pool_spec.threads or max(processors(), MIN_THREADS)
            mine = Workers(threads, f"pennon-{pool_spec.work}")
            _pools[key] = mine
        return mine


def map_in_order(
    work: Callable[[T], R],
    items: Iterable[T],
    cost: Callable[[T], int],
    budget: int,
    pool_spec: PoolSpec = WORK,
    *,
    is_finished: bool = False,
) -> Generator[R, None, None]:
    """Yield ``work(item)`` in the order of the items, working ahead within a budget.

    Items are started while the sum of their costs, from the oldest not yet handed out, is within
    ``budget`` (at least one always is).  When the iterator is closed early, items that did not
    start never do.  An item that is the only one is worked on here.  ``is_finished``: where one fails, nothing
    of the others goes on any more when its error arrives.

    A child of a fork may go on with it: what the threads of its parent had begun, it begins anew.
    """
    started: deque[tuple[Future[R], T, int]] = deque()
    spent, process = 0, os.getpid()
    waiting = iter(items)
    first = list(islice(waiting, 2))
    if len(first) < 2:
        yield from map(work, first)
        return
    workers = pool(pool_spec)
    waiting = chain(first, waiting)
    upcoming = next(waiting, None)
    try:
        while upcoming is not None or started:
            if process != os.getpid():
                workers, process = pool(pool_spec), os.getpid()
                started = deque((workers.submit(work, item), item, c) for _, item, c in started)
            while upcoming is not None and (not started or spent + cost(upcoming) <= budget):
                spent += cost(upcoming)
                started.append((workers.submit(work, upcoming), upcoming, cost(upcoming)))
                upcoming = next(waiting, None)
            future, _, price = started.popleft()
            result = future.result()
            spent -= price
            del future  # it holds the result, too
            yield result
            del result
    except Exception:
        if is_finished and process == os.getpid():
            wait([future for future, *_ in started if not future.cancel()])
        raise
    finally:
        for future, *_ in started if process == os.getpid() else ():
            future.cancel()


class _Bundle(Generic[R]):
    """Work that one thread does together, and its results."""

    def __init__(self) -> None:
        self.works: list[Callable[[], R]] = []
        self.cost = 0
        self._future: Future[list[R]] | None = None
        self._results: list[R] | None = None

    def begin(self) -> None:
        """Let a thread of the pool begin."""
        self._future = pool().submit(self._run)

    def result(self, number: int) -> R:
        """Return the result of one of its works; what no thread has begun is done here."""
        if self._results is None:
            future = self._future
            is_here = future is None or future.cancel()
            self._results = self._run() if is_here or future is None else future.result()
        return self._results[number]

    def given_up(self) -> Future[list[R]] | None:
        """Return what has to be waited for, None if it will never begin."""
        return None if self._future is None or self._future.cancel() else self._future

    def _run(self) -> list[R]:
        return [work() for work in self.works]


class WorkAhead(Generic[R]):
    """Work that begins now and whose results are taken later, in the order of their beginning.

    How much may be under way depends on the costs alone, never on time: whoever takes `surplus` after
    each start gets the same results at the same moments, whatever the number of threads.  What costs
    little waits for more of its kind, for a thread of its own would cost more.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._spent = 0
        self._started: deque[tuple[_Bundle[R], int, int]] = deque()
        """The bundle of each work, its number there, and its cost."""
        self._open: _Bundle[R] | None = None

    def start(self, work: Callable[[], R], cost: int) -> None:
        """Begin; what costs little begins with the next ones, or when its result is taken."""
        is_small = cost < SMALL_COST
        bundle = self._open if is_small and self._open is not None else _Bundle[R]()
        self._started.append((bundle, len(bundle.works), cost))
        bundle.works.append(work)
        bundle.cost += cost
        self._spent += cost
        if is_small:
            self._open = bundle if bundle.cost < _BUNDLE_COST else None
        if bundle is not self._open:
            bundle.begin()

    def surplus(self) -> Iterator[R]:
        """Yield the oldest results until what remains is within the budget."""
        while self._spent > self._budget:
            yield self._oldest()

    def rest(self) -> Iterator[R]:
        """Yield all results."""
        while self._started:
            yield self._oldest()

    def give_up(self) -> None:
        """Forget all work, and wait for what is being done of it."""
        bundles = dict.fromkeys(bundle for bundle, _, _ in self._started)
        self._started.clear()
        self._open = None
        wait([future for bundle in bundles if (future := bundle.given_up()) is not None])

    def _oldest(self) -> R:
        """Return the oldest result; work that no thread has begun is done here, not waited for."""
        bundle, number, cost = self._started.popleft()
        self._spent -= cost
        if bundle is self._open:
            self._open = None
        return bundle.result(number)


def both(mine: Callable[[], R], other: Callable[[], R]) -> tuple[R, R]:
    """Return the results of two functions: see `call_all`."""
    first, second = call_all([mine, other])
    return first, second


def beside(mine: Callable[[], T], other: Callable[[], R], pool_spec: PoolSpec) -> tuple[T, R]:
    """Return the results of two functions that wait for a store: a pool thread calls the other one.

    Both have ended when this returns, or raises.
    """
    future = pool(pool_spec).submit(other)
    try:
        found = mine()
    except BaseException:
        if not future.cancel():
            wait([future])
        raise
    return found, future.result()


def call_all(work: Sequence[Callable[[], R]], pool_spec: PoolSpec = _LANES) -> list[R]:
    """Return the results of functions: this thread calls the first one, free pool threads the others.

    They must not wait for others, nor start threads.  Each thread stays on a processor of its own, or
    some milliseconds of work would be over before the system moves it there.  What no thread has begun
    is done here, so that a thread of the pool may ask, too.
    """
    mine, *others = work
    if not others:
        return [mine()]
    lanes = pool(pool_spec)
    with apart(lanes.ids):
        futures = [lanes.submit(each) for each in others]
        try:
            found = [mine()]
            for each, future in zip(others, futures, strict=True):
                found.append(each() if future.cancel() else future.result())
        except BaseException:
            wait([future for future in futures if not future.cancel()])
            raise
    return found


def map_all(work: Callable[[T], R], items: Sequence[T], pool_spec: PoolSpec = WORK) -> list[R]:
    """Return ``[work(item) for item in items]``, worked on side by side when there are several."""
    if len(items) <= 1:
        return [work(item) for item in items]
    workers = pool(pool_spec)
    futures = [workers.submit(work, item) for item in items]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()
