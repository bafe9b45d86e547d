"""One version of a table, ready to be read: its store, its manifest, and the files opened so far.

Opening a data file costs a request or two, and parsing its metadata takes time, so opened files are
kept, least recently used out first.  They are kept per process: after a fork a child starts with
none, because a connection or a lock of the parent is of no use to it.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar
from weakref import ref

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_pools import WORK, PoolSpec
from pennon.errors import Breadcrumb, FormatError, LanceError, NotFoundError, StoreError
from pennon.index.files import IndexFiles, Remember, remembering
from pennon.io.mapped import MappedReader, open_all
from pennon.io.store import ObjectReader, Store
from pennon.scan.deletion_mask import NONE_DELETED
from pennon.scan.session import OpenFile as OpenFile
from pennon.scan.session import Session as Session
from pennon.schema.blob import describe_blobs, has_blobs
from pennon.schema.field import Schema
from pennon.schema.version import V0_1
from pennon.table.deletion import read_deletions
from pennon.table.fragment import DataFileRef, ExternalFile, Fragment, Sequence
from pennon.table.indices import Index
from pennon.table.manifest import Manifest
from pennon.table.mem_wal import warn_of_unmerged_rows
from pennon.table.row_ids import RowIds
from pennon.table.row_ids.decode_wire import decode_row_ids, decode_row_versions, read_sequence
from pennon.table.storage_version import storage_version

if TYPE_CHECKING:
    from pennon.scan.metrics import Meter

T = TypeVar("T")
_Lately: TypeAlias = OrderedDict[Hashable, Any]
MOST_KNOWN: Final = 256
"""A condition on columns that have indices takes two: itself, and what the indices are asked."""
MOST_PLANS: Final = 16
MOST_TAKES: Final = 16
MOST_RUNS: Final = 256


class Key(Generic[T]):
    """A kind of value that a snapshot remembers; it stands beside what makes the value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        """Take a name for people: keys of one name are two."""
        self.name = name

    def __repr__(self) -> str:
        return f"Key({self.name!r})"


class Same:
    """An object as a part of a key: equal to itself alone, and alive as long as the key."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)


SHOWN_SCHEMA: Final[Key[Schema]] = Key("shown schema")
INDEX_PARTS: Final[Key[Remember]] = Key("index parts")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a table.  It pickles; the other side starts with an empty session."""

    store: Store
    manifest: Manifest
    session: Session = field(default_factory=Session, compare=False)
    _identities: dict[str, Hashable] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Of the files touched so far, by path.  A version's files are what they were at first sight."""
    _known: _Lately = field(default_factory=OrderedDict, init=False, repr=False, compare=False)
    """What `remember` was asked for lately."""
    _plans: _Lately = field(default_factory=OrderedDict, init=False, repr=False, compare=False)
    """What `remember_plan` was asked for lately."""
    _takes: _Lately = field(default_factory=OrderedDict, init=False, repr=False, compare=False)
    """What `remember_take` was asked for lately."""
    _runs: _Lately = field(default_factory=OrderedDict, init=False, repr=False, compare=False)
    """What `remember_run` was asked for lately."""
    meter: Meter | None = field(default=None, compare=False)
    """Counts what is read of data files."""

    def __post_init__(self) -> None:
        """Find the base paths of versions that have some; warn of rows that lie beside the table."""
        manifest = self.manifest
        if manifest.indices:
            warn_of_unmerged_rows(self.store, manifest.indices)
        if manifest.base_paths or manifest.branch is not None:
            from pennon.table.base_paths import place_store  # noqa: PLC0415 - saves 10 ms for most tables

            object.__setattr__(self, "store", place_store(self.store, manifest))

    def __reduce__(self) -> tuple[type[Snapshot], tuple[Store, Manifest, Session]]:
        """Pickle without the identities: the other side may see other files."""
        return Snapshot, (self.store, self.manifest, self.session)

    def metered(self, meter: Meter) -> Snapshot:
        """Return the same version, read under the eyes of a meter."""
        return Snapshot(self.store, self.manifest, self.session, meter)

    def at(self, manifest: Manifest) -> Snapshot:
        """Return another version of the same table, or branch; what is remembered of files is shared."""
        return Snapshot(self.store, manifest, self.session)

    def apart(self) -> Snapshot:
        """Return the same version, which remembers plans of its own; what is known of files is shared."""
        other = self.at(self.manifest)
        object.__setattr__(other, "_identities", self._identities)
        return other

    @property
    def shown_schema(self) -> Schema:
        """Return the schema that scans show: blob columns as their descriptions.

        Files of version 0.1 have none: there the bytes lie among the rows, as pylance leaves them.
        """
        return self.remember(SHOWN_SCHEMA, self._describe_schema)

    def _describe_schema(self) -> Schema:
        schema = self.manifest.schema
        if not has_blobs(schema) or storage_version(self.manifest) == V0_1:
            return schema
        return describe_blobs(schema)

    @property
    def is_remote(self) -> bool:
        """Return whether the store is remote: a read waits for its answers."""
        return self.store.limits is not None

    @property
    def pool_spec(self) -> PoolSpec:
        """Return the threads that read fragments, or pieces of them, side by side.

        They are as many as the requests that a remote store gets at once, so that no fragment waits
        for another.
        """
        limits = self.store.limits
        return WORK if limits is None else PoolSpec.reads(limits.concurrency)

    def remember(self, key: Key[T], make: Callable[[], T], *about: Hashable) -> T:
        """Return what ``make`` gives for a key, made now or lately: parsed filters, projections.

        ``about`` is all that the value depends on beside the version.
        """
        return _made_lately(self._known, MOST_KNOWN, (key, *about), make)

    def recall(self, key: Key[T], *about: Hashable) -> T | None:
        """Return what `remember` made for a key lately; None if it made nothing."""
        found: T | None = self._known.get((key, *about))
        return found

    def remember_plan(self, key: Key[T], make: Callable[[], T], *about: Hashable) -> T:
        """Return a plan that holds open files, made now or lately by this process: a child of a fork makes its own."""
        return _made_lately(self._plans, MOST_PLANS, (os.getpid(), key, *about), make)

    def remember_take(self, key: Key[T], make: Callable[[], T], *about: Hashable) -> T:
        """Return the plan of a take (`pennon.scan.plan.take_plan`), as `remember_plan` does that of a scan."""
        return _made_lately(self._takes, MOST_TAKES, (os.getpid(), key, *about), make)

    def remember_run(self, key: Key[T], make: Callable[[], T], *about: Hashable) -> T:
        """Return what is known of neighbouring fragments (`pennon.scan.read.fragment_run`), as `remember_plan` does a plan."""
        return _made_lately(self._runs, MOST_RUNS, (os.getpid(), key, *about), make)

    def open_file(self, ref: DataFileRef) -> OpenFile:
        """Return the data file, opened now or before.

        Raises NotFoundError if it is not there, UnsupportedError if its version is not read.
        """
        path = ref.store_path
        try:
            size = ref.size_bytes or None
            found = _opened(self.store, self._identities, self.session, path, size)
            if self.manifest.dictionaries:
                found.data.table_dictionaries = self.manifest.dictionaries
            return self._counted(found)
        except FormatError as error:
            if size is None or not ref.has_page_table:
                raise error.located(Breadcrumb(path)) from None
            # pylance 1.0.4 states a wrong size for files of version 0.1
            self._identities.pop(path, None)
            return self.open_file(replace(ref, size_bytes=None))
        except LanceError as error:
            raise error.located(Breadcrumb(path)) from None

    def map_files(self, refs: Iterable[DataFileRef]) -> list[MappedReader | None]:
        """Return the bytes of data files, not looked at; None for one that cannot be mapped: `open_file` says why."""
        known = self._identities
        paths = [ref.store_path for ref in refs]
        seen = [path for path in paths if path in known]
        maps = self.session.maps_of([known[path] for path in seen])
        found = {path: source for path, source in zip(seen, maps, strict=True) if source}
        missing = [path for path in paths if path not in found]
        for path, source in zip(missing, open_all(self.store, missing), strict=True):
            if source is None or source.identity is None:
                continue
            if known.setdefault(path, source.identity) == source.identity:
                found[path] = source
                self.session.keep_mapped(source)
        return [found.get(path) for path in paths]

    def open_index_file(self, path: str, size_bytes: int | None = None) -> OpenFile:
        """Return a file of an index, opened now or before; raises as `open_file` does."""
        return _open_index_file(self.store, self._identities, self.session, path, size_bytes)

    def index_files(self, index: Index, remember: Remember) -> IndexFiles:
        """Return the files of an index segment; makes no request if its entry has their sizes.

        They do not keep the session alive, which remembers them: it would hold itself, and all that it has mapped.
        """
        sizes = {f"{index.folder}/{each.path}": each.size_bytes for each in index.files}
        store, known, session = self.store, self._identities, ref(self.session)

        def open_file(path: str) -> OpenFile:
            size_bytes = sizes.get(path) or None
            files = session() or Session()
            try:
                return _open_index_file(store, known, files, path, size_bytes)
            except NotFoundError as error:
                if index.base_id is None:
                    raise
                own = f"{index.own_folder}/{path.removeprefix(f'{index.folder}/')}"
                try:
                    return _open_index_file(store, known, files, own, size_bytes)
                except NotFoundError:
                    raise error from None

        limits = store.limits
        pool_spec = None if limits is None else PoolSpec.objects(limits.concurrency)
        parts = self.session.known_index_parts
        return IndexFiles(index.folder, open_file, remember, store.open, pool_spec, parts)

    @property
    def index_parts(self) -> Remember:
        """Return what remembers parts of indices; a meter that watches counts them, and may have them read anew."""
        return self.remember(INDEX_PARTS, lambda: remembering(self.session.index_parts))

    def deleted(self, fragment: Fragment) -> Int64Array:
        """Return the physical offsets of the fragment's deleted rows, sorted and distinct."""
        deletion = fragment.deletion_file
        if deletion is None:
            return NONE_DELETED
        file = _identify(self.store, self._identities, deletion.store_path(fragment.id))
        key = (file, fragment.physical_rows, deletion.num_deleted_rows)
        return self.session.deletions(key, lambda: self._read_deletions(fragment))

    def row_ids(self, fragment: Fragment, physical_rows: int) -> RowIds:
        """Return the stable id of each physical row of a fragment."""
        sequence = fragment.row_ids
        if sequence is None:
            message = f"fragment {fragment.id} has no row ids, though the table's rows have"
            raise FormatError(message)
        file = (
            _identify(self.store, self._identities, sequence.path)
            if isinstance(sequence, ExternalFile)
            else None
        )
        return self.session.row_ids(
            (sequence, file, physical_rows),
            lambda: decode_row_ids(read_sequence(self.store, sequence), physical_rows),
        )

    def row_versions(self, sequence: Sequence, physical_rows: int) -> RowIds:
        """Return the table's version that a sequence gives each physical row of a fragment."""
        file = (
            _identify(self.store, self._identities, sequence.path)
            if isinstance(sequence, ExternalFile)
            else None
        )
        return self.session.row_ids(
            ("versions", sequence, file, physical_rows),
            lambda: decode_row_versions(read_sequence(self.store, sequence), physical_rows),
        )

    def _counted(self, opened: OpenFile) -> OpenFile:
        """Return a file whose reads a meter counts, if there is one."""
        return opened if self.meter is None else self.meter.around(opened)

    def _read_deletions(self, fragment: Fragment) -> Int64Array:
        return np.asarray(read_deletions(self.store, fragment), np.int64)


def _made_lately(known: _Lately, most: int, key: Hashable, make: Callable[[], T]) -> T:
    """Return what is known of a key, or is made now; of more than so many keys, the one not asked for longest goes.

    Threads may ask at once: one that comes while another makes a value may make it, too, and both get the first.
    """
    found: T | None = known.get(key)
    if found is None:
        found = known.setdefault(key, make())
        while len(known) > most:
            known.popitem(last=False)
        return found
    try:  # noqa: SIM105 - `suppress` would cost more than all else here
        known.move_to_end(key)
    except KeyError:  # another thread let it go between the two
        pass
    return found


# --- files, by their paths and what tells them from others ----------------------------------------

_Identities: TypeAlias = dict[str, Hashable]


def _open_index_file(
    store: Store, known: _Identities, session: Session, path: str, size_bytes: int | None
) -> OpenFile:
    try:
        return _opened(store, known, session, path, size_bytes)
    except FormatError:
        if size_bytes is None:
            raise
        known.pop(path, None)  # the size may be wrong that its entry says
        return _opened(store, known, session, path, None)


def _opened(
    store: Store, known: _Identities, session: Session, path: str, size_bytes: int | None
) -> OpenFile:
    identity = _identify(store, known, path, size_bytes)
    return session.open_file(
        identity,
        lambda: session.mapped.get(identity) or _open(store, known, path, size_bytes, identity),
    )


def _open(
    store: Store, known: _Identities, path: str, size_bytes: int | None, identity: Hashable
) -> ObjectReader:
    """Open the file of that identity.  Raises StoreError if another has its name by now."""
    source = store.open(path, size_bytes)
    opened = source.identity if isinstance(source, MappedReader) else None
    if identity != opened and identity != store.identity(path, size_bytes):
        known.pop(path, None)
        message = "another program replaced this file, which never changes"
        raise StoreError(message)
    return source


def _identify(
    store: Store, known: _Identities, path: str, size_bytes: int | None = None
) -> Hashable:
    identity = known.get(path)
    if identity is None:
        identity = known[path] = store.identity(path, size_bytes)
    return identity
