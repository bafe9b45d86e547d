"""Rows that bounds of pages rule out: statistics of data files, whatever they are called there.

The bounds of each column come in units of their own.  Where the units of several columns overlap in
different ways, the rows are cut at the borders of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from pennon.encoding.steps import run
from pennon.expr.prune import Bounds, Path, Pruner
from pennon.file.bounds import FieldBounds
from pennon.scan.fragment_reader import FragmentReader
from pennon.scan.plan import ScanTask
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Field, Schema
from pennon.schema.version import V0_1, FileVersion
from pennon.table.manifest import DataFileRef

NEAR_ROWS = 64
"""So few rows that are ruled out between others are read with them."""


def prune_pages(
    snapshot: Snapshot, task: ScanTask, pruner: Pruner, paths: Iterable[Path]
) -> Iterator[ScanTask]:
    """Yield the parts of a task in which a row may pass, in order.

    ``paths`` are the columns that the condition needs.
    """
    if not any(map(_may_have_bounds, task.fragment.files)):
        yield task
        return
    reader = FragmentReader(snapshot, task.fragment)
    fields = {path: field for path in paths if (field := _find(snapshot.manifest.schema, path))}
    found = dict(_read_bounds(reader, fields))
    if not found:
        yield task
        return
    live = reader.live_rows()
    kept = np.array(list(_kept(pruner, found)), np.int64).reshape(-1, 2)
    for start, end in live.to_live(kept.ravel()).reshape(-1, 2).tolist():
        part = replace(task, start=max(start, task.start), end=min(end, task.end))
        if part.end > part.start:
            yield part


def _may_have_bounds(ref: DataFileRef) -> bool:
    return FileVersion.from_numbers(ref.major, ref.minor) == V0_1


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
    reader: FragmentReader, fields: Mapping[Path, Field]
) -> Iterator[tuple[Path, FieldBounds]]:
    """Yield the bounds of the fields that have any."""
    for columns in reader.files:
        mine = {path: each for path, each in fields.items() if each.id in columns.column_of}
        if not mine or not _may_have_bounds(columns.ref):
            continue
        opened = reader.snapshot.open_file(columns.ref)
        bounds = run(opened.data.read_bounds(list(mine.values())), opened.source.read)
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
