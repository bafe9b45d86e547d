"""From the fields that were read to the columns that are shown.

Fields inside structs are pulled out, and the computed columns are made:

==============  ==================================================================================
``_rowaddr``    ``fragment_id << 32 | physical offset``: where the row lies in this version
``_rowid``      its name: the same number, or, in a table with stable row ids, one that stays
``_rowoffset``  its place among the live rows of the table
==============  ==================================================================================

``_row_created_at_version`` and ``_row_last_updated_at_version`` are kept for tables with stable row
ids; in all others they are 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.memory import allocate
from pennon.core.units import FragmentId, RowOffset, row_address
from pennon.encoding.rows import Rows
from pennon.scan.deletion_mask import LiveRows
from pennon.scan.projection import MetaColumn, OutputColumn, Projection
from pennon.scan.read.arrays import bool_array, uint64_array
from pennon.scan.read.fragment_reader import Chunks, FragmentReader
from pennon.scan.read.fragment_run import FragmentRun
from pennon.scan.read.tasks import live_row_count
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import Fragment

UInt64Array: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """The positions of rows in a fragment; ``live`` tells which of its rows are alive.

    ``dead``: the rows that are deleted, if they are shown nevertheless; they have no ids.
    """

    snapshot: Snapshot
    fragment: Fragment | FragmentRun
    live: LiveRows
    physical: Int64Array
    dead: Int64Array | None = None


def show_columns(
    projection: Projection, read: Sequence[Chunks], place: Place | None
) -> list[Chunks]:
    """Return the chunks of each output column, given those of each field that was read.

    ``place`` may be None where no computed column is shown.
    """
    shown = []
    for column in projection.columns:
        if column.meta is not None and place is not None:
            shown.append([computed_column(column.meta, place)])
        else:
            shown.append([_pull_out(chunk, column) for chunk in read[column.top]])
    return shown


def _pull_out(chunk: pa.Array[Any], column: OutputColumn) -> pa.Array[Any]:
    if not column.path:
        return chunk
    from pyarrow.compute import struct_field  # noqa: PLC0415 - saves 50 ms: most scans need none

    return struct_field(chunk, list(column.path))


def computed_column(meta: MetaColumn, place: Place) -> pa.Array[Any]:
    """Return one computed column, uint64."""
    values = _values(meta, place)
    if place.dead is None:
        return uint64_array(values)
    is_dead = bool_array(np.isin(place.physical, place.dead))
    from pyarrow.compute import if_else  # noqa: PLC0415 - as above

    return if_else(is_dead, pa.scalar(None, pa.uint64()), uint64_array(values))


def _values(meta: MetaColumn, place: Place) -> UInt64Array:
    fragment = place.fragment
    if isinstance(fragment, FragmentRun):
        return _values_of_run(meta, place, fragment)
    if meta is MetaColumn.ROW_OFFSET:
        live = place.live if place.dead is None else replace(place.live, deleted=place.dead)
        before = _live_rows_in_front(place.snapshot, fragment)
        return (live.to_live(place.physical) + before).astype(np.uint64)
    if meta in {MetaColumn.CREATED_AT, MetaColumn.UPDATED_AT}:
        return _versions(meta, place, fragment)
    if meta is MetaColumn.ROW_ID and place.snapshot.manifest.has_stable_row_ids:
        return _stable_ids(place.snapshot, fragment)[place.physical]
    return row_addresses(fragment.id, place.physical)


def _values_of_run(meta: MetaColumn, place: Place, run: FragmentRun) -> UInt64Array:
    """Return what `_values` gives for the rows of each fragment."""
    if meta is MetaColumn.ROW_OFFSET:
        before = _live_rows_in_front(place.snapshot, run.fragments[0])
        return (place.live.to_live(place.physical) + before).astype(np.uint64)
    numbers, rows = run.parts(Rows.at(place.physical))
    if meta is MetaColumn.ROW_ADDRESS or (
        meta is MetaColumn.ROW_ID and not place.snapshot.manifest.has_stable_row_ids
    ):
        firsts = (run.ids[numbers] << 32).view(np.uint64)
        return rows.starts.view(np.uint64) + np.repeat(firsts, np.diff(rows.cuts))
    found = [np.empty(0, np.uint64)]
    for number, low, high in zip(numbers, rows.cuts[:-1], rows.cuts[1:], strict=True):
        mine = replace(place, fragment=run.fragments[number], physical=rows.starts[low:high])
        found.append(_values(meta, mine))
    return np.concatenate(found)


def _stable_ids(snapshot: Snapshot, fragment: Fragment) -> UInt64Array:
    rows = FragmentReader(snapshot, fragment).physical_rows()
    return snapshot.row_ids(fragment, rows)


def _versions(meta: MetaColumn, place: Place, fragment: Fragment) -> UInt64Array:
    """Return the version of each row; the first version if it is not stored."""
    created, updated = fragment.created_at_versions, fragment.last_updated_at_versions
    sequence = created if meta is MetaColumn.CREATED_AT else updated
    if sequence is None:
        return np.ones(len(place.physical), np.uint64)
    rows = FragmentReader(place.snapshot, fragment).physical_rows()
    return place.snapshot.row_versions(sequence, rows)[place.physical]


def row_addresses(fragment: FragmentId, physical: Int64Array) -> UInt64Array:
    """Return the address of each physical offset, which may be the same array."""
    offsets, first = physical.view(np.uint64), row_address(fragment, RowOffset(0))
    if not first:
        return offsets
    found: UInt64Array = allocate(len(offsets), np.uint64)
    return np.add(offsets, np.uint64(first), out=found)


def _live_rows_in_front(snapshot: Snapshot, fragment: Fragment) -> int:
    """Return how many live rows the fragments in front of one have."""
    rows = 0
    for each in snapshot.manifest.fragments:
        if each.id == fragment.id:
            break
        rows += live_row_count(snapshot, each)
    return rows
