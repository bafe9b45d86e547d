"""Taking single rows: by their place in the table, in a fragment, or by their address or id.

Any order, and any row more than once.  The rows wanted are grouped by fragment, sorted and made
distinct; each fragment is read once, all its columns in lockstep; what was read is then put into
the order asked, in one go over all fragments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.encoding.rows import Rows
from pennon.errors import OutOfRangeError
from pennon.ranges import Int64Array
from pennon.scan.arrays import int64_array
from pennon.scan.batches import empty_batch
from pennon.scan.columns import Place, UInt64Array, row_addresses, show_columns
from pennon.scan.fragment_reader import FragmentReader, one_array
from pennon.scan.live_rows import LiveRows
from pennon.scan.plan import live_row_count
from pennon.scan.projection import MetaColumn, Projection
from pennon.scan.snapshot import Snapshot
from pennon.scan.threads import map_all
from pennon.table.manifest import Fragment


@dataclass(frozen=True, slots=True, eq=False)
class TakeTask:
    """The rows of one fragment at sorted, distinct physical offsets."""

    fragment: Fragment
    live: LiveRows
    physical: Int64Array


def take_batches(
    take: Callable[[Any], pa.RecordBatch], numbers: npt.NDArray[Any]
) -> list[pa.RecordBatch]:
    """Return the rows of ``numbers`` in one batch, or in several if one cannot hold them.

    An array of text or lists ends at 2 GiB, whatever the type of the column allows in a table.
    """
    try:
        return [take(numbers)]
    except pa.ArrowInvalid:
        half = len(numbers) // 2
        if not half:
            raise
    return [*take_batches(take, numbers[:half]), *take_batches(take, numbers[half:])]


def take_offsets(snapshot: Snapshot, projection: Projection, offsets: Int64Array) -> pa.RecordBatch:
    """Return the rows at offsets among the table's live rows, in the order asked.

    Raises OutOfRangeError for an offset outside the table.
    """
    fragments = snapshot.manifest.fragments
    counts = [live_row_count(snapshot, fragment) for fragment in fragments]
    ends = np.cumsum(np.array(counts, np.int64))
    check_offsets(offsets, int(ends[-1]) if len(ends) else 0, "table")
    distinct, order = np.unique(offsets, return_inverse=True)
    owner = np.searchsorted(ends, distinct, side="right")
    tasks = []
    for number, low, high in _runs(owner):
        live = FragmentReader(snapshot, fragments[number]).live_rows()
        inside = distinct[low:high] - (int(ends[number]) - counts[number])
        tasks.append(TakeTask(fragments[number], live, live.to_physical(inside)))
    return _gather(snapshot, projection, tasks, order)


def take_fragment_offsets(
    snapshot: Snapshot, projection: Projection, fragment: Fragment, offsets: Int64Array
) -> pa.RecordBatch:
    """Return the rows at offsets among one fragment's live rows, in the order asked."""
    live = FragmentReader(snapshot, fragment).live_rows()
    check_offsets(offsets, live.count, f"fragment {fragment.id}")
    distinct, order = np.unique(offsets, return_inverse=True)
    task = TakeTask(fragment, live, live.to_physical(distinct))
    return _gather(snapshot, projection, [task] if len(distinct) else [], order)


def take_addresses(
    snapshot: Snapshot, projection: Projection, addresses: UInt64Array
) -> pa.RecordBatch:
    """Return the rows at row addresses, in the order asked; deleted rows are left out.

    Raises OutOfRangeError if an address names no fragment, or no row of it.
    """
    by_id = {int(fragment.id): fragment for fragment in snapshot.manifest.fragments}
    distinct, order = np.unique(addresses, return_inverse=True)
    owner = (distinct >> np.uint64(32)).astype(np.int64)
    inside = (distinct & np.uint64(0xFFFFFFFF)).astype(np.int64)
    tasks = []
    alive = np.ones(len(distinct), np.bool_)
    for number, low, high in _runs(owner):
        if number not in by_id:
            message = (
                f"row address {int(distinct[low])} names fragment {number}, which is not there"
            )
            raise OutOfRangeError(message)
        live = FragmentReader(snapshot, by_id[number]).live_rows()
        check_offsets(inside[low:high], live.physical_rows, f"fragment {number}")
        alive[low:high] = ~live.is_deleted(inside[low:high])
        wanted = inside[low:high][alive[low:high]]
        tasks.append(TakeTask(by_id[number], live, wanted))
    renumbered = np.cumsum(alive) - 1
    return _gather(snapshot, projection, tasks, renumbered[order[alive[order]]])


def take_row_ids(
    snapshot: Snapshot, projection: Projection, row_ids: UInt64Array
) -> pa.RecordBatch:
    """Return the rows of the given ids, in the order asked; ids of no live row are left out."""
    if not snapshot.manifest.has_stable_row_ids:
        return take_addresses(snapshot, projection, row_ids)
    addresses = np.empty(0, np.uint64)
    known = np.empty(0, np.uint64)
    for fragment in snapshot.manifest.fragments:
        live = FragmentReader(snapshot, fragment).live_rows()
        ids = snapshot.row_ids(fragment, live.physical_rows)
        at = np.flatnonzero(np.isin(ids, row_ids)).astype(np.int64)
        at = at[~live.is_deleted(at)]
        known = np.concatenate([known, ids[at]])
        addresses = np.concatenate([addresses, row_addresses(fragment.id, at)])
    order = np.argsort(known, kind="stable")
    known, addresses = known[order], addresses[order]
    wanted = row_ids[np.isin(row_ids, known)]
    found = addresses[np.searchsorted(known, wanted)]
    return take_addresses(snapshot, projection, found)


def check_offsets(offsets: Int64Array, rows: int, of: str) -> None:
    """Raise OutOfRangeError unless all offsets are in ``[0, rows)``."""
    wrong = offsets[(offsets < 0) | (offsets >= rows)]
    if len(wrong):
        message = f"row {int(wrong[0])} is asked for, but the {of} has {rows} rows"
        raise OutOfRangeError(message)


def _runs(owner: Int64Array) -> list[tuple[int, int, int]]:
    """Return (owner, first, end) of each run of equal values in a sorted array."""
    if not len(owner):
        return []
    borders = np.flatnonzero(np.diff(owner)) + 1
    starts = [0, *borders.tolist()]
    ends = [*borders.tolist(), len(owner)]
    return [(int(owner[low]), low, high) for low, high in zip(starts, ends, strict=True)]


def _gather(
    snapshot: Snapshot, projection: Projection, tasks: Sequence[TakeTask], order: Int64Array
) -> pa.RecordBatch:
    """Read all tasks and put the rows into order; ``order`` indexes the tasks' rows in sequence."""
    schema = projection.arrow
    if not projection.columns:
        return empty_batch(schema, len(order))
    pieces = map_all(lambda task: _read_task(snapshot, projection, task), list(tasks))
    in_order = len(order) == 0 or bool((np.diff(order) == 1).all())
    indices = None if in_order else int64_array(order)
    arrays = []
    for number, field in enumerate(schema):
        chunks = [chunk for piece in pieces for chunk in piece[number]]
        whole = one_array(chunks) if chunks else pa.nulls(0, field.type)
        arrays.append(whole if indices is None else whole.take(indices))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _read_task(
    snapshot: Snapshot, projection: Projection, task: TakeTask
) -> list[list[pa.Array[Any]]]:
    reader = FragmentReader(snapshot, task.fragment)
    read = reader.read(projection.read.fields, Rows.at(task.physical))
    live = _live_offsets(projection, task)
    place = Place(snapshot, task.fragment, task.physical, live)
    return show_columns(projection, read, place)


def _live_offsets(projection: Projection, task: TakeTask) -> Int64Array:
    if MetaColumn.ROW_OFFSET not in projection.metas:
        return task.physical
    return task.physical - np.searchsorted(task.live.deleted, task.physical)
