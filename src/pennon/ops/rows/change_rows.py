"""Rows that come with what becomes of them: their addresses, and new values for some of their columns.

Somebody else found them, by a join or a condition; here they come in the order of their addresses, those
that are new to the table last::

    _rowaddr   clause   value columns
    (0, 3)     0        'x'             -> row 3 of fragment 0 goes, a copy with 'x' is written
    (0, 7)     1        NULL            -> row 7 goes
    (2, 0)     0        'y'             -> the deletion file of fragment 0 is complete; fragment 2 begins
    NULL       2        'z'             -> a new row

One pass writes the deletion files and the rows; columns that no clause gives a value are read of the old
row by its address.  Memory holds a piece of rows, and 8 bytes for each row of a fragment that goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import FragmentId
from pennon.encoding.selection import keep_rows, take
from pennon.errors import FormatError, MatchError
from pennon.ops.convert import without_hidden_values
from pennon.ops.rows.changed_wire import Changed, parse_changed, serialize_changed
from pennon.ops.rows.deletion_vectors import Removal, remove_rows
from pennon.ops.rows.find_rows import Rows
from pennon.ops.rows.rewrite_rows import Moved, OldRows, with_ids
from pennon.ops.write import WriteMode, WriteTask, plan_write, write_fragments
from pennon.scan.projection import Projection, plan_take_projection
from pennon.scan.read.batches import empty_batch
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.project import quoted
from pennon.schema.version import V0_1
from pennon.table.apply.rows import by_id

Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
_NEW: Final = (1 << 63) - 1
"""Stands for the address of a row that has none: it comes last."""


class Change(Enum):
    """The action of a clause on a row."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True)
class Clause:
    """One way in which rows change; ``columns`` are those that it gives a value.

    An updated row keeps its other columns, those of a new row are NULL.
    """

    change: Change
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeTask:
    """A task that changes rows of one version; it pickles.

    ``once``: a row that comes twice is deleted once; else it is an error.
    """

    to_bytes = staticmethod(serialize_changed)
    from_bytes = staticmethod(parse_changed)

    snapshot: Snapshot
    clauses: tuple[Clause, ...]
    write: WriteTask
    once: bool = False

    @property
    def values(self) -> pa.Schema:
        """Return the columns that some clause gives a value, as the table has them."""
        given = {name for clause in self.clauses for name in clause.columns}
        arrow = schema_to_arrow(self.write.schema)
        return pa.schema([field for field in arrow if field.name in given])

    def run(self, batches: Iterable[pa.RecordBatch]) -> Changed:
        """Change the rows of batches: the address, the clause's number, then the columns of `values`.

        Raises MatchError if a row comes twice, SchemaMismatchError for a NULL in a column that is
        never NULL.
        """
        stream = _Stream(self)
        rows = stream.rows(batches)
        if self.write.version == V0_1:
            rows = map(without_hidden_values, rows)
        new = write_fragments(self.write, rows)
        if stream.kept and self.snapshot.manifest.has_stable_row_ids:
            new = with_ids(self.snapshot, new, stream.kept)
        return Changed(tuple(stream.removals), tuple(new), tuple(map(int, stream.counts)))


def plan_change(snapshot: Snapshot, clauses: Sequence[Clause], *, once: bool = False) -> ChangeTask:
    """Plan to change rows.  Raises UnsupportedError if files of the table's version are not written."""
    manifest = snapshot.manifest
    arrow = schema_to_arrow(manifest.schema)
    plan = plan_write(snapshot.store, arrow, WriteMode.APPEND, base=manifest)
    return ChangeTask(
        snapshot, tuple(clauses), replace(plan.task, schema=manifest.schema), once=once
    )


class _Stream:
    """The rows that one task changes, and what came of them so far."""

    def __init__(self, task: ChangeTask) -> None:
        self.removals: list[Removal] = []
        self.kept: list[Rows] = []
        self.counts = np.zeros(len(task.clauses), np.int64)
        self._task = task
        self._fragments = by_id(task.snapshot.manifest.fragments)
        self._schema = schema_to_arrow(task.write.schema)
        self._updates = np.array([each.change is Change.UPDATE for each in task.clauses], np.bool_)
        self._old = OldRows(task.snapshot, self._kept_columns())
        self._last = -1
        self._owner = -1
        self._going: list[Int64Array] = []

    def _kept_columns(self) -> Projection:
        """Return the columns that some updated row keeps."""
        updates = [each for each in self._task.clauses if each.change is Change.UPDATE]
        whole = reduce(
            set.intersection, (set(each.columns) for each in updates), set(self._schema.names)
        )
        names = [quoted(name) for name in self._schema.names if updates and name not in whole]
        return plan_take_projection(self._task.write.schema, names)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows to write; those that go are seen to on the way."""
        for batch in batches:
            addresses = batch.column(0).fill_null(_NEW).to_numpy().astype(np.int64)
            distinct = self._distinct(addresses)
            if not distinct.all():
                batch, addresses = keep_rows(batch, _mask(distinct)), addresses[distinct]  # noqa: PLW2901
            clauses = batch.column(1).to_numpy().astype(np.int64)
            self.counts += np.bincount(clauses, minlength=len(self.counts))
            borders = np.flatnonzero(np.diff(addresses >> 32)) + 1
            for start, end in zip([0, *borders], [*borders, len(addresses)], strict=True):
                part = slice(start, end)
                values = batch.slice(start, end - start)
                yield from self._of_fragment(addresses[part], clauses[part], values)
        self._complete()

    def _distinct(self, addresses: Int64Array) -> Flags:
        """Return which rows come for the first time."""
        if not len(addresses):
            return np.ones(0, np.bool_)
        before = np.concatenate([[self._last], addresses[:-1]])
        is_new = addresses == _NEW
        if (addresses < before).any():
            message = "rows to change do not come in the order of their addresses"
            raise FormatError(message)
        again = np.flatnonzero((addresses == before) & ~is_new)
        if len(again) and not self._task.once:
            address = int(addresses[again[0]])
            message = (
                "this merge is ambiguous: several rows of the source match one row of the table (row "
                f"{address & 0xFFFFFFFF} of fragment {address >> 32}) and change it; at most one may"
            )
            raise MatchError(message)
        self._last = int(addresses[-1])
        is_first: Flags = (addresses != before) | is_new
        return is_first

    def _of_fragment(
        self, addresses: Int64Array, clauses: Int64Array, batch: pa.RecordBatch
    ) -> Iterator[pa.RecordBatch]:
        """Yield what is to be written of rows of one fragment, or of new rows."""
        if not len(addresses):
            return
        if addresses[0] == _NEW:
            yield self._assembled(None, batch, clauses)
            return
        owner = int(addresses[0] >> 32)
        if owner != self._owner:
            self._complete()
            self._owner = owner
        offsets = addresses & 0xFFFFFFFF
        self._going.append(offsets)
        updated = self._updates[clauses]
        if updated.any():
            rows = Rows(self._fragments[FragmentId(owner)], offsets[updated])
            yield from self._updated(rows, keep_rows(batch, _mask(updated)), clauses[updated])

    def _updated(
        self, rows: Rows, batch: pa.RecordBatch, clauses: Int64Array
    ) -> Iterator[pa.RecordBatch]:
        self.kept.append(rows)
        start = 0
        for piece in Moved(rows).cut(self._old.rows_at_once(Moved(rows))):
            for old in self._read(piece):
                part = slice(start, start + old.num_rows)
                yield self._assembled(old, batch.slice(start, old.num_rows), clauses[part])
                start += old.num_rows

    def _read(self, piece: Moved) -> Iterator[pa.RecordBatch]:
        if not self._old.names:
            return iter([empty_batch(pa.schema([]), len(piece))])
        return self._old.read(piece)

    def _assembled(
        self, old: pa.RecordBatch | None, batch: pa.RecordBatch, clauses: Int64Array
    ) -> pa.RecordBatch:
        """Return whole rows: values where the row's clause gives some, the others of ``old``."""
        arrays = [self._column(field, old, batch, clauses) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=_types_of(self._schema, arrays))

    def _column(
        self,
        field: pa.Field[Any],
        old: pa.RecordBatch | None,
        batch: pa.RecordBatch,
        clauses: Int64Array,
    ) -> pa.Array[Any]:
        gives = np.array([field.name in each.columns for each in self._task.clauses], np.bool_)
        given = gives[clauses]
        if given.all():
            return batch.column(field.name)
        kept = pa.nulls(len(clauses), field.type) if old is None else old.column(field.name)
        if not given.any():
            return kept
        order = np.arange(len(clauses)) + np.where(given, len(clauses), 0)
        both = pa.concat_arrays([_plain(kept), _plain(batch.column(field.name))])
        return take(both, _numbers(order))

    def _complete(self) -> None:
        """Write the deletion file of the fragment whose rows have all come."""
        if self._going:
            fragment = self._fragments[FragmentId(self._owner)]
            rows = Rows(fragment, np.concatenate(self._going))
            self.removals.append(remove_rows(self._task.snapshot, rows))
        self._going = []


def _types_of(schema: pa.Schema, arrays: Sequence[pa.Array[Any]]) -> pa.Schema:
    """Return the schema with the types that arrays have; the writer makes dictionaries again."""
    pairs = zip(schema, arrays, strict=True)
    return pa.schema([field.with_type(array.type) for field, array in pairs])


def _plain(array: pa.Array[Any]) -> pa.Array[Any]:
    """Return values without a dictionary: two have two."""
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


def _mask(flags: Flags) -> pa.Array[Any]:
    packed = pa.py_buffer(np.packbits(flags, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(flags), [None, packed])


def _numbers(values: Int64Array) -> pa.Array[Any]:
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])
