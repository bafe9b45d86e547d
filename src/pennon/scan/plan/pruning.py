"""Pruning: rows that a condition rules out before they are read, by their ids, addresses and page statistics.

Row ids and addresses need no look at a file.  The bounds of pages, be they called statistics or zone maps, come in
units of their own for each column: where those of several overlap in different ways, the rows are cut at the borders of
all of them.

The address of a row is its fragment and its offset there, and the id too, unless the table has
stable row ids.  So ``_rowid IN (5, 7)`` leaves two rows of one fragment.  The rows between two values
that the condition names are judged together: it cannot tell them apart.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_pools import map_all
from pennon.core.units import FragmentId, RowOffset, row_address
from pennon.encoding.read_protocol import run
from pennon.expr.prune import Bounds, Path, Pruner, Unit, literals_beside
from pennon.expr.tree import Expression, paths_of
from pennon.file.container.field_bounds import FieldBounds
from pennon.scan.predicate import SqlPredicate
from pennon.scan.projection import MetaColumn
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import NEAR_ROWS, ScanTask
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Field, Schema
from pennon.schema.version import V0_1, V2_0, FileVersion

MOST_CUTS: Final = 1000
"""Cuts in one fragment; where there are more, values that lie close are not told apart."""

KNOWN_TASKS = 64
"""Fragments of which it is kept what may pass; units come fragment by fragment."""
_WITH_BOUNDS = frozenset({V0_1, V2_0})
_ADDRESS: Final[Path] = (MetaColumn.ROW_ADDRESS.value,)
_ID: Final[Path] = (MetaColumn.ROW_ID.value,)
_ROWS: Final = frozenset({_ADDRESS, _ID})


def prune_tasks(
    snapshot: Snapshot, tasks: Sequence[ScanTask], predicate: SqlPredicate
) -> Sequence[ScanTask]:
    """Return the parts of tasks in which a row may pass, in order."""
    if predicate.is_never_true:
        return []
    pruner, named = predicate.pruner, _ROWS.intersection(predicate.columns)
    left = _prune_rows(snapshot, tasks, predicate.condition, pruner, named)
    return prune_pages(snapshot, left, pruner, predicate.columns)


def _prune_rows(
    snapshot: Snapshot,
    tasks: Sequence[ScanTask],
    condition: Expression,
    pruner: Pruner,
    named: frozenset[Path],
) -> Sequence[ScanTask]:
    """Return what the row ids and addresses that are ``named`` leave of tasks."""
    if not named:
        return tasks
    if named == {_ADDRESS} or not snapshot.manifest.has_stable_row_ids:
        values = {value for path in named for value in literals_beside(condition, path)}
        cuts = sorted({*values, *(value + 1 for value in values)})
        return [part for task in tasks for part in _Addresses(snapshot, task).parts(pruner, cuts)]
    return [task for task in tasks if pruner.can_match(_stable_ids(snapshot, task))]


@dataclass(frozen=True, slots=True)
class _Addresses:
    """A task whose rows are known by their addresses."""

    snapshot: Snapshot
    task: ScanTask

    def parts(self, pruner: Pruner, cuts: Sequence[int]) -> Iterator[ScanTask]:
        """Yield the parts that may match; between two cuts all rows are alike."""
        fragment = self.task.fragment
        first = row_address(fragment.id, RowOffset(0))
        last = row_address(FragmentId(fragment.id + 1), RowOffset(0)) - 1
        if not pruner.can_match(self._unit(first, last)):
            return
        live = FragmentReader(self.snapshot, fragment).live_rows()
        inside = cuts[bisect_right(cuts, first) : bisect_left(cuts, first + live.physical_rows)]
        inside = inside[:: len(inside) // MOST_CUTS + 1]
        offsets = live.to_live(np.array([cut - first for cut in inside], np.int64))
        start = end = self.task.start
        for low, high in self._stretches(offsets):
            at = live.to_physical(np.array([low, high - 1], np.int64))
            if not pruner.can_match(self._unit(first + int(at[0]), first + int(at[1]))):
                continue
            if low - end > NEAR_ROWS:
                if end > start:
                    yield replace(self.task, start=start, end=end)
                start = low
            elif end == start:
                start = low
            end = high
        if end > start:
            yield replace(self.task, start=start, end=end)

    def _stretches(self, offsets: Int64Array) -> Iterator[tuple[int, int]]:
        """Yield the stretches of the task's rows between the offsets at which it is cut."""
        ends = {self.task.start, self.task.end}
        ends |= {int(at) for at in offsets if self.task.start < at < self.task.end}
        yield from pairwise(sorted(ends))

    def _unit(self, first: int, last: int) -> Unit:
        bounds = _bounds(first, last)
        if self.snapshot.manifest.has_stable_row_ids:
            return {_ADDRESS: bounds}
        return {_ADDRESS: bounds, _ID: bounds}


def _bounds(low: int, high: int) -> Bounds:
    return Bounds(pa.scalar(low, pa.uint64()), pa.scalar(high, pa.uint64()), null_count=0)


def _stable_ids(snapshot: Snapshot, task: ScanTask) -> Unit:
    """Return the bounds of a fragment whose ids are stable: they may be in any order."""
    rows = FragmentReader(snapshot, task.fragment).physical_rows()
    ids = snapshot.row_ids(task.fragment, rows)
    first = row_address(task.fragment.id, RowOffset(0))
    addresses = _bounds(first, first + max(rows - 1, 0))
    if not len(ids):
        return {_ADDRESS: addresses}
    return {_ADDRESS: addresses, _ID: _bounds(int(ids.min()), int(ids.max()))}


# --- statistics of pages ---------------------------------------------------------------------------


def prune_pages(
    snapshot: Snapshot, tasks: Sequence[ScanTask], pruner: Pruner, paths: Iterable[Path]
) -> Sequence[ScanTask]:
    """Return the parts of tasks in which a row may pass, in order; the tasks themselves where none is ruled out.

    ``paths`` are the columns that the condition needs.
    """
    if _versions_in(tasks).isdisjoint(_WITH_BOUNDS):
        return tasks
    fields = {path: field for path in paths if (field := _find(snapshot.manifest.schema, path))}
    asked = _versions_asked(snapshot, tasks, fields)
    if not asked:
        return tasks
    work = partial(_prune, snapshot, pruner, fields, asked)
    parts = map_all(work, tasks, snapshot.pool_spec) if snapshot.is_remote else map(work, tasks)
    return [part for found in parts for part in found]


def _versions_asked(
    snapshot: Snapshot, tasks: Sequence[ScanTask], fields: Mapping[Path, Field]
) -> frozenset[FileVersion]:
    """Return the versions of the data files that are asked for bounds.

    All files of version 0.1 have some.  Few of 2.0 do, and to open all of them just to see that is
    too much: if neither the first nor the last fragment has any, none is asked.  Those of a remote
    store are asked when their units are read (`UnitPruner`).
    """
    asked = _versions_in(tasks) & _WITH_BOUNDS if fields else frozenset()
    if V2_0 not in asked:
        return asked
    ends: Sequence[ScanTask] = ()
    if not snapshot.is_remote:
        zoned = [task for task in tasks if V2_0 in _versions_in([task])]
        ends = zoned[:: max(len(zoned) - 1, 1)]
    has_zones = any(_bounds_of(snapshot, each, fields, frozenset({V2_0})) for each in ends)
    return asked if has_zones else asked - {V2_0}


class UnitPruner:
    """Rules out rows of units of a remote store, once their files of version 2.0 are open."""

    def __init__(self, snapshot: Snapshot, pruner: Pruner, fields: Mapping[Path, Field]) -> None:
        self._work = partial(_prune, snapshot, pruner, fields, frozenset({V2_0}))
        self._parts: dict[int, list[ScanTask]] = {}

    @classmethod
    def of(
        cls, snapshot: Snapshot, tasks: Sequence[ScanTask], condition: Expression
    ) -> UnitPruner | None:
        """Return what rules out rows of tasks; None if there is nothing to be asked."""
        if not (snapshot.is_remote and V2_0 in _versions_in(tasks)):
            return None
        schema = snapshot.manifest.schema
        fields = {path: f for path in paths_of(condition) if (f := _find(schema, path))}
        return cls(snapshot, Pruner(condition), fields) if fields else None

    def narrowed(self, number: int, task: ScanTask, start: int, end: int) -> tuple[int, int]:
        """Return the first row of ``[start, end)`` that may pass, and the end of the last one.

        ``number`` is that of the task.
        """
        parts = self._parts.get(number)
        if parts is None:
            parts = self._work(replace(task, start=0, end=1 << 62))
            while len(self._parts) >= KNOWN_TASKS:
                self._parts.pop(next(iter(self._parts)), None)
            self._parts[number] = parts
        mine = [(max(p.start, start), min(p.end, end)) for p in parts]
        filled = [each for each in mine if each[0] < each[1]]
        return (filled[0][0], filled[-1][1]) if filled else (start, start)


def _versions_in(tasks: Iterable[ScanTask]) -> frozenset[FileVersion]:
    """Return the versions of the data files of tasks."""
    return _versions_of(
        frozenset({(file.major, file.minor) for task in tasks for file in task.fragment.files})
    )


@lru_cache(maxsize=64)
def _versions_of(numbers: frozenset[tuple[int, int]]) -> frozenset[FileVersion]:
    return frozenset(FileVersion.from_numbers(*each) for each in numbers)


def _prune(
    snapshot: Snapshot,
    pruner: Pruner,
    fields: Mapping[Path, Field],
    asked: frozenset[FileVersion],
    task: ScanTask,
) -> list[ScanTask]:
    """Return the parts of a task in which a row may pass."""
    found = _bounds_of(snapshot, task, fields, asked)
    if not found:
        return [task]
    live = FragmentReader(snapshot, task.fragment).live_rows()
    kept = np.array(list(_kept(pruner, found)), np.int64).reshape(-1, 2)
    ranges = live.to_live(kept.ravel()).reshape(-1, 2).tolist()
    parts = [
        replace(task, start=max(start, task.start), end=min(end, task.end)) for start, end in ranges
    ]
    return [part for part in parts if part.end > part.start]


def _bounds_of(
    snapshot: Snapshot,
    task: ScanTask,
    fields: Mapping[Path, Field],
    asked: frozenset[FileVersion],
) -> dict[Path, FieldBounds]:
    """Return the bounds of those fields that have any in the task's fragment."""
    if asked.isdisjoint(_versions_in([task])):
        return {}
    return dict(_read_bounds(FragmentReader(snapshot, task.fragment), fields, asked))


def read_bounds_of(
    snapshot: Snapshot, task: ScanTask, fields: Mapping[Path, Field]
) -> dict[Path, FieldBounds]:
    """Return the bounds of the fields that have any in the task's fragment, of every file version."""
    return _bounds_of(snapshot, task, fields, _WITH_BOUNDS)


def _find(schema: Schema, path: Path) -> Field | None:
    """Return the field of a path through structs, None if it leads through anything else."""
    level: Sequence[Field] = schema.fields
    found = None
    for name in path:
        if found is not None and found.logical_type != "struct":
            return None
        found = next((each for each in level if each.name == name), None)
        if found is None:
            return None
        level = found.children
    return found


def _read_bounds(
    reader: FragmentReader, fields: Mapping[Path, Field], asked: frozenset[FileVersion]
) -> Iterator[tuple[Path, FieldBounds]]:
    """Yield the bounds of the fields that have any."""
    for columns in reader.files:
        mine = {path: each for path, each in fields.items() if each.id in columns.column_of}
        version = FileVersion.from_numbers(columns.ref.major, columns.ref.minor)
        if not mine or version not in asked:
            continue
        opened = reader.snapshot.open_file(columns.ref)
        steps = opened.data.read_bounds(list(mine.values()), columns.column_of)
        bounds = run(steps, opened.source.read)
        yield from ((path, each) for path, each in zip(mine, bounds, strict=True) if each)


def _kept(pruner: Pruner, found: Mapping[Path, FieldBounds]) -> Iterator[tuple[int, int]]:
    """Yield the physical rows that may pass; ranges that lie close are one."""
    columns = [_Column(path, bounds) for path, bounds in found.items()]
    borders = np.unique(np.concatenate([column.bounds.borders for column in columns]))
    units = [column.units(borders[:-1]) for column in columns]
    start = end = 0
    for number, (low, high) in enumerate(pairwise(borders.tolist())):
        rows = high - low
        unit = {
            each.path: each.of(int(at[number]), rows)
            for each, at in zip(columns, units, strict=True)
        }
        if not pruner.can_match(unit):
            continue
        if low - end > NEAR_ROWS or end == start:
            if end > start:
                yield start, end
            start = low
        end = high
    if end > start:
        yield start, end


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """The bounds of one column of the condition."""

    path: Path
    bounds: FieldBounds

    def units(self, rows: np.ndarray) -> np.ndarray:
        """Return the unit that each row belongs to."""
        return self.bounds.borders.searchsorted(rows, side="right") - 1

    def of(self, unit: int, rows: int) -> Bounds:
        """Return the bounds of ``rows`` rows of a unit."""
        bounds = self.bounds
        counts = bounds.null_counts
        nulls = None if counts is None else counts[unit].as_py()
        size = int(bounds.borders[unit + 1] - bounds.borders[unit])
        if nulls == size:
            nulls = rows
        elif nulls:
            nulls = None
        return Bounds(_at(bounds.low, unit), _at(bounds.high, unit), nulls, rows)


def _at(values: pa.Array[Any] | None, unit: int) -> pa.Scalar[Any] | None:
    if values is None:
        return None
    value = values[unit]
    return value if value.is_valid else None
