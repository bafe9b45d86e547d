"""Tasks of neighbouring small fragments become one task of a run of them (`pennon.scan.read.fragment_run`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from pennon.core.units import MIB
from pennon.scan.read.fragment_run import MOST_FRAGMENTS, FragmentRun
from pennon.scan.read.tasks import (
    ALL_TASKS,
    ChosenRows,
    ReadTask,
    RunTask,
    ScanTask,
)
from pennon.scan.snapshot import Key, Snapshot
from pennon.schema.version import V2_1
from pennon.table.fragment import Fragment

SMALL_BYTES: Final = 8 * MIB
"""A fragment is small if no more bytes are read of it: a larger one keeps threads at work by itself."""
STREAMED_BYTES: Final = MIB
"""The same of a stream of rows whose width is not known: the larger what is decoded together, the more is held."""
SMALL_ROWS: Final = 1 << 17
FIRST_FRAGMENTS: Final = 8
"""The fragments of the first run; a scan may end there.  Each further run has four times as many as the one before."""
JOINED: Final[Key[tuple[ReadTask, ...]]] = Key("joined tasks")
_OLDEST: Final = V2_1.to_numbers()
"""Files before this version tell the bounds of their pages, by which rows are ruled out fragment by fragment."""


def join_tasks(
    snapshot: Snapshot,
    tasks: tuple[ScanTask, ...],
    share: float,
    *,
    is_held: bool = False,
) -> tuple[ReadTask, ...]:
    """Return tasks, those of neighbouring small fragments joined; rows stay in order.

    ``share`` is how much of the data files is read.  ``is_held``: see `STREAMED_BYTES`.
    """
    most_bytes = int((STREAMED_BYTES if is_held else SMALL_BYTES) / max(share, 1e-6))
    if tasks is not snapshot.recall(ALL_TASKS):
        return tuple(_join(snapshot, tasks, most_bytes))
    return snapshot.remember_run(
        JOINED, lambda: tuple(_join(snapshot, tasks, most_bytes)), most_bytes
    )


def _join(snapshot: Snapshot, tasks: Sequence[ScanTask], most_bytes: int) -> list[ReadTask]:
    found: list[ReadTask] = []
    together: list[ScanTask] = []
    most = FIRST_FRAGMENTS
    for task in tasks:
        is_small = _is_small(task.fragment, most_bytes)
        goes_on = is_small and len(together) < most and together and _goes_on(together[-1], task)
        if together and not goes_on:
            found.append(_joined(snapshot, together))
            together = []
            most = min(most * 4, MOST_FRAGMENTS)
        (together if is_small else found).append(task)
    if together:
        found.append(_joined(snapshot, together))
    return found


def _is_small(fragment: Fragment, most_bytes: int) -> bool:
    rows = fragment.physical_rows
    if not rows or rows > SMALL_ROWS or fragment.num_rows is None:
        return False
    size_bytes = 0
    for file in fragment.files:
        if not file.size_bytes or (file.major, file.minor) < _OLDEST:
            return False
        size_bytes += file.size_bytes
    return size_bytes <= most_bytes


def _goes_on(last: ScanTask, task: ScanTask) -> bool:
    """Return whether a task begins where another ends: no row is left out in between."""
    if last.fragment is task.fragment:
        return False
    if last.chosen is not None and task.chosen is not None:
        return last.chosen.pass_all == task.chosen.pass_all
    whole = last.end == last.fragment.num_rows and task.start == 0
    return whole and last.chosen is None and task.chosen is None


def _joined(snapshot: Snapshot, tasks: Sequence[ScanTask]) -> ReadTask:
    if len(tasks) == 1:
        return tasks[0]
    run = FragmentRun.of(snapshot, [task.fragment for task in tasks])
    ends = np.cumsum([task.fragment.num_rows or 0 for task in tasks]).tolist()
    first, last = tasks[0], tasks[-1]
    if first.chosen is None:
        return RunTask(run, first.start, ends[-2] + last.end)
    offsets = np.concatenate(list(_moved(tasks, [0, *ends])))
    return RunTask(run, 0, len(offsets), ChosenRows(offsets, first.chosen.pass_all))


def _moved(tasks: Sequence[ScanTask], starts: Sequence[int]) -> Iterable[np.ndarray]:
    """Yield the chosen rows of tasks, counted from the first live row of the run."""
    for task, start in zip(tasks, starts, strict=False):
        if task.chosen is not None:
            yield task.chosen.offsets[task.start : task.end] + start
