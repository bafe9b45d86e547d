"""A bar on the terminal, of what takes a while."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

QUIET_SECONDS: Final = 2.0
"""What is done sooner shows no bar."""


@contextmanager
def bar(what: str, total: int | None) -> Iterator[Callable[[], None]]:
    """Give a function to call whenever one more of ``total`` is done; on a terminal a bar says so."""
    if not sys.stderr.isatty():
        yield _nothing
        return
    from rich import console, progress  # noqa: PLC0415 - saves rich off a terminal

    shown = progress.Progress(console=console.Console(stderr=True), transient=True)
    task = shown.add_task(what, total=total)
    started = time.monotonic()

    def advance() -> None:
        shown.advance(task)
        if not shown.live.is_started and time.monotonic() - started > QUIET_SECONDS:
            shown.start()

    try:
        yield advance
    finally:
        shown.stop()


def _nothing() -> None:
    """Show nothing."""
