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

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from itertools import count
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.cached_property import cached_property
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import DatasetVersion, FieldId
from pennon.encoding.exact_batches import exact_batches
from pennon.errors import ArgumentError, NotFoundError, SchemaMismatchError
from pennon.scan.deletion_mask import LiveRows
from pennon.scan.plan.query import ScanOptions, batch_rows, bind_query
from pennon.scan.projection import MetaColumn
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import ChosenRows, ScanTask
from pennon.scan.run.filter import read_filtered_batches
from pennon.scan.snapshot import Snapshot
from pennon.scan.values_differ import differing_rows
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field, Schema
from pennon.table.fragment import DataFileRef, Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import Overwrite, Rewrite
from pennon.table.transaction_wire import find_transaction
from pennon.table.versions import list_locations, read_manifest_at

CHANGE_TYPE: Final = "_change_type"
COMMIT_VERSION: Final = "_commit_version"
COMMIT_TIMESTAMP: Final = "_commit_timestamp"
_ROW_ID: Final = MetaColumn.ROW_ID.value
_UPDATED: Final = MetaColumn.UPDATED_AT.value
_NO_ROWS: Final[Int64Array] = np.empty(0, np.int64)


class ChangeType(Enum):
    """The kind of a change; an update is two rows, as it was before and as it is behind the version."""

    INSERT = "insert"
    BEFORE_UPDATE = "update_preimage"
    AFTER_UPDATE = "update_postimage"
    DELETE = "delete"


def change_columns() -> list[pa.Field]:
    """Return the columns that a change has beside those of its row."""
    return [
        pa.field(CHANGE_TYPE, pa.string(), nullable=False),
        pa.field(COMMIT_VERSION, pa.int64(), nullable=False),
        pa.field(COMMIT_TIMESTAMP, pa.timestamp("us", "UTC"), nullable=False),
    ]


# --- the versions of a feed -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChangeFeed:
    """The changes of the versions after ``begin``, up to ``end``, shown with the columns of ``shown``.

    With ``begin`` 0 all rows of the first version were inserted.
    """

    snapshot: Snapshot
    begin: int
    end: int
    shown: Schema

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the changes: all columns may be NULL, for old rows may not have them."""
        stored = bind_query(_showing(self.snapshot, self.shown), ScanOptions()).schema
        return pa.schema([*(each.with_nullable(True) for each in stored), *change_columns()])  # noqa: FBT003 - Arrow's own order

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the changes, version by version; raises as `version_changes`."""
        schema = self.schema
        for version in version_changes(self.snapshot, self.begin, self.end, self.shown):
            for change in version.fragments:
                for batch in version.batches(change):
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _showing(snapshot: Snapshot, schema: Schema) -> Snapshot:
    """Return a version as if it had the columns of ``schema``: those without values read as NULLs."""
    return snapshot.at(replace(snapshot.manifest, schema=schema, fields_wire=None))


def version_changes(
    snapshot: Snapshot, begin: int, end: int, shown: Schema
) -> Iterator[VersionChange]:
    """Yield the changes of each version after ``begin``, up to ``end``, shown with the columns of ``shown``.

    These are columns of ``snapshot``.  Raises ArgumentError if the versions are not in order, NotFoundError for one
    that was cleaned up or never made.
    """
    if not 0 <= begin <= end:
        message = f"changes go from an older version to a newer one, not from {begin} to {end}"
        raise ArgumentError(message)
    history = _History(snapshot, shown)
    before: Snapshot | None = None
    for version in map(DatasetVersion, range(max(begin, 1), end + 1)):
        after = history.version(version)
        if version > begin:
            yield VersionChange(before, after, history)
        before = after


class _History:
    """The versions of a table, and which columns of them are those that are shown."""

    def __init__(self, snapshot: Snapshot, shown: Schema) -> None:
        self._snapshot = snapshot
        self._locations = {each.version: each for each in list_locations(snapshot.store)}
        self.shown = shown
        self._unknown: dict[FieldId, DatasetVersion] = {}

    def version(self, number: DatasetVersion) -> Snapshot:
        """Return a version; raises NotFoundError if it is not there."""
        location = self._locations.get(number)
        if location is None:
            uri = self._snapshot.store.uri
            message = f"version {number} of {uri!r} does not exist; was it cleaned up?"
            raise NotFoundError(message)
        return self._snapshot.at(read_manifest_at(self._snapshot.store, location))

    def is_same_column(self, number: DatasetVersion, mine: Field, shown: Field) -> bool:
        """Tell whether a column of a version, which has the id of a shown one, is that column.

        If the names differ it was renamed; or it was dropped, and the id was given to another one since.
        """
        return mine.name == shown.name or number > self._last_without(shown.id)

    def _last_without(self, field_id: FieldId) -> DatasetVersion:
        """Return the newest version of which no column has an id; 0 if there is none."""
        found = self._unknown.get(field_id)
        if found is None:
            found = DatasetVersion(0)
            for number in sorted(self._locations, reverse=True):
                if number > self._snapshot.manifest.version:
                    continue
                schema = self.version(number).manifest.schema
                if all(each.id != field_id for each in schema.walk()):
                    found = number
                    break
            self._unknown[field_id] = found
        return found


@dataclass(frozen=True, slots=True)
class FragmentChange:
    """A fragment that differs in two versions; None where a version does not have it.

    ``written`` are the fields of both versions that lie elsewhere now.
    """

    before: Fragment | None
    after: Fragment | None
    written: frozenset[FieldId] = frozenset()


class VersionChange:
    """The changes that one version made; ``before`` is None for the first one."""

    def __init__(self, before: Snapshot | None, after: Snapshot, history: _History) -> None:
        """Compare two versions that follow one another; no file is opened."""
        self.after = _Side(after, history)
        self.before = None if before is None else _Side(before, history)

    @cached_property
    def fragments(self) -> tuple[FragmentChange, ...]:
        """Return the fragments whose rows may differ."""
        after = self.after.snapshot
        transaction = find_transaction(after.store, after.manifest)
        operation = None if transaction is None else transaction.operation
        if isinstance(operation, Rewrite):
            return ()
        if self.before is None or isinstance(operation, Overwrite):
            gone = () if self.before is None else self.before.manifest.fragments
            return (
                *(FragmentChange(each, None) for each in gone),
                *(FragmentChange(None, each) for each in after.manifest.fragments),
            )
        return tuple(_compared(self.before.manifest, after.manifest))

    def batches(self, change: FragmentChange) -> Iterator[pa.RecordBatch]:
        """Yield the changes of one fragment: rows that went, rows that came, rows updated in place."""
        kinds = ChangeType
        if change.before is not None and self.before is not None:
            went = self._went(change)
            again = self._is_in(self.before, change.before, went, self._came_ids)
            yield from self._show(self.before, change.before, went[~again], kinds.DELETE)
            moved = self._changed(self.before, change.before, went[again], self._came_versions)
            yield from self._show(self.before, change.before, moved, kinds.BEFORE_UPDATE)
        if change.after is not None:
            came = self._came(change)
            again = self._is_in(self.after, change.after, came, self._went_ids)
            yield from self._show(self.after, change.after, came[~again], kinds.INSERT)
            moved = self._changed(self.after, change.after, came[again], self._went_versions)
            yield from self._show(self.after, change.after, moved, kinds.AFTER_UPDATE)
        if change.written and self.before is not None and change.before and change.after:
            rows = self._updated_in_place(self.before, change)
            yield from self._show(self.before, change.before, rows, kinds.BEFORE_UPDATE)
            yield from self._show(self.after, change.after, rows, kinds.AFTER_UPDATE)

    def _show(
        self, side: _Side, fragment: Fragment, rows: Int64Array, kind: ChangeType
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
            return _NO_ROWS
        live = self.before.live(change.before)
        return live if change.after is None else _without(live, self.after.live(change.after))

    def _came(self, change: FragmentChange) -> Int64Array:
        """Return the rows that live behind the version and did not before."""
        if change.after is None:
            return _NO_ROWS
        live = self.after.live(change.after)
        if self.before is None or change.before is None:
            return live
        return _without(live, self.before.live(change.before))

    def _updated_in_place(self, before: _Side, change: FragmentChange) -> Int64Array:
        """Return the rows that live in both, whose values in the fields that were written differ."""
        if change.before is None or change.after is None:
            return _NO_ROWS
        rows = np.intersect1d(
            before.live(change.before), self.after.live(change.after), assume_unique=True
        )
        names = [each.name for each in before.schema.fields if each.id in change.written]
        old = before.read_columns(change.before, rows, names)
        new = self.after.read_columns(change.after, rows, names)
        is_other = np.zeros(len(rows), np.bool_)
        for name in names:
            is_other |= differing_rows(old[name], new[name])
        return rows[is_other]

    # Rows by their stable ids

    @cached_property
    def _has_ids(self) -> bool:
        sides = [each for each in (self.before, self.after) if each is not None]
        return len(sides) == 2 and all(each.manifest.has_stable_row_ids for each in sides)

    @cached_property
    def _went_versions(self) -> Mapping[int, int]:
        """Return the version that last changed each row that went, by its id."""
        if (
            not self._has_ids
            or self.before is None
            or not any(each.after for each in self.fragments)
        ):
            return {}
        pairs = [(each.before, self._went(each)) for each in self.fragments if each.before]
        return self.before.versions_by_id(pairs)

    @cached_property
    def _came_versions(self) -> Mapping[int, int]:
        """Return the same for each row that came."""
        if not self._has_ids or not any(each.before for each in self.fragments):
            return {}
        pairs = [(each.after, self._came(each)) for each in self.fragments if each.after]
        return self.after.versions_by_id(pairs)

    @property
    def _went_ids(self) -> Int64Array:
        return _ids_of(self._went_versions)

    @property
    def _came_ids(self) -> Int64Array:
        return _ids_of(self._came_versions)

    def _is_in(
        self, side: _Side, fragment: Fragment, rows: Int64Array, others: Int64Array
    ) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which rows have the id of one of the others."""
        if not len(others) or not len(rows):
            return np.zeros(len(rows), np.bool_)
        return np.isin(side.ids(fragment, rows), others)

    def _changed(
        self, side: _Side, fragment: Fragment, rows: Int64Array, others: Mapping[int, int]
    ) -> Int64Array:
        """Return those of the rows that another version changed last than their namesakes among the others."""
        if not len(rows):
            return rows
        mine = side.versions_by_id([(fragment, rows)])
        ids = side.ids(fragment, rows).tolist()
        return rows[np.array([mine[each] != others[each] for each in ids], np.bool_)]


def _ids_of(versions: Mapping[int, int]) -> Int64Array:
    return np.fromiter(versions, np.int64, len(versions))


def _without(rows: Int64Array, others: Int64Array) -> Int64Array:
    return np.setdiff1d(rows, others, assume_unique=True)


# --- what differs ---------------------------------------------------------------------------------


def _compared(before: Manifest, after: Manifest) -> Iterator[FragmentChange]:
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


def _written(
    fields: Iterable[Field], before: tuple[DataFileRef, ...], after: tuple[DataFileRef, ...]
) -> Iterator[FieldId]:
    """Yield the ids of fields of which a part lies elsewhere in one of the lists of files."""
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


def _is_alike(one: Field, other: Field) -> bool:
    """Tell whether two fields have one type, but for children that only one of them has."""
    if one.logical_type != other.logical_type:
        return False
    known = {each.id: each for each in one.children}
    pairs = [(known[each.id], each) for each in other.children if each.id in known]
    return all(_is_alike(first, second) for first, second in pairs)


# --- rows of one version --------------------------------------------------------------------------


class _Side:
    """One of two versions that are compared; its rows are shown with the columns of the newest one."""

    def __init__(self, snapshot: Snapshot, history: _History) -> None:
        self.snapshot = snapshot
        self.manifest = snapshot.manifest
        self.schema = self.manifest.schema
        self._history = history
        self._shown = history.shown

    def live(self, fragment: Fragment) -> Int64Array:
        """Return the places of the rows that live."""
        rows = self._live_rows(fragment)
        return rows.to_physical(np.arange(rows.count))

    def _live_rows(self, fragment: Fragment) -> LiveRows:
        physical_rows = FragmentReader(self.snapshot, fragment).physical_rows()
        return LiveRows.of(physical_rows, self.snapshot.deleted(fragment))

    def ids(self, fragment: Fragment, rows: Int64Array) -> Int64Array:
        """Return the stable ids of rows."""
        physical_rows = FragmentReader(self.snapshot, fragment).physical_rows()
        return np.asarray(self.snapshot.row_ids(fragment, physical_rows)[rows], np.int64)

    def versions_by_id(self, rows: Iterable[tuple[Fragment, Int64Array]]) -> dict[int, int]:
        """Return the version that last changed each row, by its id."""
        found: dict[int, int] = {}
        for fragment, places in rows:
            columns = self.read_columns(fragment, places, [_ROW_ID, _UPDATED])
            found.update(
                zip(columns[_ROW_ID].to_pylist(), columns[_UPDATED].to_pylist(), strict=True)
            )
        return found

    def read_columns(self, fragment: Fragment, rows: Int64Array, names: list[str]) -> pa.Table:
        """Return columns of this version for rows of a fragment."""
        query = bind_query(self.snapshot, ScanOptions(tuple(names)))
        batches = self._read(self.snapshot, ScanOptions(tuple(names)), fragment, rows)
        return pa.Table.from_batches(batches, query.schema)

    def read(self, fragment: Fragment, rows: Int64Array) -> Iterator[pa.RecordBatch]:
        """Yield rows with the columns that are shown: NULL where this version has no such column."""
        if not len(rows):
            return
        schema, casts = self._fitted
        snapshot = _showing(self.snapshot, schema)
        for batch in exact_batches(self._read(snapshot, ScanOptions(), fragment, rows)):
            columns = [
                self._cast(number, column, target)
                for number, (column, target) in enumerate(zip(batch.columns, casts, strict=True))
            ]
            names = self._shown.names
            fields = [
                pa.field(name, column.type) for name, column in zip(names, columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    @cached_property
    def _fitted(self) -> tuple[Schema, list[pa.DataType | None]]:
        """Return the fields to read for those shown, and the type of each that has to be cast.

        A column that got another type has another id and its old name, or the same id after an overwrite.
        """
        own = {each.name: each for each in self.schema.fields}
        unused = map(
            FieldId, count(max(self.schema.max_field_id(), self._shown.max_field_id()) + 1)
        )
        fields: list[Field] = []
        casts: list[pa.DataType | None] = []
        for field in self._shown.fields:
            same = self._same(field)
            known = own.get(field.name) if same is None else None
            casts.append(None if known is None else field_to_arrow(field).type)
            if same is None and known is None:  # no file has it: NULLs are read
                fields.append(field.renumbered(unused))
            else:
                fields.append(field if known is None else known)
        return Schema(tuple(fields), self._shown.metadata), casts

    def _same(self, shown: Field) -> Field | None:
        """Return the column that is a shown one, and has its type."""
        mine = next((each for each in self.schema.fields if each.id == shown.id), None)
        if mine is None or not _is_alike(mine, shown):
            return None
        version = self.manifest.version
        return mine if self._history.is_same_column(version, mine, shown) else None

    def _cast(
        self, number: int, column: pa.Array[Any], target: pa.DataType | None
    ) -> pa.Array[Any]:
        if target is None:
            return column
        try:
            return column.cast(target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = str(error)
        message = (
            f"column {self._shown.names[number]!r} had another type at version {self.manifest.version}, and its "
            f"values do not fit the type that it has now: {reason}; read the changes up to and from there apart"
        )
        raise SchemaMismatchError(message)

    def _read(
        self, snapshot: Snapshot, options: ScanOptions, fragment: Fragment, rows: Int64Array
    ) -> Iterator[pa.RecordBatch]:
        query = bind_query(snapshot, options)
        offsets = self._live_rows(fragment).to_live(rows)
        task = ScanTask(fragment, 0, len(offsets), ChosenRows(offsets, pass_all=True))
        query = replace(query, scan=replace(query.scan, tasks=(task,)))
        return read_filtered_batches(query, batch_rows(query, options))
