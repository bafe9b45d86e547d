"""The change feed: the rows that each version of a table inserted, updated and deleted.

A version is compared with the one before it, fragment by fragment; only rows that differ are read::

    the fragment is       and                             its rows
    in both               its deletion file is another    were deleted; or came back (a restore)
    in both               fields lie in other files       were updated in place, where their values differ
    only before           no rewrite took it away         were deleted
    only behind           no rewrite made it              were inserted

In a table with stable row ids a row that went and came in one version is one row: it was updated, or only moved.
Without them it was deleted, and another inserted.  New and dropped columns are no change of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.cached_property import cached_property
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import MIB, DatasetVersion, FieldId
from pennon.errors import ArgumentError, UnsupportedError
from pennon.scan.changes.columns import ChangeType, change_columns
from pennon.scan.changes.fragment_change import FragmentChange, Moves
from pennon.scan.changes.values_differ import differing_rows
from pennon.scan.changes.version_rows import NO_ROWS, History, RowsById, VersionRows, showing
from pennon.scan.plan.query import ScanOptions, bind_query
from pennon.scan.read.tasks import OPEN_BYTES
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Field, Schema
from pennon.table.fragment import DataFileRef, Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import Append, Operation, Overwrite, Rewrite
from pennon.table.transaction_wire import find_transaction

_PART_BYTES = 256 * MIB
"""The bytes of the files that are read before the ids of rows that moved are dropped again."""

# --- the versions of a feed -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChangeFeed:
    """The changes of the versions after ``begin``, up to ``end``, shown with the columns of ``shown``.

    With ``begin`` 0 all rows of the first version were inserted.  ``net``: of a row that several versions changed only
    what came of it is told, as a change that ``end`` made.
    """

    snapshot: Snapshot
    begin: int
    end: int
    shown: Schema
    blobs_as_bytes: bool = False
    net: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the changes: all columns may be NULL, for old rows may not have them."""
        options = ScanOptions(blobs_as_bytes=self.blobs_as_bytes)
        stored = bind_query(showing(self.snapshot, self.shown), options).schema
        return pa.schema([*(each.with_nullable(True) for each in stored), *change_columns()])  # noqa: FBT003 - Arrow's own order

    def versions(self) -> Iterator[VersionChange]:
        """Yield the changes of each version that made any.

        Raises ArgumentError if the versions are not in order, NotFoundError for one that was cleaned up or never made,
        UnsupportedError for the net changes of a table without stable row ids, if a version moved rows.
        """
        if not 0 <= self.begin <= self.end:
            message = f"changes go from an older version to a newer one, not from {self.begin} to {self.end}"
            raise ArgumentError(message)
        history = History(self.snapshot, self.shown, blobs_as_bytes=self.blobs_as_bytes)
        if self.net:
            yield from self._net(history)
            return
        history.reads_up_to(self.end)
        before: Snapshot | None = None
        for version in map(DatasetVersion, range(max(self.begin, 1), self.end + 1)):
            after = history.version(version)
            if version > self.begin:
                change = VersionChange.between(before, after, history)
                if change.fragments:
                    yield change
            before = after

    def _net(self, history: History) -> Iterator[VersionChange]:
        """Yield what the last version differs in from the first one, if it does."""
        if self.begin == self.end:
            return
        after = history.version(DatasetVersion(self.end))
        before = history.version(DatasetVersion(self.begin)) if self.begin else None
        if not after.manifest.has_stable_row_ids:
            for number in range(self.begin + 1, self.end + 1):
                if isinstance(operation_of(history.version(DatasetVersion(number))), Rewrite):
                    message = (
                        f"version {number} moved rows (compaction or clustering), and the table has no stable row ids that "
                        f"tell them again: ask for the net changes up to {number - 1}, and for those after {number}"
                    )
                    raise UnsupportedError(message)
        old = None if before is None else before.manifest
        fragments = tuple(net_fragments(old, after.manifest))
        if fragments:
            yield VersionChange.of(before, after, fragments, history)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the changes, version by version; raises as `versions`."""
        schema = self.schema
        for version in self.versions():
            for part in version.parts(_PART_BYTES):
                for batch in part.batches():
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


class VersionChange:
    """The changes that one version made; ``before`` is None for the first one.  It pickles."""

    def __init__(
        self,
        before: VersionRows | None,
        after: VersionRows,
        fragments: tuple[FragmentChange, ...],
        others: tuple[FragmentChange, ...] | None = None,
    ) -> None:
        self.before = before
        self.after = after
        self.fragments = fragments
        """The fragments whose rows may differ."""
        self._others = fragments if others is None else others
        """The fragments to which rows of these may have moved, or from which they may have come."""

    @classmethod
    def between(cls, before: Snapshot | None, after: Snapshot, history: History) -> VersionChange:
        """Compare two versions that follow one another; no data file is opened."""
        return cls.of(before, after, tuple(_compared(before, after)), history)

    @classmethod
    def of(
        cls,
        before: Snapshot | None,
        after: Snapshot,
        fragments: tuple[FragmentChange, ...],
        history: History,
    ) -> VersionChange:
        """Return the changes of some fragments."""
        if not fragments:
            return cls(None, VersionRows(after, history.columns_of(after)), ())
        old = None if before is None else VersionRows(before, history.columns_of(before))
        return cls(old, VersionRows(after, history.columns_of(after)), fragments)

    def travelling(self) -> VersionChange:
        """Return the changes without the fragments of the two versions that do not differ."""
        before = None if self.before is None else self.before.travelling()
        return VersionChange(before, self.after.travelling(), self.fragments, self._others)

    def parts(
        self, most_bytes: int, fragments: tuple[FragmentChange, ...] | None = None
    ) -> Iterator[VersionChange]:
        """Yield the changes in parts that tasks read by themselves, each of at most ``most_bytes`` of files.

        A part has neighbouring fragments, and knows those that its rows may have moved to or come from.  ``fragments``
        are some of the fragments that differ, or None for all.
        """
        chosen = self.fragments if fragments is None else fragments
        travelling = self.travelling()
        moves = Moves(self.fragments) if self._has_ids else None
        for some in _packed(chosen, most_bytes):
            others = () if moves is None else moves.meeting(some)
            yield VersionChange(travelling.before, travelling.after, some, others)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the changes of the fragments, one fragment after the other."""
        for change in self.fragments:
            yield from self._batches(change)

    def _batches(self, change: FragmentChange) -> Iterator[pa.RecordBatch]:
        """Yield the changes of one fragment: rows that went, rows that came, rows updated in place."""
        kinds = ChangeType
        before, after = self.before, self.after
        went, came = self._went(change), self._came(change)
        if len(went) and before is not None and change.before is not None:
            rows = before.by_id(change.before, went) if len(self._came_by_id) else None
            alone, updated = _split(went, rows, self._came_by_id)
            yield from self._show(before, change.before, alone, kinds.DELETE)
            yield from self._show(before, change.before, updated, kinds.BEFORE_UPDATE)
        if len(came) and change.after is not None:
            rows = after.by_id(change.after, came) if len(self._went_by_id) else None
            alone, updated = _split(came, rows, self._went_by_id)
            yield from self._show(after, change.after, alone, kinds.INSERT)
            yield from self._show(after, change.after, updated, kinds.AFTER_UPDATE)
        if change.written and before is not None and change.before and change.after:
            in_place = self._updated_in_place(before, change)
            yield from self._show(before, change.before, in_place, kinds.BEFORE_UPDATE)
            yield from self._show(after, change.after, in_place, kinds.AFTER_UPDATE)

    def _show(
        self, side: VersionRows, fragment: Fragment, rows: Int64Array, kind: ChangeType
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of a fragment as changes."""
        manifest = self.after.manifest
        values: tuple[Any, ...] = (kind.value, manifest.version, manifest.timestamp)
        for batch in side.read(fragment, rows):
            added = [
                pa.repeat(pa.scalar(value, each.type), batch.num_rows)
                for value, each in zip(values, change_columns(), strict=True)
            ]
            schema = pa.schema([*batch.schema, *change_columns()])
            yield pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)

    # Rows by their places in a fragment, those that live

    def _went(self, change: FragmentChange) -> Int64Array:
        """Return the rows that lived before and do not behind the version."""
        if self.before is None or change.before is None:
            return NO_ROWS
        live = self.before.live(change.before)
        return live if change.after is None else _without(live, self.after.live(change.after))

    def _came(self, change: FragmentChange) -> Int64Array:
        """Return the rows that live behind the version and did not before."""
        if change.after is None:
            return NO_ROWS
        live = self.after.live(change.after)
        if self.before is None or change.before is None:
            return live
        return _without(live, self.before.live(change.before))

    def _updated_in_place(self, before: VersionRows, change: FragmentChange) -> Int64Array:
        """Return the rows that live in both, whose values in the fields that were written differ."""
        if change.before is None or change.after is None:
            return NO_ROWS
        rows = np.intersect1d(
            before.live(change.before), self.after.live(change.after), assume_unique=True
        )
        names = [each.name for each in before.manifest.schema.fields if each.id in change.written]
        old = before.read_columns(change.before, rows, names)
        new = self.after.read_columns(change.after, rows, names)
        is_other = np.zeros(len(rows), np.bool_)
        for name in names:
            is_other |= differing_rows(old[name], new[name])
        return rows[is_other]

    # Rows by their stable ids

    @cached_property
    def _has_ids(self) -> bool:
        before, after = self.before, self.after
        if before is None:
            return False
        return before.manifest.has_stable_row_ids and after.manifest.has_stable_row_ids

    @cached_property
    def _went_by_id(self) -> RowsById:
        """Return the rows that went from other fragments, and came to these."""
        if not self._has_ids or self.before is None:
            return RowsById.none()
        came = self.after.all_by_id(self._all_that_came(self.fragments))
        return self.before.all_by_id(self._all_that_went(self._others), came) if len(came) else came

    @cached_property
    def _came_by_id(self) -> RowsById:
        """Return the rows that came to other fragments, and went from these."""
        if not self._has_ids or self.before is None:
            return RowsById.none()
        went = self.before.all_by_id(self._all_that_went(self.fragments))
        return self.after.all_by_id(self._all_that_came(self._others), went) if len(went) else went

    def _all_that_went(self, changes: Iterable[FragmentChange]) -> Iterator[_FragmentRows]:
        return ((each.before, self._went(each)) for each in changes if each.before and each.loses)

    def _all_that_came(self, changes: Iterable[FragmentChange]) -> Iterator[_FragmentRows]:
        return ((each.after, self._came(each)) for each in changes if each.after and each.gains)


_FragmentRows: TypeAlias = tuple[Fragment, Int64Array]


def _split(
    rows: Int64Array, mine: RowsById | None, others: RowsById
) -> tuple[Int64Array, Int64Array]:
    """Return the rows whose ids are not among the others, which are sorted; and those that another version changed.

    ``mine`` are the rows by id; None if there are no others.
    """
    if mine is None:
        return rows, NO_ROWS
    at, is_there = others.find(mine.ids)
    return rows[~is_there], rows[is_there & (others.versions[at] != mine.versions)]


def _without(rows: Int64Array, others: Int64Array) -> Int64Array:
    return np.setdiff1d(rows, others, assume_unique=True)


def _packed(
    fragments: tuple[FragmentChange, ...], most_bytes: int
) -> Iterator[tuple[FragmentChange, ...]]:
    """Yield runs of neighbours whose files have no more bytes than ``most_bytes``, or one that has more."""
    some: list[FragmentChange] = []
    size = 0
    for each in fragments:
        cost = OPEN_BYTES + each.size_bytes
        if some and size + cost > most_bytes:
            yield tuple(some)
            some, size = [], 0
        some.append(each)
        size += cost
    if some:
        yield tuple(some)


# --- what differs ---------------------------------------------------------------------------------


def _compared(before: Snapshot | None, after: Snapshot) -> Iterator[FragmentChange]:
    """Yield the fragments whose rows may differ."""
    operation = operation_of(after)
    if isinstance(operation, Rewrite):
        return
    appended = appended_fragments(after.manifest, operation)
    if appended is not None:
        for each in appended:
            yield FragmentChange(None, each)
        return
    if before is None or isinstance(operation, Overwrite):
        for each in () if before is None else before.manifest.fragments:
            yield FragmentChange(each, None)
        for each in after.manifest.fragments:
            yield FragmentChange(None, each)
        return
    yield from _other_fragments(before.manifest, after.manifest)


def operation_of(snapshot: Snapshot) -> Operation | None:
    """Return the operation that made a version, None if the version does not say it; raises FormatError."""
    transaction = find_transaction(snapshot.store, snapshot.manifest)
    return None if transaction is None else transaction.operation


def appended_fragments(manifest: Manifest, operation: Operation | None) -> list[Fragment] | None:
    """Return the fragments that a version appended, which are its last ones; None if it did anything else."""
    if not isinstance(operation, Append):
        return None
    count = len(operation.fragments)
    last = list(manifest.fragments[len(manifest.fragments) - count :]) if count else []
    told = [[file.path for file in each.files] for each in operation.fragments]
    return last if told == [[file.path for file in each.files] for each in last] else None


def _other_fragments(before: Manifest, after: Manifest) -> Iterator[FragmentChange]:
    """Yield the fragments that are not the same in both versions."""
    old = {each.id: each for each in before.fragments}
    known = {(each.id, each.name) for each in before.schema.fields}
    fields = [each for each in after.schema.fields if (each.id, each.name) in known]
    for fragment in after.fragments:
        same = old.pop(fragment.id, None)
        if same is None:
            yield FragmentChange(None, fragment)
            continue
        written = frozenset(_written(fields, same.files, fragment.files))
        if written or same.deletion_file != fragment.deletion_file:
            yield FragmentChange(same, fragment, written)
    for fragment in old.values():
        yield FragmentChange(fragment, None)


def net_fragments(before: Manifest | None, after: Manifest) -> Iterator[FragmentChange]:
    """Yield the fragments that differ in two versions that may be far apart.

    An overwrite gives ids anew: a fragment is the same if it has a file that it had.
    """
    if before is None:
        yield from (FragmentChange(None, each) for each in after.fragments)
        return
    old = {each.id: {file.path for file in each.files} for each in before.fragments}
    for change in _other_fragments(before, after):
        one, other = change.before, change.after
        if one is None or other is None or any(file.path in old[one.id] for file in other.files):
            yield change
        else:
            yield from (FragmentChange(one, None), FragmentChange(None, other))


def _written(
    fields: Iterable[Field], before: tuple[DataFileRef, ...], after: tuple[DataFileRef, ...]
) -> Iterator[FieldId]:
    """Yield the ids of fields that lie in other files in one of the lists, or have a part that does."""
    if before == after:
        return
    old, new = _places(before), _places(after)
    for field in fields:
        if any(old.get(each.id) != new.get(each.id) for each in field.walk()):
            yield field.id


_Places: TypeAlias = dict[FieldId, tuple[int | None, str]]


def _places(files: tuple[DataFileRef, ...]) -> _Places:
    """Return the data file that has each field."""
    return {id_: (file.base_id, file.path) for file in files for id_ in file.field_ids if id_ >= 0}
