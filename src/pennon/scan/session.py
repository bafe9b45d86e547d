"""The shared state of a session's datasets: opened files, learned sizes, deleted rows.

Everything lies in one memory that is bounded in bytes (`pennon.core.cache`).  Its keys hold the identity
of the file that a value comes from (`pennon.io.store.Opens.identity`), so datasets, versions and
fragments with the same file share its entries, and a file with other contents has none, even if it
has the name of one that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar, Unpack
from weakref import WeakValueDictionary, ref

from pennon.compat.arguments import refuse
from pennon.compat.option_types import NotSupportedYet
from pennon.core.byte_ranges import Int64Array
from pennon.core.cache import Cache
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import KIB, MIB
from pennon.errors import ArgumentError
from pennon.file.container.opened_file import OpenedFile
from pennon.file.open import open_data_file
from pennon.io.mapped import MappedReader
from pennon.io.store import ObjectReader
from pennon.table.row_ids import RowIds

if TYPE_CHECKING:
    from pennon.index.files import Parts, Remember

T = TypeVar("T")

DEFAULT_BYTES: Final = 256 * MIB
DEFAULT_INDEX_BYTES: Final = 512 * MIB
FILE_BYTES: Final = 64 * KIB
"""An open file is reckoned at this much at the least: maps are limited in number, too."""


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A data file and the object that its bytes come from."""

    data: OpenedFile
    source: ObjectReader


class Session:
    """A cache of files and indices, which datasets may share; pylance's ``Session``.

    ``metadata_cache_size_bytes`` bounds what is remembered of files (256 MiB), 0 remembers nothing.
    ``index_cache_size_bytes`` bounds what is remembered of indices (512 MiB).

    A pickled session arrives empty, with the same bounds.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> session = pennon.Session(metadata_cache_size_bytes=64 << 20)
    >>> ds = pennon.dataset(uri, session=session)
    >>> ds.session().is_same_as(session)
    True
    """

    __slots__ = ("__weakref__", "_index_bytes", "_indices", "_memory", "mapped")

    def __init__(
        self,
        index_cache_size_bytes: int | None = None,
        metadata_cache_size_bytes: int | None = None,
        **unsupported: Unpack[NotSupportedYet],
    ) -> None:
        refuse(unsupported, Session.__init__)
        self._index_bytes = _bound("index_cache_size_bytes", index_cache_size_bytes)
        most_bytes = _bound("metadata_cache_size_bytes", metadata_cache_size_bytes)
        self._memory = Cache(DEFAULT_BYTES if most_bytes is None else most_bytes)
        index_bytes = DEFAULT_INDEX_BYTES if self._index_bytes is None else self._index_bytes
        self._indices = Cache(index_bytes)
        self.mapped: WeakValueDictionary[Hashable, MappedReader] = WeakValueDictionary()
        """The maps that runs of fragments hold, by identity, so that no file is mapped twice."""

    def size_bytes(self) -> int:
        """Return how much memory the session takes."""
        return self._metadata_bytes + self._indices.size_bytes

    def index_cache_size_bytes(self) -> int:
        """Return how much of it are indices of tables."""
        return self._indices.size_bytes

    @property
    def index_cache_entries(self) -> int:
        """Return the number of parts of indices that are remembered."""
        return len(self._indices)

    @property
    def index_cache_hit_rate(self) -> float:
        """Return the share of questions for parts of indices that memory answered; 0 before the first."""
        return self._indices.hit_rate

    def approx_num_items(self) -> int:
        """Return the number of entries: files, pages, deleted rows of fragments, row ids, indices."""
        return len(self._memory) + len(self._indices) + len(self.mapped)

    def is_same_as(self, other: object) -> bool:
        """Tell whether both are the same memory."""
        if not isinstance(other, Session):
            message = f"a Session is compared with a Session, got {type(other).__name__}"
            raise TypeError(message)
        return self is other

    def __repr__(self) -> str:
        """Return how much memory each part takes, as pylance shows it."""
        return (
            f"Session(index_cache_size_bytes={self.index_cache_size_bytes()},"
            f" metadata_cache_size_bytes={self._metadata_bytes})"
        )

    @property
    def _metadata_bytes(self) -> int:
        return self._memory.size_bytes + FILE_BYTES * len(self.mapped)

    def __copy__(self) -> Session:
        """Return the session itself."""
        return self

    def __reduce__(self) -> tuple[type[Session], tuple[int | None, int]]:
        """Pickle as an empty session."""
        return Session, (self._index_bytes, self._memory.most_bytes)

    # What snapshots ask for

    def keep_mapped(self, source: MappedReader) -> None:
        """Note a file that a run of fragments has mapped; a session that remembers nothing does not."""
        if self._memory.most_bytes:
            self.mapped[source.identity] = source

    def maps_of(self, identities: Sequence[Hashable]) -> list[MappedReader | None]:
        """Return the maps of files that are there, of runs or of files that are open; None for others."""
        opened = self._memory.get_each([("file", each) for each in identities])
        sources = [None if each is None else each.source for each in opened]
        return [
            source if isinstance(source, MappedReader) else self.mapped.get(identity)
            for identity, source in zip(identities, sources, strict=True)
        ]

    def open_file(self, identity: Hashable, source: Callable[[], ObjectReader]) -> OpenFile:
        """Return the data file of that identity, opened from ``source()`` if it is not known."""

        def open_now() -> OpenFile:
            data = open_data_file(source(), self._memory, identity)
            return OpenFile(data, data.source)

        return self._memory.get_or_make(("file", identity), open_now, _file_bytes)

    def deletions(self, identity: Hashable, read: Callable[[], Int64Array]) -> Int64Array:
        """Return the rows that a deletion file of that identity names."""
        return self._memory.get_or_make(("deletions", identity), read, _array_bytes)

    def row_ids(self, key: Hashable, read: Callable[[], RowIds]) -> RowIds:
        """Return the row ids of a fragment; ``key`` has all that they depend on."""
        return self._memory.get_or_make(("row ids", key), read, _array_bytes)

    @property
    def index_parts(self) -> Remember:
        """Return what remembers parts of indices, by a key that has all that one depends on.

        It does not keep the session alive: parts hold it.  When there is none, they are made whenever they are asked for.
        """
        memory = ref(self._indices)

        def remember(key: Hashable, make: Callable[[], T], weigh: Callable[[T], int]) -> T:
            alive = memory()
            return make() if alive is None else alive.get_or_make(key, make, weigh)

        return remember

    @property
    def known_index_parts(self) -> Callable[[], Parts | None]:
        """Return where `index_parts` keeps parts; as that, it does not keep the session alive."""
        return ref(self._indices)


def session_of(session: object, index_bytes: int | None, metadata_bytes: int | None) -> Session:
    """Return the session that is given, or a new one with these bounds.  Raises TypeError."""
    if session is None:
        return Session(index_bytes, metadata_bytes)
    if not isinstance(session, Session):
        message = f"session is a Session, got {type(session).__name__}"
        raise TypeError(message)
    return session


def _bound(name: str, size_bytes: object) -> int | None:
    if size_bytes is None:
        return None
    if not isinstance(size_bytes, int):
        message = f"{name} is a number of bytes, got {type(size_bytes).__name__}"
        raise TypeError(message)
    if size_bytes < 0:
        message = f"{name} is a number of bytes, got {size_bytes}"
        raise ArgumentError(message)
    return size_bytes


def _file_bytes(file: OpenFile) -> int:
    return max(file.data.memory_bytes, FILE_BYTES)


def _array_bytes(array: Int64Array | RowIds) -> int:
    return array.nbytes
