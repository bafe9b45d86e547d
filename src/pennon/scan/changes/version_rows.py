"""The rows of one version of a table, as a change feed shows them: with the columns of a newer version."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.cached_property import cached_property
from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_pools import map_all
from pennon.core.units import DatasetVersion, FieldId
from pennon.encoding.exact_batches import exact_batches
from pennon.errors import NotFoundError, SchemaMismatchError
from pennon.scan.changes.row_versions import ROW_ID, UPDATED
from pennon.scan.deletion_mask import LiveRows
from pennon.scan.plan.query import ScanOptions, batch_rows, bind_query
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import ChosenRows, ScanTask
from pennon.scan.run.filter import read_filtered_batches
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field, Schema
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.naming import Naming
from pennon.table.versions import (
    find_location,
    latest_location,
    list_locations,
    read_manifest_at,
    unlisted_location,
)

_MOST_VERSIONS: Final = 4
"""The number of manifests that are kept, beside those read ahead: a feed compares each version with the one before it."""
_AHEAD: Final = 8
"""The number of small manifests that are read ahead, side by side, from a remote store."""
_LARGE: Final = 10_000
"""Fragments of a manifest that is large: it has some 100 bytes for each."""
NO_ROWS: Final[Int64Array] = np.empty(0, np.int64)


class History:
    """The versions of a table, and which columns of them are those that are shown."""

    def __init__(self, snapshot: Snapshot, shown: Schema, *, blobs_as_bytes: bool = False) -> None:
        self._snapshot = snapshot
        self.shown = shown
        self.blobs_as_bytes = blobs_as_bytes
        self._unknown: dict[FieldId, DatasetVersion] = {}
        self._lately: OrderedDict[DatasetVersion, Snapshot] = OrderedDict()
        self._last_wanted = 0

    def reads_up_to(self, last: int) -> None:
        """Say that the versions up to ``last`` are asked for in their order, so that some may be read ahead."""
        self._last_wanted = last

    def version(self, number: DatasetVersion) -> Snapshot:
        """Return a version, by one request; raises NotFoundError if it is not there."""
        found = self._lately.get(number)
        if found is None:
            found = self._snapshot.at(self._read(number))
            self._keep(number, found)
            if self._snapshot.is_remote and len(found.manifest.fragments) <= _LARGE:
                self._read_ahead(number)
        return found

    def _keep(self, number: DatasetVersion, snapshot: Snapshot) -> None:
        self._lately[number] = snapshot
        if len(self._lately) > _MOST_VERSIONS + _AHEAD:
            self._lately.popitem(last=False)

    def _read_ahead(self, number: DatasetVersion) -> None:
        """Read the versions behind one, side by side; one that is not there is missed when it is asked for."""
        last = min(number + _AHEAD, self._last_wanted)
        numbers = list(map(DatasetVersion, range(number + 1, last + 1)))
        numbers = [each for each in numbers if each not in self._lately]
        manifests = map_all(self._read_if_any, numbers, self._snapshot.pool_spec)
        for each, manifest in zip(numbers, manifests, strict=True):
            if manifest is not None:
                self._keep(each, self._snapshot.at(manifest))

    def _read_if_any(self, number: DatasetVersion) -> Manifest | None:
        try:
            return self._read(number)
        except NotFoundError:
            return None

    def _read(self, number: DatasetVersion) -> Manifest:
        if number == self._snapshot.manifest.version:
            return self._snapshot.manifest
        store = self._snapshot.store
        try:
            try:
                return read_manifest_at(store, unlisted_location(self._naming, number))
            except NotFoundError:  # of the other scheme, while a migration goes on
                return read_manifest_at(store, find_location(store, number))
        except NotFoundError as error:
            message = f"version {number} of {store.uri!r} does not exist; was it cleaned up?"
            raise NotFoundError(message) from error

    @cached_property
    def _naming(self) -> Naming:
        """Return the scheme that the newest version is named by."""
        return latest_location(self._snapshot.store).naming

    def columns_of(self, snapshot: Snapshot) -> ShownColumns:
        """Return how a version is shown.

        A column that got another type has another id and its old name, or the same id after an overwrite.
        """
        manifest = snapshot.manifest
        own = {each.name: each for each in manifest.schema.fields}
        last = max(manifest.schema.max_field_id(), self.shown.max_field_id())
        unused = map(FieldId, count(last + 1))
        fields: list[Field] = []
        casts: list[pa.DataType | None] = []
        for field in self.shown.fields:
            is_same = self._has_same(manifest, field)
            known = None if is_same else own.get(field.name)
            casts.append(None if known is None else field_to_arrow(field).type)
            if is_same:
                fields.append(field)
            else:  # of ids that no file has, NULLs are read
                fields.append(field.renumbered(unused) if known is None else known)
        fitted = Schema(tuple(fields), self.shown.metadata)
        return ShownColumns(tuple(self.shown.names), fitted, tuple(casts), self.blobs_as_bytes)

    def _has_same(self, manifest: Manifest, shown: Field) -> bool:
        """Tell whether a version has the shown column itself: its field id, with the same type.

        If the names differ it was renamed; or it was dropped, and its id was given to another one since.
        """
        mine = next((each for each in manifest.schema.fields if each.id == shown.id), None)
        if mine is None or not _is_alike(mine, shown):
            return False
        return mine.name == shown.name or manifest.version > self._last_without(shown.id)

    def _last_without(self, field_id: FieldId) -> DatasetVersion:
        """Return the newest version that has no column of an id; 0 if there is none."""
        found = self._unknown.get(field_id)
        if found is None:
            found = DatasetVersion(0)
            versions = [each.version for each in list_locations(self._snapshot.store)]
            for number in reversed(versions):
                if number > self._snapshot.manifest.version:
                    continue
                schema = self.version(number).manifest.schema
                if all(each.id != field_id for each in schema.walk()):
                    found = number
                    break
            self._unknown[field_id] = found
        return found


@dataclass(frozen=True, slots=True, eq=False)
class RowsById:
    """Stable ids of rows, and the version that last changed each row."""

    ids: Int64Array
    versions: Int64Array

    @classmethod
    def none(cls) -> RowsById:
        """Return no rows."""
        return cls(NO_ROWS, NO_ROWS)

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(cls, parts: Sequence[RowsById]) -> RowsById:
        """Return the rows of all parts, in the order of their ids."""
        if not parts:
            return cls.none()
        ids = np.concatenate([each.ids for each in parts])
        order = np.argsort(ids)
        versions = np.concatenate([each.versions for each in parts])
        return cls(ids[order], versions[order])

    def find(self, ids: Int64Array) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
        """Return where each id is among these rows, which are sorted; and whether it is there."""
        if not len(self):
            return np.zeros(len(ids), np.int64), np.zeros(len(ids), np.bool_)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self) - 1)
        return at, self.ids[at] == ids

    def among(self, others: RowsById) -> RowsById:
        """Return the rows whose ids other rows, which are sorted, have too."""
        _, is_there = others.find(self.ids)
        return RowsById(self.ids[is_there], self.versions[is_there])


@dataclass(frozen=True, slots=True)
class ShownColumns:
    """The columns under which a version is shown: what is read for each, and the type if it is another one."""

    names: tuple[str, ...]
    read: Schema
    casts: tuple[pa.DataType | None, ...]
    blobs_as_bytes: bool

    def options(self) -> ScanOptions:
        """Return the options of the scan that reads them."""
        return ScanOptions(blobs_as_bytes=self.blobs_as_bytes)


@dataclass(frozen=True, slots=True)
class VersionRows:
    """The rows of one version, shown with the columns of another; it pickles."""

    snapshot: Snapshot
    columns: ShownColumns

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of the version."""
        return self.snapshot.manifest

    def travelling(self) -> VersionRows:
        """Return the rows without the list of fragments, which go with the tasks that read them."""
        snapshot = self.snapshot
        bare = Snapshot(snapshot.store, replace(snapshot.manifest, fragments=()))
        return VersionRows(bare, self.columns)

    def live(self, fragment: Fragment) -> Int64Array:
        """Return the places of the rows that live."""
        rows = self._live_rows(fragment)
        return rows.to_physical(np.arange(rows.count))

    def _live_rows(self, fragment: Fragment) -> LiveRows:
        physical_rows = FragmentReader(self.snapshot, fragment).physical_rows()
        return LiveRows.of(physical_rows, self.snapshot.deleted(fragment))

    def by_id(self, fragment: Fragment, rows: Int64Array) -> RowsById:
        """Return rows of a fragment by their stable ids, in their order."""
        columns = self.read_columns(fragment, rows, [ROW_ID, UPDATED])
        ids, versions = (np.asarray(each, np.int64) for each in columns.columns)
        return RowsById(ids, versions)

    def all_by_id(
        self, rows: Iterable[tuple[Fragment, Int64Array]], among: RowsById | None = None
    ) -> RowsById:
        """Return rows of some fragments, sorted by their ids; with ``among`` only those that are there, too.

        One fragment at a time is read, so no more than the result and a fragment's ids are held.
        """
        found = (self.by_id(fragment, places) for fragment, places in rows if len(places))
        return RowsById.of([each if among is None else each.among(among) for each in found])

    def read_columns(self, fragment: Fragment, rows: Int64Array, names: list[str]) -> pa.Table:
        """Return columns of this version for rows of a fragment."""
        query = bind_query(self.snapshot, ScanOptions(tuple(names)))
        batches = self._read(self.snapshot, ScanOptions(tuple(names)), fragment, rows)
        return pa.Table.from_batches(batches, query.schema)

    def read(self, fragment: Fragment, rows: Int64Array) -> Iterator[pa.RecordBatch]:
        """Yield rows with the columns that are shown: NULL where this version has no such column."""
        if not len(rows):
            return
        shown = self.columns
        snapshot = showing(self.snapshot, shown.read)
        for batch in exact_batches(self._read(snapshot, shown.options(), fragment, rows)):
            columns = [
                self._cast(name, column, target)
                for name, column, target in zip(
                    shown.names, batch.columns, shown.casts, strict=True
                )
            ]
            pairs = zip(shown.names, columns, strict=True)
            schema = pa.schema([pa.field(name, column.type) for name, column in pairs])
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _cast(self, name: str, column: pa.Array[Any], target: pa.DataType | None) -> pa.Array[Any]:
        if target is None:
            return column
        try:
            return column.cast(target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = str(error)
        message = (
            f"column {name!r} had another type at version {self.manifest.version}, and its "
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


def _is_alike(one: Field, other: Field) -> bool:
    """Tell whether two fields have the same type; children that only one of them has do not count."""
    if one.logical_type != other.logical_type:
        return False
    known = {each.id: each for each in one.children}
    pairs = [(known[each.id], each) for each in other.children if each.id in known]
    return all(_is_alike(first, second) for first, second in pairs)


def showing(snapshot: Snapshot, schema: Schema) -> Snapshot:
    """Return a version as if it had the columns of ``schema``: those without values read as NULLs."""
    return snapshot.at(replace(snapshot.manifest, schema=schema, fields_wire=None))
