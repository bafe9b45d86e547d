"""Progress of long work: a bar on the terminal, or calls of a function that the caller gave; and telemetry, if it is on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Final, TypeAlias

from pennon.core.telemetry import PROGRESS_ALL, PROGRESS_DONE, TELEMETRY, gauge

Progress: TypeAlias = Callable[[int, int], object]
"""Is told how many pieces are done, of how many; maybe from another thread."""

Listener: TypeAlias = Callable[[str, int, int], object]
"""Is told what is done, how many pieces of it are, and of how many (0: not known); maybe from another thread."""

_LISTENER: Final[ContextVar[Listener | None]] = ContextVar("progress of long work", default=None)

QUIET_SECONDS: Final = 2.0
"""What is done sooner shows no bar."""


@contextmanager
def reporting(listener: Listener) -> Iterator[None]:
    """Let long work that this thread begins in the block tell a function how far it is, and show no bar.

    ``listener`` gets what is done, how many pieces of it are, and of how many (0: not known), maybe from another
    thread; `pennon.progress.TqdmProgress` and `RichProgress` are such functions.

    >>> from pennon.ops.bars import bar, reporting
    >>> with reporting(print), bar("counting") as tell:
    ...     tell(1, 2)
    counting 1 2
    """
    before = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(before)


@contextmanager
def told_to(progress: Progress | None) -> Iterator[None]:
    """Let long work in the block tell a function how many pieces are done; None changes nothing.

    >>> from pennon.ops.bars import bar, told_to
    >>> with told_to(print), bar("counting") as tell:
    ...     tell(1, 2)
    1 2
    """
    if progress is None:
        yield
        return
    with reporting(lambda _what, done, total: progress(done, total)):
        yield


@contextmanager
def bar(what: str) -> Iterator[Progress | None]:
    """Give what shows how far some work is: to a listener, or on a terminal, if it takes a while; else None.

    Telemetry is told as well, if it is on.
    """
    with _shown(what) as tell:
        yield tell if TELEMETRY.recorder is None else partial(_tell_both, what, tell)


def _tell_both(what: str, tell: Progress | None, done: int, of: int) -> None:
    gauge(PROGRESS_DONE, done, operation=what)
    gauge(PROGRESS_ALL, of, operation=what)
    if tell is not None:
        tell(done, of)


@contextmanager
def _shown(what: str) -> Iterator[Progress | None]:
    listener = _LISTENER.get()
    if listener is not None:
        yield partial(listener, what)
        return
    if not sys.stderr.isatty():
        yield None
        return
    from rich import console, progress  # noqa: PLC0415 - saves rich off a terminal

    shown = progress.Progress(console=console.Console(stderr=True), transient=True)
    task = shown.add_task(what, total=None)
    started = time.monotonic()

    def tell(done: int, of: int) -> None:
        shown.update(task, completed=done, total=of or None)
        if not shown.live.is_started and time.monotonic() - started > QUIET_SECONDS:
            shown.start()

    try:
        yield tell
    finally:
        shown.stop()


def counted(tell: Progress | None, total: int) -> Callable[[], None]:
    """Return what is called when one more piece of so many is done, and tells how many are."""
    done = 0

    def one_more() -> None:
        nonlocal done
        done += 1
        if tell is not None:
            tell(done, total)

    return one_more
