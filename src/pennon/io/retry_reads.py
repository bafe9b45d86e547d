"""Asking again, after a pause that grows, until patience is at its end.

obstore asks again by itself when a server throttles or fails, or when a connection breaks before the
answer.  When it breaks in the middle of an answer, obstore goes on only where the server names the
state of the object (an ETag); other servers are asked again from here, for what is read only.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from pennon.core.fast_dataclass import dataclass
from pennon.core.loggers import IO
from pennon.core.telemetry import READ_RETRIES, count
from pennon.errors import StoreError

T = TypeVar("T")

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 15.0


class BrokenAnswerError(StoreError):
    """The connection was lost in the middle of an answer."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The number of retries, and the time for them, after an answer that broke off."""

    max_retries: int = 10
    timeout_s: float = 180

    def wait_out(self, action: Callable[[], T]) -> T:
        """Return ``action()``, which must do no harm when it is done again."""
        deadline = time.monotonic() + self.timeout_s
        for retry in range(self.max_retries):
            try:
                return action()
            except BrokenAnswerError as error:
                pause = _pause(retry)
                count(READ_RETRIES)
                IO.info("read %d broke off, again after %.1f s: %s", retry + 1, pause, error)
                if time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause)
        return action()


def _pause(retry: int) -> float:
    """Return how long to wait: longer each time, and as long as no other client does."""
    most = min(FIRST_PAUSE_S * 2**retry, LONGEST_PAUSE_S)
    return random.uniform(most / 2, most)  # noqa: S311 - no secret
