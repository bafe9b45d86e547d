"""Threads that work together run on processors of their own, and are free again afterwards."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from pennon.core import thread_places
from pennon.core.thread_places import apart, processors, running_threads


@pytest.fixture
def other() -> Iterator[int]:
    """A thread that waits: what the system calls it."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    assert thread.native_id is not None
    yield thread.native_id
    end.set()
    thread.join()


@pytest.fixture(autouse=True)
def _idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine does nothing else."""
    monkeypatch.setattr(thread_places, "running_threads", lambda: 1)


def test_threads_have_separate_processors_within_the_block(other: int) -> None:
    anywhere = os.sched_getaffinity(0)
    with apart([other]):
        here, there = os.sched_getaffinity(0), os.sched_getaffinity(other)
        assert len(here) == 1
        assert there == anywhere - here
        with apart([other]):  # who may run on one processor only changes nothing
            assert os.sched_getaffinity(other) == there
    assert os.sched_getaffinity(0) == os.sched_getaffinity(other) == anywhere


def test_an_error_leaves_threads_free(other: int) -> None:
    anywhere = os.sched_getaffinity(0)
    with pytest.raises(ZeroDivisionError), apart([other]):
        1 // 0  # noqa: B018 - it raises
    assert os.sched_getaffinity(0) == os.sched_getaffinity(other) == anywhere


def test_thread_places_ignore_ended_and_own_threads(other: int) -> None:
    anywhere = os.sched_getaffinity(0)
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    assert ended.native_id is not None
    with apart([ended.native_id, other]):
        assert len(os.sched_getaffinity(0)) == 1
    with apart([threading.get_native_id(), other]):
        assert os.sched_getaffinity(other) == os.sched_getaffinity(0) == anywhere


def test_thread_places_are_unchanged_with_busy_processors(
    other: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert running_threads() >= 1
    monkeypatch.setattr(thread_places, "running_threads", processors)
    anywhere = os.sched_getaffinity(0)
    with apart([other]):
        assert os.sched_getaffinity(0) == os.sched_getaffinity(other) == anywhere
