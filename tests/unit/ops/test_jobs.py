"""Running tasks: order, bounds, failures."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from pennon.ops.jobs import run_tasks


@dataclass
class Squares:
    """Counts how many pieces are under way at once."""

    fails_at: int | None = None
    begun: list[int] = field(default_factory=list)
    busy: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, number: int) -> int:
        with self.lock:
            self.begun.append(number)
            self.busy += 1
            self.most = max(self.most, self.busy)
        if number == self.fails_at:
            raise ValueError(number)
        with self.lock:
            self.busy -= 1
        return number * number


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_results_come_in_order(count: int) -> None:
    assert run_tasks(Squares(), count, what="squares") == [n * n for n in range(count)]


def test_no_more_run_than_there_are_threads() -> None:
    task = Squares()
    run_tasks(task, 200, what="squares", threads=3)
    assert task.most <= 3


def test_a_failure_stops_the_rest() -> None:
    task = Squares(fails_at=5)
    with pytest.raises(ValueError, match="5"):
        run_tasks(task, 1000, what="squares", threads=2)
    assert len(task.begun) < 20
