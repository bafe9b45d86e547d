"""Taking single rows: by their place in the table, in a fragment, or by their address or id.

Any order, and any row more than once.  The rows wanted are grouped by fragment, sorted and made
distinct; each fragment is read once, all its columns in lockstep; what was read is then put into
the order asked, in one go over all fragments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.kernels.places import places, sort_few
from pennon.core.runs import run_starts
from pennon.core.thread_pools import map_all
from pennon.core.units import KIB
from pennon.encoding.exact_batches import exact_parts
from pennon.encoding.rows import FileRows, Rows
from pennon.encoding.selection import in_order, in_orders
from pennon.errors import FormatError, OutOfRangeError, TooLargeError
from pennon.scan.plan.take_plan import (
    TWICE,
    FragmentColumns,
    TakePlan,
    fragment_numbers,
    live_ends,
    plan_projection,
)
from pennon.scan.read.batches import empty_batch
from pennon.scan.read.columns import Place, UInt64Array, row_addresses, show_columns
from pennon.scan.read.fragment_reader import Chunks, FragmentReader, one_array, read_together
from pennon.scan.read.tasks import ScanTask
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import Fragment

if TYPE_CHECKING:
    from pennon.scan.plan.query import BoundQuery

AnyInteger = TypeVar("AnyInteger", np.int64, np.uint64)
TakenT = TypeVar("TakenT")

_OFFSET_BITS, _OFFSET = np.uint64(32), np.uint64(0xFFFFFFFF)
"""Of a row address: its offset in the fragment, below the fragment's number."""
FEW_ROWS: Final = 4096
MORE_ROWS: Final = 16 * 1024
FEW_BYTES: Final = 256 * KIB
"""So many rows of mapped files, or bytes of more rows, are read sooner than threads could share them."""


@dataclass(frozen=True, slots=True, eq=False)
class TakeTask:
    """The rows of one fragment at sorted, distinct physical offsets."""

    source: FragmentColumns
    physical: Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class TakenRows:
    """Rows that were taken: an array for each column of a schema."""

    schema: pa.Schema
    arrays: list[pa.Array[Any]]
    rows: int

    def batch(self) -> pa.RecordBatch:
        """Return the rows as a batch."""
        if not self.arrays:
            return empty_batch(self.schema, self.rows)
        return pa.RecordBatch.from_arrays(self.arrays, schema=self.schema)


def take_table(take: Callable[[Any], TakenRows], numbers: npt.NDArray[Any]) -> pa.Table:
    """Return the rows of ``numbers``, in one chunk, or in several if one cannot hold them."""
    taken = take_batches(take, numbers)
    if len(taken) == 1 and taken[0].arrays:  # a batch between them would be checked as well
        return pa.Table.from_arrays(taken[0].arrays, schema=taken[0].schema)
    return pa.Table.from_batches([each.batch() for each in taken])


def take_batches(take: Callable[[Any], TakenT], numbers: npt.NDArray[Any]) -> list[TakenT]:
    """Return the rows of ``numbers`` in one batch, or in several if one cannot hold them.

    An array of text or lists ends at 2 GiB, whatever the type of the column allows in a table.
    """
    try:
        return [take(numbers)]
    except (pa.ArrowInvalid, TooLargeError):
        half = len(numbers) // 2
        if not half:
            raise
    return [*take_batches(take, numbers[:half]), *take_batches(take, numbers[half:])]


def take_offsets(snapshot: Snapshot, plan: TakePlan, offsets: Int64Array) -> pa.RecordBatch:
    """Return what `read_offsets` does, as a batch."""
    return read_offsets(snapshot, plan, offsets).batch()


def read_offsets(snapshot: Snapshot, plan: TakePlan, offsets: Int64Array) -> TakenRows:
    """Return the rows at offsets among the table's live rows, in the order asked.

    Raises OutOfRangeError for an offset outside the table.
    """
    return _gather(snapshot, plan, *_tasks_of_offsets(snapshot, plan, offsets))


def take_offsets_in_parts(
    snapshot: Snapshot, plan: TakePlan, parts: Sequence[Int64Array]
) -> list[pa.RecordBatch]:
    """Return a batch for each part, with memory of its own; all parts are read together."""
    tasks, order = _tasks_of_offsets(snapshot, plan, np.concatenate(parts))
    return _gather_in_parts(snapshot, plan, tasks, order, [len(part) for part in parts])


def _tasks_of_offsets(
    snapshot: Snapshot, plan: TakePlan, offsets: Int64Array
) -> tuple[list[TakeTask], Int64Array | None]:
    """Return the rows of each fragment touched, and the order of all these rows; None: as they are."""
    ends = live_ends(snapshot)
    distinct, order = _sorted(offsets)
    _check_sorted(distinct, offsets, int(ends[-1]) if len(ends) else 0, "table")
    tasks = []
    runs = _runs(places(ends, distinct, behind=True))
    if len(runs) > 1 and snapshot.is_remote:
        plan.open(snapshot, [snapshot.manifest.fragments[number] for number, _, _ in runs])
    for number, low, high in runs:
        source = plan.of(snapshot, snapshot.manifest.fragments[number])
        inside = distinct[low:high] - (ends[number - 1] if number else 0)
        tasks.append(TakeTask(source, source.live.to_physical(inside)))
    return tasks, order


def take_fragment_offsets(
    snapshot: Snapshot, plan: TakePlan, fragment: Fragment, offsets: Int64Array
) -> pa.RecordBatch:
    """Return what `read_fragment_offsets` does, as a batch."""
    return read_fragment_offsets(snapshot, plan, fragment, offsets).batch()


def read_fragment_offsets(
    snapshot: Snapshot, plan: TakePlan, fragment: Fragment, offsets: Int64Array
) -> TakenRows:
    """Return the rows at offsets among one fragment's live rows, in the order asked."""
    source = plan.of(snapshot, fragment)
    distinct, order = _sorted(offsets)
    _check_sorted(distinct, offsets, source.live.count, f"fragment {fragment.id}")
    task = TakeTask(source, source.live.to_physical(distinct))
    return _gather(snapshot, plan, [task] if len(distinct) else [], order)


def take_addresses(snapshot: Snapshot, plan: TakePlan, addresses: UInt64Array) -> pa.RecordBatch:
    """Return what `read_addresses` does, as a batch."""
    return read_addresses(snapshot, plan, addresses).batch()


def read_addresses(snapshot: Snapshot, plan: TakePlan, addresses: UInt64Array) -> TakenRows:
    """Return the rows at row addresses, in the order asked; deleted rows are left out.

    Raises OutOfRangeError if an address names no fragment, or no row of it, and FormatError if it names
    two: nobody knows which is meant.
    """
    tasks, order, dead = _tasks_of_addresses(snapshot, plan, addresses)
    if len(dead) and order is not None:
        order = _without(dead, order)
    return _gather(snapshot, plan, tasks, order)


def take_live_addresses_in_parts(
    snapshot: Snapshot, plan: TakePlan, parts: Sequence[UInt64Array]
) -> list[pa.RecordBatch]:
    """Return a batch for each part, with memory of its own; all parts are read together.

    Raises what `take_addresses` does, and OutOfRangeError for an address of a deleted row.
    """
    tasks, order, dead = _tasks_of_addresses(snapshot, plan, np.concatenate(parts))
    if len(dead):
        message = f"{len(dead)} of the row addresses are those of deleted rows"
        raise OutOfRangeError(message)
    return _gather_in_parts(snapshot, plan, tasks, order, [len(part) for part in parts])


def _tasks_of_addresses(
    snapshot: Snapshot, plan: TakePlan, addresses: UInt64Array
) -> tuple[list[TakeTask], Int64Array | None, Int64Array]:
    """Return what `_tasks_of_offsets` does, and which of the distinct rows are deleted: tasks are without them."""
    fragments = snapshot.manifest.fragments
    numbers = fragment_numbers(snapshot)
    distinct, order = _sorted(addresses)
    inside = (distinct & _OFFSET).astype(np.int64)
    tasks = []
    dead = [np.empty(0, np.int64)]
    runs = _runs(distinct >> _OFFSET_BITS)
    if len(runs) > 1 and snapshot.is_remote:
        known = [numbers.get(number, TWICE) for number, _, _ in runs]
        plan.open(snapshot, [fragments[place] for place in known if place != TWICE])
    for number, low, high in runs:
        if number not in numbers:
            message = (
                f"row address {int(distinct[low])} names fragment {number}, which is not there"
            )
            raise OutOfRangeError(message)
        place = numbers[number]
        if place == TWICE:
            message = f"two fragments have the id {number}; write the rows into a new table"
            raise FormatError(message)
        source = plan.of(snapshot, fragments[place])
        physical = inside[low:high]
        if physical[-1] >= source.live.physical_rows:
            check_offsets(physical, source.live.physical_rows, f"fragment {number}")
        if len(source.live.deleted):
            is_dead = source.live.is_deleted(physical)
            dead.append(is_dead.nonzero()[0] + low)
            physical = physical[~is_dead]
        tasks.append(TakeTask(source, physical))
    return tasks, order, np.concatenate(dead)


def _without(gone: Int64Array, order: Int64Array) -> Int64Array:
    """Return an order of rows, possibly with repetitions, without those of some numbers."""
    alive = np.ones(order.max(initial=-1) + 1, np.bool_)
    alive[gone] = False
    found: Int64Array = (np.cumsum(alive) - 1)[order[alive[order]]]
    return found


def take_row_ids(snapshot: Snapshot, plan: TakePlan, row_ids: UInt64Array) -> pa.RecordBatch:
    """Return what `read_row_ids` does, as a batch."""
    return read_row_ids(snapshot, plan, row_ids).batch()


def read_row_ids(snapshot: Snapshot, plan: TakePlan, row_ids: UInt64Array) -> TakenRows:
    """Return the rows of the given ids, in the order asked; ids of no live row are left out."""
    if not snapshot.manifest.has_stable_row_ids:
        return read_addresses(snapshot, plan, row_ids)
    addresses = np.empty(0, np.uint64)
    known = np.empty(0, np.uint64)
    for fragment in snapshot.manifest.fragments:
        reader = FragmentReader(snapshot, fragment)
        ids = snapshot.row_ids(fragment, reader.physical_rows())
        at = np.flatnonzero(np.isin(ids, row_ids)).astype(np.int64)
        if not len(at):
            continue
        at = at[~reader.live_rows().is_deleted(at)]
        known = np.concatenate([known, ids[at]])
        addresses = np.concatenate([addresses, row_addresses(fragment.id, at)])
    order = np.argsort(known, kind="stable")
    known, addresses = known[order], addresses[order]
    wanted = row_ids[np.isin(row_ids, known)]
    found = addresses[np.searchsorted(known, wanted)]
    return read_addresses(snapshot, plan, found)


def take_chosen(snapshot: Snapshot, plan: TakePlan, tasks: Sequence[ScanTask]) -> list[Chunks]:
    """Return the columns of a plan for the rows that indices chose of tasks: few, of files that are mapped."""
    taken = []
    for task in tasks:
        if task.chosen is None:
            message = "rows are taken where they are chosen one by one"
            raise ValueError(message)
        source = plan.of(snapshot, task.fragment)
        offsets = task.chosen.offsets[task.start : task.end]
        taken.append(TakeTask(source, source.live.to_physical(offsets)))
    pieces = _read_mapped(snapshot, plan, taken)
    numbers = range(len(plan.projection.columns))
    return [[chunk for piece in pieces for chunk in piece[number]] for number in numbers]


def check_offsets(offsets: Int64Array, rows: int, of: str) -> None:
    """Raise OutOfRangeError unless all offsets are in ``[0, rows)``."""
    if len(offsets) and (offsets.min() < 0 or offsets.max() >= rows):
        wrong = offsets[(offsets < 0) | (offsets >= rows)]
        message = f"row {int(wrong[0])} is asked for, but the {of} has {rows} rows"
        raise OutOfRangeError(message)


def _check_sorted(distinct: Int64Array, offsets: Int64Array, rows: int, of: str) -> None:
    """Raise what `check_offsets` does, of offsets that are sorted, as `_sorted` does it: those below 0 are first or last."""
    if len(distinct) and not (distinct[0] >= 0 and 0 <= distinct[-1] < rows):
        check_offsets(offsets, rows, of)


def _sorted(
    numbers: npt.NDArray[AnyInteger],
) -> tuple[npt.NDArray[AnyInteger], Int64Array | None]:
    """Return numbers sorted and distinct, and the place of each among them; None: in order."""
    if len(numbers) <= 1 or (numbers[1:] > numbers[:-1]).all():
        return numbers, None
    if len(numbers) <= FEW_ROWS:
        few, place = sort_few(numbers.view(np.uint64))
        return few.view(numbers.dtype), place
    order = numbers.argsort()
    ascending = numbers[order]
    is_new = run_starts(ascending)
    place = np.empty(len(numbers), np.int64)
    place[order] = is_new.cumsum() - 1
    return ascending[is_new], place


def _runs(owner: npt.NDArray[AnyInteger]) -> list[tuple[int, int, int]]:
    """Return (owner, first, end) of each run of equal values in a sorted array."""
    count = len(owner)
    if not count:
        return []
    if owner[0] == owner[-1]:
        return [(int(owner[0]), 0, count)]
    borders: list[int] = (np.flatnonzero(owner[1:] != owner[:-1]) + 1).tolist()
    starts, ends = [0, *borders], [*borders, count]
    return [(int(owner[low]), low, high) for low, high in zip(starts, ends, strict=True)]


def _gather(
    snapshot: Snapshot, plan: TakePlan, tasks: Sequence[TakeTask], order: Int64Array | None
) -> TakenRows:
    """Read all tasks and put the rows into order; ``order`` indexes the tasks' rows in sequence."""
    schema = plan.schema
    rows = sum([len(task.physical) for task in tasks]) if order is None else len(order)
    if not plan.projection.columns:
        return _shown(plan, TakenRows(schema, [], rows))
    columns = _read_columns(snapshot, plan, tasks, rows)
    if order is None:
        arrays = [one_array(chunks) for chunks in columns]
    else:
        arrays = [in_order(chunks, order) for chunks in columns]
    return _shown(plan, TakenRows(schema, arrays, rows))


def _shown(plan: TakePlan, taken: TakenRows) -> TakenRows:
    """Return the columns that were asked for."""
    if plan.computed is None:
        return taken
    shown = plan.show(taken.batch())
    return TakenRows(shown.schema, shown.columns, shown.num_rows)


def _gather_in_parts(
    snapshot: Snapshot,
    plan: TakePlan,
    tasks: Sequence[TakeTask],
    order: Int64Array | None,
    counts: Sequence[int],
) -> list[pa.RecordBatch]:
    """Read all tasks and return batches of so many rows each, in order, each with memory of its own."""
    if order is None or not plan.projection.columns:
        return exact_parts(_gather(snapshot, plan, tasks, order).batch(), counts)
    orders = np.split(order, np.cumsum(counts)[:-1])
    columns = [
        in_orders(chunks, orders) for chunks in _read_columns(snapshot, plan, tasks, len(order))
    ]
    batches = map(list, zip(*columns, strict=True))
    return [plan.show(pa.RecordBatch.from_arrays(arrays, schema=plan.schema)) for arrays in batches]


def _read_columns(
    snapshot: Snapshot, plan: TakePlan, tasks: Sequence[TakeTask], rows: int
) -> list[Chunks]:
    """Return the rows of all tasks, in sequence: the chunks of each column, one at least."""
    if _are_few(tasks, rows):
        pieces = _read_mapped(snapshot, plan, tasks)
    else:
        pieces = map_all(lambda task: _read_task(snapshot, plan, task), tasks, snapshot.pool_spec)
    if len(pieces) == 1:
        columns = pieces[0]
    else:
        numbers = range(len(plan.projection.columns))
        columns = [[chunk for piece in pieces for chunk in piece[number]] for number in numbers]
    if all(columns):
        return columns
    pairs = zip(columns, plan.schema.types, strict=True)
    return [chunks or [pa.nulls(0, kind)] for chunks, kind in pairs]


def _are_few(tasks: Sequence[TakeTask], rows: int) -> bool:
    """Tell whether rows are better read by this thread alone: few of mapped files."""
    if rows > MORE_ROWS or not all(task.source.is_mapped for task in tasks):
        return False
    return rows <= FEW_ROWS or sum(map(_about_bytes, tasks)) <= FEW_BYTES


def _about_bytes(task: TakeTask) -> int:
    """Return how many bytes of the data files the rows have, all columns taken together."""
    size = sum(ref.size_bytes or 0 for ref in task.source.fragment.files)
    return size * len(task.physical) // max(task.source.live.physical_rows, 1)


def _read_mapped(
    snapshot: Snapshot, plan: TakePlan, tasks: Sequence[TakeTask]
) -> list[list[Chunks]]:
    """Read tasks whose files are mapped: all together if that is possible."""
    touched = [task for task in tasks if len(task.physical)] if len(tasks) > 1 else []
    if touched and plan.tops is not None:
        rows = FileRows.at([task.physical for task in touched])
        read = read_together([task.source.columns for task in touched], rows)
        if read is not None:
            return [[read[top] for top in plan.tops]]
    return [_read_task(snapshot, plan, task) for task in tasks]


def _read_task(snapshot: Snapshot, plan: TakePlan, task: TakeTask) -> list[Chunks]:
    read = task.source.columns.read(Rows.at(task.physical))
    if plan.tops is not None:
        return [read[top] for top in plan.tops]
    place = Place(snapshot, task.source.fragment, task.source.live, task.physical)
    return show_columns(plan.projection, read, place)


def take_stored(query: BoundQuery, addresses: UInt64Array) -> list[TakenRows]:
    """Return those columns of a query that are stored, for rows at addresses, in the order of these; one part at least."""
    snapshot = query.scan.snapshot
    plan = plan_projection(snapshot, query.scan.projection)
    return take_batches(partial(read_addresses, snapshot, plan), addresses)
