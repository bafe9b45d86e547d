"""Columns whose values lie in a nested table of blobs (`pennon.table.blob_table`), found by row ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.rows import Rows
from pennon.errors import (
    Breadcrumb,
    CannotListError,
    FormatError,
    LanceError,
    NotFoundError,
    UnsupportedError,
)
from pennon.io.prefix_store import PrefixStore
from pennon.scan.columns import UInt64Array, row_addresses
from pennon.scan.fragment_reader import Chunks, FragmentReader
from pennon.scan.snapshot import Snapshot
from pennon.scan.take import take_addresses, take_batches
from pennon.scan.take_plan import plan_take
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field
from pennon.schema.project import quoted
from pennon.table.blob_table import FOLDER, blob_version
from pennon.table.fragment import Fragment
from pennon.table.versions import read_manifest


@dataclass(frozen=True, slots=True)
class BlobTable:
    """The nested table of one version, and where its rows lie: ids, ascending, and their addresses."""

    snapshot: Snapshot
    ids: UInt64Array
    addresses: UInt64Array

    @classmethod
    def of(cls, snapshot: Snapshot) -> BlobTable:
        """Return the nested table of a version, opened now or before; it has one."""
        return snapshot.remember("blob table", lambda: cls._open(snapshot))

    @classmethod
    def _open(cls, snapshot: Snapshot) -> BlobTable:
        store = PrefixStore(snapshot.store, FOLDER)
        try:
            manifest = read_manifest(store, blob_version(snapshot.manifest))
            return cls._found(Snapshot(store, manifest, snapshot.session))
        except LanceError as error:
            raise error.located(Breadcrumb(FOLDER)) from None

    @classmethod
    def _found(cls, nested: Snapshot) -> BlobTable:
        ids, addresses = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
        for fragment in nested.manifest.fragments:
            reader = FragmentReader(nested, fragment)
            mine = nested.row_ids(fragment, reader.physical_rows())
            live = np.flatnonzero(~reader.live_rows().is_deleted(np.arange(len(mine))))
            ids.append(mine[live])
            addresses.append(row_addresses(fragment.id, live))
        known = np.concatenate(ids)
        order = np.argsort(known, kind="stable")
        return cls(nested, known[order], np.concatenate(addresses)[order])

    def field(self, wanted: Field) -> Field:
        """Return the field of that id in the nested table; raises FormatError if it is another one."""
        found = next((f for f in self.snapshot.shown_schema.fields if f.id == wanted.id), None)
        if found is None or field_to_arrow(found).type != field_to_arrow(wanted).type:
            message = (
                f"the nested table has no column {wanted.name!r} of type {wanted.logical_type}"
            )
            raise FormatError(message, where=Breadcrumb(FOLDER, wanted.name))
        return found


@dataclass(frozen=True, slots=True)
class StoredApart:
    """A field of a fragment whose values lie in the nested table."""

    field: Field
    snapshot: Snapshot
    fragment: Fragment

    def read(self, rows: Rows) -> Chunks:
        """Return the values at physical rows; raises FormatError if a live row has none."""
        table = BlobTable.of(self.snapshot)
        numbers = rows.indices()
        wanted = self._row_ids()[numbers]
        places = np.searchsorted(table.ids, wanted)
        there = places < len(table.ids)
        there[there] = table.ids[places[there]] == wanted[there]
        if not there.all():
            self._check_dead(numbers[~there])
        name = quoted(table.field(self.field).name)
        plan = plan_take(table.snapshot, {self.field.name: name})
        batches = take_batches(
            lambda chosen: take_addresses(table.snapshot, plan, chosen),
            table.addresses[places[there]],
        )
        chunks: Chunks = [batch.column(0) for batch in batches]
        return chunks if there.all() else [_spread(chunks, there)]

    def _row_ids(self) -> UInt64Array:
        reader = FragmentReader(self.snapshot, self.fragment)
        return self.snapshot.row_ids(self.fragment, reader.physical_rows())

    def _check_dead(self, missing: Int64Array) -> None:
        """Raise FormatError if one of these rows is alive."""
        live = FragmentReader(self.snapshot, self.fragment).live_rows()
        if not live.is_deleted(missing).all():
            message = (
                f"a row of fragment {self.fragment.id} has no value of column {self.field.name!r} in the "
                "nested table of blobs"
            )
            raise FormatError(message, where=Breadcrumb(FOLDER, self.field.name))


def _spread(chunks: Chunks, there: np.ndarray) -> pa.Array[Any]:
    """Return values at the places that are marked, NULLs at the others."""
    whole = pa.concat_arrays(chunks)
    numbers = np.cumsum(there) - 1
    return whole.take(pa.array(numbers, mask=~there))


def find_apart(snapshot: Snapshot, fragment: Fragment, wanted: Field) -> StoredApart | None:
    """Return where a field of storage class blob lies; None if the table never had a nested table.

    Raises UnsupportedError if it has one, but the version does not say which version of it is its own: a
    release that does not know the nested table wrote this version, and its values would read as NULLs.
    """
    if blob_version(snapshot.manifest):
        return StoredApart(wanted, snapshot, fragment)
    if snapshot.remember("has a nested table", lambda: (_has_nested(snapshot),))[0]:
        message = (
            f"version {snapshot.manifest.version} was written by a program that does not know the nested table of "
            f"blobs ({FOLDER}/), so values of column {wanted.name!r} cannot be found; read an older version, or "
            "the other columns"
        )
        raise UnsupportedError(message, where=Breadcrumb(FOLDER, wanted.name))
    return None


def _has_nested(snapshot: Snapshot) -> bool:
    """Tell whether there is a nested table; a store that cannot be listed says that there is none."""
    try:
        return next(iter(snapshot.store.list_names(f"{FOLDER}/_versions")), None) is not None
    except (CannotListError, NotFoundError):
        return False
