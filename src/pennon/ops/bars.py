"""A bar on the terminal, of what takes a while; telemetry is told as well, if it is on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from pennon.core.telemetry import PROGRESS_ALL, PROGRESS_DONE, TELEMETRY, gauge

Progress: TypeAlias = Callable[[int, int], object]
"""Is told how many pieces are done, of how many; maybe from another thread."""

QUIET_SECONDS: Final = 2.0
"""What is done sooner shows no bar."""


@contextmanager
def bar(what: str) -> Iterator[Progress | None]:
    """Give what shows how far some work is, on a terminal, if it takes a while; None elsewhere."""
    if TELEMETRY.recorder is None:
        with _shown(what) as tell:
            yield tell
        return
    with _shown(what) as tell:

        def tell_both(done: int, of: int) -> None:
            gauge(PROGRESS_DONE, done, operation=what)
            gauge(PROGRESS_ALL, of, operation=what)
            if tell is not None:
                tell(done, of)

        yield tell_both


@contextmanager
def _shown(what: str) -> Iterator[Progress | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich import console, progress  # noqa: PLC0415 - saves rich off a terminal

    shown = progress.Progress(console=console.Console(stderr=True), transient=True)
    task = shown.add_task(what, total=None)
    started = time.monotonic()

    def tell(done: int, of: int) -> None:
        shown.update(task, completed=done, total=of)
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
