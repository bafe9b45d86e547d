"""Processors, and which threads run on them.

Linux wakes a thread where it ran last, or where the one runs that wakes it; in a virtual machine it takes processors that
have nothing to do for busy ones.  So two threads that hand the interpreter's lock to each other come to share one
processor, and what takes a few milliseconds ends before anything is moved.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from ctypes import CDLL
from functools import cache
from threading import get_native_id
from typing import Final


@cache
def processors() -> int:
    """Return how many processors there are; the system reads a file to tell it."""
    return os.cpu_count() or 1


def running_threads() -> int:
    """Return how many threads of the machine run or wait for a processor, this one among them; 1 if the system does not say."""
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:  # noqa: PTH123 - a path takes longer than the file
            return int(file.read(64).split()[3].partition(b"/")[0])
    except (OSError, IndexError, ValueError):
        return 1


def _find_this_processor() -> Callable[[], int] | None:
    """Return what tells which processor runs the caller; None where that, or the moving, is not known."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    tell: Callable[[], int] | None = getattr(CDLL(None), "sched_getcpu", None)
    return tell


_this_processor: Final = _find_this_processor()


@contextmanager
def apart(threads: Iterable[int]) -> Iterator[None]:
    """Let this thread stay where it is, and others, by what the system calls them, run on other processors than this one.

    Afterwards each of them may run wherever this one may.  Where all processors are busy, or this is one of the
    threads, nothing is changed.
    """
    others = list(threads)
    if _this_processor is None or get_native_id() in others or running_threads() >= processors():
        yield
        return
    places, here = os.sched_getaffinity(0), {_this_processor()}
    if len(places) < 2 or not here <= places:
        yield
        return
    try:
        for each in others:
            _let_run(each, places - here)
        _let_run(0, here)
        yield
    finally:
        for each in (0, *others):
            _let_run(each, places)


def _let_run(thread: int, places: set[int]) -> None:
    with suppress(OSError):  # the thread has ended, or the system does not let us
        os.sched_setaffinity(thread, places)
