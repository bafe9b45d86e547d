"""Columns whose values lie in a nested table of blobs (`pennon.table.blob_table`), found by row ids.

What reads a fragment of either table is given by `pennon.scan.read.fragment_reader`, which is built on this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.runs import run_starts
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
from pennon.scan.deletion_mask import LiveRows
from pennon.scan.snapshot import Key, Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field
from pennon.table.blob_table import FOLDER, blob_version
from pennon.table.fragment import Fragment
from pennon.table.versions import read_manifest

Numbers: TypeAlias = npt.NDArray[np.uint64]
_OFFSET_BITS = np.uint64(32)
_OFFSET = np.uint64(0xFFFFFFFF)
BLOB_TABLE: Final[Key[BlobTable]] = Key("blob table")
HAS_NESTED_TABLE: Final[Key[tuple[bool]]] = Key("has a nested table")


class Reader(Protocol):
    """Reads one fragment: `pennon.scan.read.fragment_reader.FragmentReader`."""

    def physical_rows(self) -> int:
        """Return the number of rows, deleted ones counted."""

    def live_rows(self) -> LiveRows:
        """Return which rows are alive."""

    def read(self, fields: Sequence[Field], rows: Rows) -> list[list[pa.Array[Any]]]:
        """Return the values of each field at the given physical rows."""


MakeReader: TypeAlias = Callable[[Snapshot, Fragment], Reader]


@dataclass(frozen=True, slots=True)
class BlobTable:
    """The nested table of one version, and where its rows lie: ids, ascending, and their addresses."""

    snapshot: Snapshot
    ids: Numbers
    addresses: Numbers

    @classmethod
    def of(cls, snapshot: Snapshot, reader: MakeReader) -> BlobTable:
        """Return the nested table of a version, opened now or before; it has one."""
        return snapshot.remember(BLOB_TABLE, lambda: cls._open(snapshot, reader))

    @classmethod
    def _open(cls, snapshot: Snapshot, reader: MakeReader) -> BlobTable:
        store = PrefixStore(snapshot.store, FOLDER)
        try:
            manifest = read_manifest(store, blob_version(snapshot.manifest))
            return cls._found(Snapshot(store, manifest, snapshot.session), reader)
        except LanceError as error:
            raise error.located(Breadcrumb(FOLDER)) from None

    @classmethod
    def _found(cls, nested: Snapshot, reader: MakeReader) -> BlobTable:
        ids, addresses = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
        for fragment in nested.manifest.fragments:
            rows = reader(nested, fragment)
            mine = nested.row_ids(fragment, rows.physical_rows())
            live = np.flatnonzero(~rows.live_rows().is_deleted(np.arange(len(mine))))
            ids.append(mine[live])
            addresses.append(live.astype(np.uint64) | (np.uint64(fragment.id) << _OFFSET_BITS))
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

    def read(self, field: Field, addresses: Numbers, reader: MakeReader) -> list[pa.Array[Any]]:
        """Return the values of rows at distinct addresses, in their order."""
        order = np.argsort(addresses, kind="stable")
        ascending = addresses[order]
        fragments = ascending >> _OFFSET_BITS
        starts = run_starts(fragments).nonzero()[0].tolist() if len(fragments) else []
        chunks: list[pa.Array[Any]] = []
        for start, end in zip(starts, [*starts[1:], len(fragments)], strict=True):
            fragment = self.snapshot.manifest.fragment(int(fragments[start]))
            if fragment is not None:
                offsets = (ascending[start:end] & _OFFSET).astype(np.int64)
                (values,) = reader(self.snapshot, fragment).read([field], Rows.at(offsets))
                chunks += values
        if not chunks:
            return [pa.nulls(0, field_to_arrow(field).type)]
        if (order[1:] > order[:-1]).all():
            return chunks
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return [pa.concat_arrays(chunks).take(pa.array(back))]


@dataclass(frozen=True, slots=True)
class StoredApart:
    """A field of a fragment whose values lie in the nested table."""

    field: Field
    snapshot: Snapshot
    fragment: Fragment
    reader: MakeReader

    def read(self, rows: Rows) -> list[pa.Array[Any]]:
        """Return the values at physical rows; raises FormatError if a live row has none."""
        table = BlobTable.of(self.snapshot, self.reader)
        numbers = rows.indices()
        mine = self.reader(self.snapshot, self.fragment)
        wanted = self.snapshot.row_ids(self.fragment, mine.physical_rows())[numbers]
        places = np.searchsorted(table.ids, wanted)
        there = places < len(table.ids)
        there[there] = table.ids[places[there]] == wanted[there]
        if not there.all():
            self._check_dead(mine, numbers[~there])
        addresses = table.addresses[places[there]]
        chunks = table.read(table.field(self.field), addresses, self.reader)
        return chunks if there.all() else [_spread(chunks, there)]

    def _check_dead(self, mine: Reader, missing: Int64Array) -> None:
        """Raise FormatError if one of these rows is alive."""
        if not mine.live_rows().is_deleted(missing).all():
            message = (
                f"a row of fragment {self.fragment.id} has no value of column {self.field.name!r} in the "
                "nested table of blobs"
            )
            raise FormatError(message, where=Breadcrumb(FOLDER, self.field.name))


def _spread(chunks: Sequence[pa.Array[Any]], there: np.ndarray) -> pa.Array[Any]:
    """Return values at the places that are marked, NULLs at the others."""
    whole = pa.concat_arrays(chunks)
    numbers = np.cumsum(there) - 1
    return whole.take(pa.array(numbers, mask=~there))


def find_apart(
    snapshot: Snapshot, fragment: Fragment, wanted: Field, reader: MakeReader
) -> StoredApart | None:
    """Return where a field of storage class blob lies; None if the table never had a nested table.

    Raises UnsupportedError if it has one, but the version does not say which version of it is its own: a
    release that does not know the nested table wrote this version, and its values would read as NULLs.
    """
    if blob_version(snapshot.manifest):
        return StoredApart(wanted, snapshot, fragment, reader)
    if snapshot.remember(HAS_NESTED_TABLE, lambda: (_has_nested(snapshot),))[0]:
        message = (
            f"version {snapshot.manifest.version} was written by a program that does not know the nested table of "
            f"blobs ({FOLDER}/), so values of column {wanted.name!r} cannot be found; read an older version, or "
            "the other columns"
        )
        raise UnsupportedError(message, where=Breadcrumb(FOLDER, wanted.name))
    return None


def _has_nested(snapshot: Snapshot) -> bool:
    """Return whether there is a nested table; a store that cannot be listed says that there is none."""
    try:
        return next(iter(snapshot.store.list_names(f"{FOLDER}/_versions")), None) is not None
    except (CannotListError, NotFoundError):
        return False
