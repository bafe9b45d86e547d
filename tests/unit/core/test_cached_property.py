"""Properties that are worked out once, and hold no lock while they are."""

from __future__ import annotations

import os
import threading

from pennon.core.cached_property import cached_property


class Numbers:
    def __init__(self) -> None:
        self.calls = 0

    @cached_property
    def total(self) -> int:
        """Return the total."""
        self.calls += 1
        return 7


def test_the_value_is_worked_out_once() -> None:
    numbers = Numbers()
    assert (numbers.total, numbers.total, numbers.calls) == (7, 7, 1)


def test_the_property_keeps_its_docstring() -> None:
    assert Numbers.total.__doc__ == "Return the total."


def test_cached_property_after_fork_does_not_wait() -> None:
    started, done = threading.Event(), threading.Event()

    class Slow:
        is_slow = True

        @cached_property
        def value(self) -> int:
            if self.is_slow:
                started.set()
                done.wait()
            return 1

    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    started.wait()
    quick = Slow()
    quick.is_slow = False
    child = os.fork()
    if child == 0:
        os._exit(0 if quick.value == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    done.set()
    thread.join()
