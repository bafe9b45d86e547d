"""What all sides of a comparison have in common: they are told what to do, and time it.

A side is a process of its own.  It reads one JSON task a line from stdin, runs it, and answers with one JSON line.
Nothing is imported here but Python's own: a peer's interpreter may have no Arrow.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

Task: TypeAlias = dict[str, Any]
Works: TypeAlias = list[Callable[[], Any]]

LONG_ENOUGH = 0.05
"""Seconds after which no further work of a row of works is begun."""


class Side:
    """Runs tasks: ``do`` names the method that prepares one."""

    def run(self, task: Task) -> dict[str, Any]:
        """Run one task; return its seconds, what it found, and what it read if that is counted."""
        prepare: Callable[[Task], Works] = getattr(self, f"prepare_{task['do']}")
        works = prepare(task)
        if not task.get("round"):  # later ones find the interpreter as a program's own calls do
            gc.collect()
        self.reads()
        done, seconds, found = 0, 0.0, None
        started = time.perf_counter()
        for work in works:
            found = work()
            done += 1
            seconds = time.perf_counter() - started
            if seconds > LONG_ENOUGH:
                break
        return {"seconds": seconds / max(done, 1), "found": found, "reads": self.reads()}

    def reads(self) -> dict[str, int]:
        """Return what was read since the last call, if that is counted."""
        return {}


def random_places(count: int, task: Task) -> list[int]:
    """Return ``times`` numbers below a count: the same for all sides, others in each ``round``."""
    return random.Random(task["round"]).choices(range(count), k=task["times"])


def answer_tasks(side: Side) -> None:
    """Answer tasks until stdin ends."""
    gc.freeze()  # what was imported need not be looked at before every task
    for line in sys.stdin:
        print(json.dumps(side.run(json.loads(line))), flush=True)
