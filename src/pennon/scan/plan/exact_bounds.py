"""Least and greatest values, and counts of NULLs, that statistics know exactly: none of the values is read.

Statistics are bounds, which is less: they go on to hold for rows that were deleted since, they leave NaN out, and
texts may be cut.  So what is answered are fragments without deleted rows, and columns of numbers (without NaN among
them), times and booleans.  Files of version 0.1 have such statistics, those of 2.0 with zone maps, and columns with
an index of the kind ZONEMAP.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.file.container.field_bounds import FieldBounds
from pennon.index.scalar.zone_map import ZoneMap
from pennon.scan.plan.index_lookup import UNUSABLE, open_index, usable_indices
from pennon.scan.plan.pruning import read_bounds_of
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import ScanTask
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field
from pennon.table.fragment import Fragment


@dataclass(frozen=True, slots=True, eq=False)
class ExactColumn:
    """The values of a column, whose least, greatest and number of NULLs are exact."""

    ends: pa.Array[Any]
    nulls: int


@dataclass(frozen=True, slots=True, eq=False)
class ExactRows:
    """Rows whose statistics answer the query."""

    rows: int
    columns: Mapping[str, ExactColumn]


def has_exact_bounds(column: Field) -> bool:
    """Return whether statistics of a column are its values, where they are known."""
    kind = field_to_arrow(column).type
    is_number = pat.is_integer(kind) or pat.is_decimal(kind)
    return bool(is_number or pat.is_temporal(kind) or pat.is_boolean(kind))


def split_by_statistics(
    snapshot: Snapshot, tasks: Iterable[ScanTask], columns: Sequence[Field]
) -> tuple[list[ExactRows], list[ScanTask]]:
    """Return what statistics say of rows of tasks, and the tasks that read the others."""
    known, rest = [], []
    for task in tasks:
        found = _found(snapshot, task, columns)
        if found is None:
            rest.append(task)
            continue
        exact, left = found
        known.append(exact)
        rest += left
    return known, rest


def _found(
    snapshot: Snapshot, task: ScanTask, columns: Sequence[Field]
) -> tuple[ExactRows, list[ScanTask]] | None:
    """Return what statistics say of rows of a task, and the rest of it; None if that is too little."""
    is_whole = task.fragment.deletion_file is None and task.chosen is None
    if not is_whole or not all(map(has_exact_bounds, columns)):
        return None
    bounds = read_bounds_of(snapshot, task, {(column.name,): column for column in columns})
    named = {path[0]: found for path, found in bounds.items()}
    if len(named) < len(columns) and snapshot.manifest.indices:
        for column in columns:
            zones = _of_zones(snapshot, task.fragment, column)
            if zones is not None:
                named.setdefault(column.name, zones)
    if len(named) < len(columns):
        return None
    borders = reduce(np.intersect1d, (each.borders for each in named.values()))
    borders = borders[(task.start <= borders) & (borders <= task.end)]
    ranges = [each for each in pairwise(borders.tolist()) if _are_exact(named.values(), *each)]
    rows = sum(end - start for start, end in ranges)
    if 2 * rows < task.rows:
        return None
    exact = {name: _column(each, ranges) for name, each in named.items()}
    return ExactRows(rows, exact), list(_others(task, ranges))


def _of_zones(snapshot: Snapshot, fragment: Fragment, column: Field) -> FieldBounds | None:
    """Return the bounds of a column that an index says; None if none does."""
    rows = FragmentReader(snapshot, fragment).physical_rows()
    kind = field_to_arrow(column).type
    for index in usable_indices(snapshot).get(column.id, ()):
        for segment in index.segments if index.json_path is None else ():
            if fragment.id not in (segment.fragment_ids or ()):
                continue
            try:
                opened = open_index(snapshot, segment, index.kind, kind)
            except UNUSABLE:
                continue
            if isinstance(opened, ZoneMap) and opened.column.type == kind:
                return opened.of_fragment(fragment.id, rows)
    return None


def _are_exact(columns: Iterable[FieldBounds], start: int, end: int) -> bool:
    """Return whether all is known of the rows ``[start, end)``, at which units of all columns begin and end."""
    return all(_is_exact(each, start, end) for each in columns)


def _is_exact(bounds: FieldBounds, start: int, end: int) -> bool:
    units = _units(bounds, start, end)
    if bounds.low is None or bounds.high is None or bounds.null_counts is None:
        return False
    nulls = bounds.null_counts[units]
    if nulls.null_count:
        return False
    sizes = np.diff(bounds.borders)[units]
    is_null = np.asarray(nulls) == sizes
    is_known = pc.and_(bounds.low[units].is_valid(), bounds.high[units].is_valid())
    return bool((is_null | np.asarray(is_known)).all())


def _units(bounds: FieldBounds, start: int, end: int) -> slice:
    first, last = np.searchsorted(bounds.borders, [start, end])
    return slice(int(first), int(last))


def _column(bounds: FieldBounds, ranges: Sequence[tuple[int, int]]) -> ExactColumn:
    if bounds.low is None or bounds.high is None or bounds.null_counts is None:
        return ExactColumn(pa.nulls(0), 0)  # there is no range then
    numbers = [np.arange(*_units(bounds, *each).indices(len(bounds.low))) for each in ranges]
    units: Int64Array = np.concatenate([np.empty(0, np.int64), *numbers])
    chosen = pa.array(units)
    is_null = np.asarray(bounds.null_counts.take(chosen)) == np.diff(bounds.borders)[units]
    ends = pa.concat_arrays([bounds.low.take(chosen), bounds.high.take(chosen)])
    held = pc.if_else(pa.array(np.tile(is_null, 2)), pa.scalar(None, ends.type), ends)
    return ExactColumn(held, int(np.asarray(bounds.null_counts.take(chosen)).sum()))


def _others(task: ScanTask, ranges: Sequence[tuple[int, int]]) -> Iterator[ScanTask]:
    """Yield the parts of a task between ranges."""
    at = task.start
    for start, end in [*ranges, (task.end, task.end)]:
        if start > at:
            yield replace(task, start=at, end=start)
        at = end
