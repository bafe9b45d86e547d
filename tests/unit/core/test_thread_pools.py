"""Working ahead: in order, within a budget, and not after the caller has left."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import partial

import pytest

from pennon.core.thread_pools import (
    SMALL_COST,
    PoolSpec,
    WorkAhead,
    both,
    call_all,
    map_all,
    map_in_order,
    pool,
)


def test_map_in_order_returns_results_in_order() -> None:
    assert list(map_in_order(lambda n: n * n, range(100), lambda _: 1, 10)) == [
        n * n for n in range(100)
    ]
    assert map_all(lambda n: -n, [3, 1, 2]) == [-3, -1, -2]


@pytest.mark.parametrize("startable", [0, 1])
def test_pool_works_with_fewer_startable_threads(
    startable: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, start = [startable], threading.Thread.start

    def start_some(thread: threading.Thread) -> None:
        if not left[0]:
            message = "can't start new thread"
            raise RuntimeError(message)
        left[0] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_some)
    pool_spec = PoolSpec(f"few {startable}", 4)
    assert map_all(str, range(20), pool_spec) == list(map(str, range(20)))
    doubled = map_in_order(lambda n: 2 * n, range(20), lambda _: 1, 5, pool_spec)
    assert list(doubled) == list(range(0, 40, 2))
    with pytest.raises(ZeroDivisionError):
        pool(pool_spec).submit(lambda: 1 // 0).result()


def test_map_in_order_runs_one_item_above_the_budget() -> None:
    assert list(map_in_order(str, [1, 2], lambda _: 10**9, 1)) == ["1", "2"]


def test_map_in_order_starts_items_within_the_budget() -> None:
    started: list[int] = []
    results = map_in_order(started.append, range(100), lambda _: 1, 3)
    next(results)
    results.close()
    pool().submit(lambda: None).result()
    assert len(started) <= 4


def test_map_in_order_closed_early_cancels_pending_items() -> None:
    gate, started = threading.Event(), []

    def work(item: int) -> int:
        started.append(item)
        if item:
            gate.wait(10)
        return item

    results = map_in_order(work, range(1000), lambda _: 1, 1000)
    assert next(results) == 0
    results.close()
    gate.set()
    assert len(started) < 1000


def test_an_error_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(lambda n: 1 // n, [1, 0, 1], lambda _: 1, 1))
    with pytest.raises(ZeroDivisionError):
        map_all(lambda n: 1 // n, [1, 0, 1])


def test_pools_have_separate_threads() -> None:
    """All threads of each crew wait for the next one at once, and none for itself."""

    def wait_for(crews: list[PoolSpec]) -> int:
        if not crews:
            return 1
        return sum(map_all(lambda _: wait_for(crews[1:]), range(3), crews[0]))

    assert wait_for([PoolSpec.reads(3), PoolSpec.objects(3), PoolSpec.requests(3)]) == 27
    assert pool(PoolSpec.reads(3)) is pool(PoolSpec.reads(3))
    assert (
        len({pool(), pool(PoolSpec.reads(3)), pool(PoolSpec.reads(2)), pool(PoolSpec.objects(3))})
        == 4
    )


ENDING = """
import atexit
from pennon.core.thread_pools import WorkAhead, map_all, map_in_order

def end():
    ahead = WorkAhead(0)
    ahead.start(lambda: 7, 1 << 30)
    print(map_all(str, [1, 2]), list(map_in_order(str, "abc", len, 9)), *ahead.rest())
    try:
        map_all(int, ["1", "x"])
    except ValueError as error:
        print(error)

atexit.register(end)
map_all(str, [1, 2])
"""


def test_pool_works_at_interpreter_exit() -> None:
    """Executors take none any more, so that what `atexit` calls could not change a table."""
    run = [sys.executable, "-c", ENDING]
    done = subprocess.run(run, check=True, timeout=60, capture_output=True, text=True)
    assert done.stdout.split("\n", 1)[0] == "['1', '2'] ['a', 'b', 'c'] 7"
    assert "invalid literal" in done.stdout
    assert not done.stderr


FORK = """
import os
from pennon.core.thread_pools import pool

assert pool().submit(os.getpid).result() == os.getpid()
child = os.fork()
if child == 0:
    os._exit(0 if pool().submit(os.getpid).result(timeout=20) == os.getpid() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_a_forked_child_has_a_pool_of_its_own() -> None:
    """In a process of its own: the oracle, loaded by other tests, does not survive a fork."""
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=60)


def test_work_ahead_returns_results_in_order_by_cost() -> None:
    ahead: WorkAhead[int] = WorkAhead(3 * SMALL_COST)
    given = []
    for number in range(20):
        ahead.start(partial(abs, number), SMALL_COST if number % 3 else 0)
        given.append(list(ahead.surplus()))
    assert [len(each) for each in given[:9]] == [0, 0, 0, 0, 0, 2, 0, 1, 2]
    assert [*(n for each in given for n in each), *ahead.rest()] == list(range(20))
    assert list(ahead.rest()) == []


def test_work_ahead_gives_a_thread_small_works_only_together() -> None:
    ahead: WorkAhead[int] = WorkAhead(1000 * SMALL_COST)
    for _ in range(7):
        ahead.start(threading.get_ident, SMALL_COST - 1)
    assert list(ahead.rest()) == [threading.get_ident()] * 7
    begun = threading.Event()

    def work() -> int:
        begun.set()
        return threading.get_ident()

    for _ in range(20):
        ahead.start(work, SMALL_COST - 1)
    assert begun.wait(60)
    idents = list(ahead.rest())
    assert len(idents) == 20
    assert set(idents[:9]) != {threading.get_ident()}
    assert idents[-1] == threading.get_ident()


def test_work_ahead_raises_the_error_of_a_small_work() -> None:
    for count in (3, 30):
        ahead: WorkAhead[int] = WorkAhead(1000 * SMALL_COST)
        for number in range(count):
            ahead.start(partial(divmod, 1, count - 1 - number), SMALL_COST - 1)
        with pytest.raises(ZeroDivisionError):
            list(ahead.rest())
        ahead.give_up()


def test_work_ahead_runs_in_the_caller_with_busy_pool() -> None:
    gate = threading.Event()
    busy = [pool().submit(gate.wait, 60) for _ in range(200)]
    ahead: WorkAhead[int] = WorkAhead(SMALL_COST)
    ahead.start(lambda: 7, SMALL_COST)
    assert list(ahead.rest()) == [7]
    gate.set()
    assert all(each.result() for each in busy)


def test_both_runs_in_the_caller_with_busy_pool() -> None:
    gate = threading.Event()
    busy = [pool().submit(gate.wait, 60) for _ in range(200)]
    assert both(lambda: 1, lambda: 2) == (1, 2)
    gate.set()
    assert all(each.result() for each in busy)
    asked = [pool().submit(both, lambda: 3, lambda: 4) for _ in range(200)]
    assert {each.result() for each in asked} == {(3, 4)}


def test_both_with_one_failure_waits_for_the_other() -> None:
    ended: list[int] = []

    def note() -> int:
        ended.append(1)
        return 2

    with pytest.raises(ZeroDivisionError):
        both(lambda: 1 // 0, note)
    count = len(ended)
    with pytest.raises(ZeroDivisionError):
        both(lambda: 1, lambda: 1 // 0)
    assert len(ended) == count


def test_call_all_runs_in_the_caller_with_busy_pool() -> None:
    pool_spec, gate = PoolSpec("a few", 2), threading.Event()
    assert call_all([partial(pow, n, 2) for n in range(50)], pool_spec) == [
        n * n for n in range(50)
    ]
    assert call_all([threading.get_ident], pool_spec) == [threading.get_ident()]
    busy = [pool(pool_spec).submit(gate.wait, 60) for _ in range(2)]
    assert set(call_all([threading.get_ident] * 5, pool_spec)) == {threading.get_ident()}
    gate.set()
    assert all(each.result() for each in busy)
    with pytest.raises(ZeroDivisionError):
        call_all([lambda: 1, lambda: 1 // 0, lambda: 2], pool_spec)


def test_work_ahead_given_up_cancels_or_waits() -> None:
    begun, gate = [], threading.Event()

    def work() -> None:
        begun.append(1)
        gate.wait(60)

    ahead: WorkAhead[None] = WorkAhead(SMALL_COST)
    for _ in range(500):
        ahead.start(work, SMALL_COST)
    threading.Timer(0.05, gate.set).start()
    ahead.give_up()
    count = len(begun)
    assert count < 500
    assert list(ahead.rest()) == []
    ahead.start(lambda: None, 0)
    assert list(ahead.rest()) == [None]
    assert len(begun) == count
