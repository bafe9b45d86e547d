"""The clock that a commit goes by, and its pauses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from pennon.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """Time and chance; tests give a commit others.

    ``now_ns`` are nanoseconds since 1970, ``seconds`` go by steadily, ``pick`` chooses one of so many numbers.
    """

    now_ns: Callable[[], int] = time.time_ns
    seconds: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    pick: Callable[[int], int] = random.randrange


SYSTEM_CLOCK: Final = Clock()
