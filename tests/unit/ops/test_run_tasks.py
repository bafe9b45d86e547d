"""Running tasks: order, bounds, failures."""

from __future__ import annotations

import io
import sys
import threading
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import DataLossWarning
from pennon.ops import bars
from pennon.ops.bars import bar
from pennon.ops.run_tasks import run_tasks


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
def test_run_tasks_returns_results_in_order(count: int) -> None:
    assert run_tasks(Squares(), count, what="squares") == [n * n for n in range(count)]


def test_run_tasks_runs_at_most_one_task_per_thread() -> None:
    task = Squares()
    run_tasks(task, 200, what="squares", threads=3)
    assert task.most <= 3


def test_a_failure_stops_the_rest() -> None:
    task = Squares(fails_at=5)
    with pytest.raises(ValueError, match="5"):
        run_tasks(task, 1000, what="squares", threads=2)
    assert len(task.begun) < 20


@dataclass
class Writers:
    """Piece 0 fails when piece 1 is under way, which takes a while."""

    begun: threading.Event = field(default_factory=threading.Event)
    ended: list[int] = field(default_factory=list)

    def run(self, number: int) -> None:
        if not number:
            self.begun.wait()
            raise ValueError(number)
        self.begun.set()
        self.ended.append(sum(range(2_000_000)))


def test_run_tasks_stops_after_a_failure() -> None:
    task = Writers()
    with pytest.raises(ValueError, match="0"):
        run_tasks(task, 2, what="writers", threads=2)
    assert len(task.ended) == 1


class Terminal(io.StringIO):
    """What a bar is shown on."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(bars, "QUIET_SECONDS", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    assert run_tasks(Squares(), 3, what="squares") == [0, 1, 4]
    with bar("training") as told:
        assert told is not None
        told(7, 9)
    shown = terminal.getvalue()
    assert "squares" in shown
    assert "training" in shown
    with bar("quiet") as told:
        pass
    assert "quiet" not in terminal.getvalue()


def test_data_loss_at_0_1_warns_once_per_operation(tmp_path: Path) -> None:
    """Of all tasks of an operation, with the counts of all."""
    data = pa.table({"k": list(range(12)), "v": [None, 1, 2] * 4, "t": ["", "x", None] * 4})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = pennon.write_dataset(
            data, tmp_path / "t", data_storage_version="0.1", max_rows_per_file=4
        )
        dataset.add_columns({"w": "CASE WHEN k % 2 = 0 THEN k END"})
        dataset.optimize.compact_files()
    texts = [str(each.message) for each in caught if each.category is DataLossWarning]
    assert [text.partition(": ")[2].partition(" (")[0] for text in texts] == [
        "'v': 4 NULLs; 't': 4 empty values",
        "'w': 6 NULLs",
    ]
