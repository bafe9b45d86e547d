"""Adaptors: progress of long work shown by tqdm or rich, which the caller imports."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress as RichBars
    from rich.progress import TaskID


class TqdmProgress:
    """Shows progress as bars of tqdm, one for each kind of work.

    It is called as `report_to` and ``progress=`` arguments call: with what is done (where that is said), how many
    pieces are done, and of how many (0: not known).

    >>> class FakeTqdm:
    ...     def __init__(self, **given): self.n, self.total = 0, given["total"]
    ...     def update(self, more): self.n += more
    ...     def refresh(self): print(self.n, self.total)
    ...     def close(self): print("closed")
    >>> shown = TqdmProgress(FakeTqdm)
    >>> shown("compacting", 1, 2)
    1 2
    >>> shown.close()
    closed
    """

    def __init__(self, tqdm: Callable[..., Any]) -> None:
        """Take the class ``tqdm.tqdm``, or one like it, e.g. that of ``tqdm.auto``."""
        self._tqdm = tqdm
        self._what: str | None = None
        self._bar: Any = None

    def __call__(self, *told: Any) -> None:
        """Show how far the work is."""
        *before, done, total = told
        what = str(before[0]) if before else ""
        if self._bar is None or what != self._what:
            self.close()
            self._what, self._bar = what, self._tqdm(desc=what or None, total=total or None)
        self._bar.total = total or None
        self._bar.update(done - self._bar.n)
        self._bar.refresh()

    def close(self) -> None:
        """End the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class RichProgress:
    """Shows progress as tasks of a ``rich.progress.Progress``, one for each kind of work.

    >>> from rich.progress import Progress
    >>> bars = Progress(disable=True)
    >>> shown = RichProgress(bars)
    >>> shown("compacting", 1, 2)
    >>> [(task.description, task.completed, task.total) for task in bars.tasks]
    [('compacting', 1, 2)]
    """

    def __init__(self, progress: RichBars) -> None:
        """Take the bars, which the caller starts and stops."""
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, *told: Any) -> None:
        """Show how far the work is."""
        *before, done, total = told
        what = str(before[0]) if before else ""
        if what not in self._tasks:
            self._tasks[what] = self._progress.add_task(what, total=None)
        self._progress.update(self._tasks[what], completed=done, total=total or None)
