"""Partitions: which fragments, or parts of fragments, each Spark task reads.

Spark plans a scan of files by their bytes and its cores; so do we.  A large fragment is split, so
that all cores have work.  Small ones share a partition, since every task costs some hundredths of a
second before its first row.  Rows stay in order: a partition is a run of neighbours, as many of them
as fit ``max_partition_bytes``.  Little of a table is read by one task alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from pennon.core.units import MIB
from pennon.scan.read.tasks import OPEN_BYTES, ScanTask, bytes_per_row, plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.width import has_width, row_bytes

Partition: TypeAlias = tuple[ScanTask, ...]

MIN_SPLIT_BYTES = 4 * MIB
"""No fragment is split into smaller pieces for the cores' sake."""

ONE_TASK_BYTES = 32 * MIB
"""So much, `OPEN_BYTES` of each fragment counted, one task reads sooner than Spark brings together what two read."""


@dataclass(frozen=True, slots=True)
class Parallelism:
    """The number of partitions that a session wants.

    Large fragments are split until there are ``least``; small ones are put together while there are
    more than ``most``.
    """

    least: int
    most: int

    @classmethod
    def of_cores(cls, cores: int) -> Parallelism:
        """Return what suits a session with so many cores."""
        return cls(max(cores, 1), max(cores, 1))

    @classmethod
    def unknown(cls) -> Parallelism:
        """Return the parallelism for a session with an unknown number of cores: as many as here, or some more."""
        here = os.cpu_count() or 1
        return cls(here, 4 * here)


def plan_partitions(
    snapshot: Snapshot,
    max_partition_bytes: int,
    parallelism: Parallelism,
    columns: pa.Schema | None = None,
) -> list[Partition]:
    """Return the partitions of a table, in order; a table without rows has none.

    ``columns`` are those that are read, None: whatever takes as long as all of them.
    """
    return partitions_of(plan_tasks(snapshot), max_partition_bytes, parallelism, columns)


def partitions_of(
    tasks: Sequence[ScanTask],
    max_partition_bytes: int,
    parallelism: Parallelism,
    columns: pa.Schema | None = None,
) -> list[Partition]:
    """Return the partitions of all tasks of a table; see `plan_partitions`."""
    if columns is not None and _is_little(tasks, columns, max_partition_bytes):
        return [tuple(tasks)]
    return pack_tasks(tasks, max_partition_bytes, parallelism)


def pack_tasks(
    tasks: Sequence[ScanTask], max_partition_bytes: int, parallelism: Parallelism
) -> list[Partition]:
    """Return partitions of what tasks read, in order."""
    share = sum(map(size_bytes, tasks)) // parallelism.least
    limit = min(max_partition_bytes, max(share, MIN_SPLIT_BYTES))
    pieces = [piece for task in tasks for piece in _split(task, limit)]
    if len(pieces) <= parallelism.most:
        return [(piece,) for piece in pieces]
    full = -(-sum(map(_cost, pieces)) // max(max_partition_bytes, OPEN_BYTES))
    return list(_pack(pieces, max(parallelism.most, full)))


def _is_little(tasks: Sequence[ScanTask], columns: pa.Schema, max_partition_bytes: int) -> bool:
    """Return whether one task is to read these columns.

    Only values that all take the same bytes are little: a task that has few texts may still be asked to do
    much with each.
    """
    if not tasks or not all(has_width(field.type) for field in columns):
        return False
    size = sum(task.rows for task in tasks) * row_bytes(columns)
    return size <= max_partition_bytes and size + len(tasks) * OPEN_BYTES <= ONE_TASK_BYTES


def size_bytes(task: ScanTask) -> int:
    """Return how many bytes of data files a task reads, of all columns."""
    return task.rows * bytes_per_row(task.fragment)


def _cost(task: ScanTask) -> int:
    return size_bytes(task) + OPEN_BYTES


def _split(task: ScanTask, limit: int) -> Iterator[ScanTask]:
    """Cut a task into even runs of its rows, each of ``limit`` bytes at most where rows allow it."""
    pieces = min(task.rows, -(-size_bytes(task) // limit))
    step = -(-task.rows // pieces)
    for start in range(task.start, task.end, step):
        yield replace(task, start=start, end=min(start + step, task.end))


def _pack(pieces: Sequence[ScanTask], count: int) -> Iterator[Partition]:
    """Put neighbours together in ``count`` runs of about the same cost; none of them is empty.

    A piece goes to the run that its middle falls into.
    """
    total, before = sum(map(_cost, pieces)), 0
    runs: dict[int, list[ScanTask]] = {}
    for piece in pieces:
        middle = before + _cost(piece) // 2
        runs.setdefault(middle * count // total, []).append(piece)
        before += _cost(piece)
    return (tuple(run) for run in runs.values())
