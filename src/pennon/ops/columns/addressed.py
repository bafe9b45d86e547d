"""New columns whose rows come with the addresses of the table's rows that they are for.

Somebody else computed them, by an expression or a join; here they come in the order of the addresses::

    _rowaddr   new columns
    (0, 0)     'x'
    (0, 3)     'y'             -> rows 1 and 2 of fragment 0 get NULL
    (2, 0)     'z'             -> the file of fragment 0 is complete; that of fragment 2 begins

Each fragment gets one file, written while its rows come.  Rows that are deleted by now are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import FragmentId
from pennon.encoding.selection import take
from pennon.errors import ArgumentError, FormatError, MatchError
from pennon.ops.columns.add import AddPlan, plan_column_files
from pennon.ops.columns.column_file import ColumnFiles
from pennon.ops.columns.merge import check_nulls
from pennon.ops.columns.task import rows_at_once
from pennon.scan.deletion_mask import LiveRows
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.run.take import check_offsets
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.version import V0_1
from pennon.table.apply.rows import by_id
from pennon.table.fragment import Fragment

Piece: TypeAlias = tuple[FragmentId, Int64Array, pa.RecordBatch]
"""Rows of one fragment: their offsets, and their new columns."""

_OFFSET_BITS: Final = 32
_OFFSETS: Final = (1 << _OFFSET_BITS) - 1


@dataclass(frozen=True, slots=True)
class AddressedTask:
    """Writes new columns of fragments whose rows come with their addresses; it pickles.

    ``is_whole``: every living row of a fragment must come; else those that do not get NULL.
    """

    snapshot: Snapshot
    files: ColumnFiles
    is_whole: bool

    @property
    def values(self) -> pa.Schema:
        """Return the new columns."""
        return schema_to_arrow(self.files.schema)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Fragment]:
        """Yield each fragment with one file more: of batches of the address, then of `values`.

        Raises MatchError for a row that comes twice, ArgumentError for the address of a fragment that
        the table does not have, FormatError for rows that are missing or out of order.
        """
        fragments = by_id(self.snapshot.manifest.fragments)
        for owner, pieces in groupby(_pieces(batches), itemgetter(0)):
            if owner not in fragments:
                message = (
                    f"there are rows for fragment {owner}, which version "
                    f"{self.snapshot.manifest.version} does not have; take the addresses of that version"
                )
                raise ArgumentError(message)
            yield self.write(fragments[owner], pieces)

    def write(self, fragment: Fragment, pieces: Iterable[Piece]) -> Fragment:
        """Write the columns of a fragment; without a row all are NULL."""
        reader = FragmentReader(self.snapshot, fragment)
        live = reader.live_rows()
        ref = self.files.write(reader, self._filled(fragment, live, pieces))
        return replace(fragment, files=(*fragment.files, ref), physical_rows=live.physical_rows)

    def _filled(
        self, fragment: Fragment, live: LiveRows, pieces: Iterable[Piece]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the columns of all living rows."""
        done, step = 0, rows_at_once(self.values)
        for _, offsets, batch in pieces:
            check_offsets(offsets, live.physical_rows, f"fragment {fragment.id}")
            alive = ~live.is_deleted(offsets)
            places, rows = live.to_live(offsets[alive]), np.flatnonzero(alive)
            if not len(places):
                continue
            end = int(places[-1]) + 1
            if self.is_whole and end - done != len(places):
                raise _incomplete(fragment, live)
            for start in range(done, end, step):
                stop = min(start + step, end)
                low, high = np.searchsorted(places, [start, stop])
                yield self._spread(batch, places[low:high] - start, rows[low:high], stop - start)
            done = end
        if self.is_whole and done != live.count:
            raise _incomplete(fragment, live)
        for start in range(done, live.count, step):
            count = min(step, live.count - start)
            nothing = np.empty(0, np.int64)
            yield self._spread(None, nothing, nothing, count)

    def _spread(
        self, batch: pa.RecordBatch | None, places: Int64Array, rows: Int64Array, count: int
    ) -> pa.RecordBatch:
        """Return ``count`` rows: those of a batch at their places, NULLs at the others."""
        if batch is not None and len(rows) == count == batch.num_rows:
            return batch
        schema = self.values
        if batch is None:
            columns = {field.name: pa.nulls(count, field.type) for field in schema}
        else:
            chosen = np.zeros(count, np.int64)
            is_null = np.ones(count, np.bool_)
            chosen[places], is_null[places] = rows, False
            numbers = pa.array(chosen, mask=is_null)
            columns = {field.name: take(batch.column(field.name), numbers) for field in schema}
        if self.files.version == V0_1 and len(places) != count:
            check_nulls(columns, self.files.version)
        arrays: list[Any] = list(columns.values())
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def plan_addressed(
    snapshot: Snapshot, arrow: pa.Schema, *, is_whole: bool
) -> tuple[AddPlan, AddressedTask]:
    """Plan to add columns whose rows will come with their addresses.

    Raises InvalidSchemaError for names, UnsupportedError for types and file versions.
    """
    plan, files = plan_column_files(snapshot, arrow)
    return plan, AddressedTask(snapshot, files, is_whole)


def completed(task: AddressedTask, written: Iterable[Fragment]) -> list[Fragment]:
    """Return all fragments of the version: the written ones, and those that no row was sent for.

    These need no file, for columns that lie in none are NULL; in file version 0.1 they get one.
    """
    known = by_id(written)
    found = []
    for fragment in task.snapshot.manifest.fragments:
        if fragment.id in known:
            found.append(known[fragment.id])
        elif task.is_whole and FragmentReader(task.snapshot, fragment).live_rows().count:
            raise _incomplete(fragment, FragmentReader(task.snapshot, fragment).live_rows())
        elif task.files.version == V0_1:
            found.append(task.write(fragment, ()))
        else:
            found.append(fragment)
    return found


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    """Yield rows cut at the borders of fragments; raises where addresses do not ascend."""
    last = -1
    for batch in batches:
        if not batch.num_rows:
            continue
        if batch.column(0).null_count:
            message = f"{batch.column(0).null_count} rows have no address"
            raise ArgumentError(message)
        addresses = batch.column(0).to_numpy().astype(np.int64)
        _check_ascend(np.concatenate([[last], addresses]))
        last = int(addresses[-1])
        owners = addresses >> _OFFSET_BITS
        borders = np.flatnonzero(np.diff(owners)) + 1
        columns = batch.select(range(1, batch.num_columns))
        for start, end in zip([0, *borders], [*borders, len(addresses)], strict=True):
            offsets = addresses[start:end] & _OFFSETS
            yield FragmentId(int(owners[start])), offsets, columns.slice(start, end - start)


def _check_ascend(addresses: Int64Array) -> None:
    steps = np.diff(addresses)
    if (steps < 0).any():
        message = "rows of new columns do not come in the order of their addresses"
        raise FormatError(message)
    again = np.flatnonzero(steps == 0)
    if len(again):
        address = int(addresses[again[0]])
        message = (
            f"row {address & _OFFSETS} of fragment {address >> _OFFSET_BITS} gets several values; each row "
            "gets one"
        )
        raise MatchError(message)


def _incomplete(fragment: Fragment, live: LiveRows) -> FormatError:
    message = f"new columns need a row for each of {live.count} rows of fragment {fragment.id}, and some did not come"
    return FormatError(message)
