"""One version of a table, ready to be read: its store, its manifest, and the files opened so far.

Opening a data file costs a request or two, and parsing its metadata takes time, so opened files are
kept, least recently used out first.  They are kept per process: after a fork a child starts with
none, because a connection or a lock of the parent is of no use to it.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from pennon.errors import Breadcrumb, FormatError, LanceError, UnsupportedError
from pennon.file.reader import DataFile
from pennon.io.store import ObjectReader, Store
from pennon.ranges import Int64Array
from pennon.scan.live_rows import NONE_DELETED
from pennon.table.deletion import read_deletions
from pennon.table.manifest import DataFileRef, Fragment, Manifest, Sequence
from pennon.table.rowids import RowIds, decode_row_ids, read_sequence

K = TypeVar("K")
V = TypeVar("V")

MAX_OPEN_FILES = 1024
MAX_DELETION_VECTORS = 1024
MAX_ROW_ID_SEQUENCES = 256


class Cache(Generic[K, V]):
    """A bounded map that is empty after a fork; safe to use from threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the entry, made now if there is none.

        Two threads may make it at once; the first to finish is kept.  No lock is held while one
        is made, because that is when the store is read.
        """
        if os.getpid() != self._process:
            self._start()
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        made = make()
        with self._lock:
            kept = self._entries.setdefault(key, made)
            self._entries.move_to_end(key)
            while len(self._entries) > self._limit:
                self._entries.popitem(last=False)
        return kept


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A data file and the object that its bytes come from."""

    data: DataFile
    source: ObjectReader


@dataclass(frozen=True, slots=True)
class Session:
    """What all versions of one table may share: data and deletion files never change."""

    files: Cache[str, OpenFile] = field(default_factory=lambda: Cache(MAX_OPEN_FILES))
    deletions: Cache[str, Int64Array] = field(default_factory=lambda: Cache(MAX_DELETION_VECTORS))
    row_ids: Cache[Sequence, RowIds] = field(default_factory=lambda: Cache(MAX_ROW_ID_SEQUENCES))

    def __reduce__(self) -> tuple[type[Session], tuple[()]]:
        """Pickle as an empty session."""
        return Session, ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a table.  It pickles; the other side starts with an empty session."""

    store: Store
    manifest: Manifest
    session: Session = field(default_factory=Session, compare=False)

    def open_file(self, ref: DataFileRef) -> OpenFile:
        """Return the data file, opened now or before.

        Raises NotFoundError if it is not there, UnsupportedError if its version is not read.
        """
        return self.session.files.get(ref.path, lambda: self._open(ref))

    def _open(self, ref: DataFileRef) -> OpenFile:
        path = ref.store_path
        try:
            if ref.base_id is not None:
                message = "the data file lies under another base path, which is not read yet"
                raise UnsupportedError(message)
            source = self.store.open(path, ref.size_bytes or None)
            return OpenFile(DataFile.open(source), source)
        except LanceError as error:
            raise error.located(Breadcrumb(path)) from None

    def deleted(self, fragment: Fragment) -> Int64Array:
        """Return the physical offsets of the fragment's deleted rows, sorted and distinct."""
        if fragment.deletion_file is None:
            return NONE_DELETED
        key = f"{fragment.id}/{fragment.deletion_file!r}"
        return self.session.deletions.get(key, lambda: self._read_deletions(fragment))

    def row_ids(self, fragment: Fragment, physical_rows: int) -> RowIds:
        """Return the stable id of each physical row of a fragment."""
        sequence = fragment.row_ids
        if sequence is None:
            message = f"fragment {fragment.id} has no row ids, though the table's rows have"
            raise FormatError(message)
        return self.session.row_ids.get(
            sequence, lambda: decode_row_ids(read_sequence(self.store, sequence), physical_rows)
        )

    def _read_deletions(self, fragment: Fragment) -> Int64Array:
        return np.unique(np.asarray(read_deletions(self.store, fragment), np.int64))
