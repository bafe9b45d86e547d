"""Children of a fork that check something, several at once."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable

CHILDREN = 8


def fork(check: Callable[[], bool], seconds: int = 60) -> int:
    """Return the process id of a child that exits with 0 if the check holds; it never hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        fine = False
        try:
            fine = check()
        except BaseException:  # noqa: BLE001 - whatever it was, the parent is to see it
            traceback.print_exc()
        finally:
            os._exit(0 if fine else 1)
    return child


def exit_codes(check: Callable[[], bool], children: int = CHILDREN) -> list[int]:
    """Return the exit codes of children that run at once; negative where one hung."""
    ids = [fork(check) for _ in range(children)]
    return [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in ids]
