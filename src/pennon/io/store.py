"""The store interface of Pennon: one small protocol per verb.

Every store is *rooted*: it is opened on the root of one dataset, and takes paths relative to it
(``data/x.lance``).  A path that would leave the root is refused (`pennon.io.paths.safe_join`).
Stores pickle, hold nothing that must survive a fork, and open what they need on first use.

A store answers a round of requests (`pennon.core.byte_ranges`) with as few and as concurrent accesses as it
can.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from datetime import datetime
from typing import Protocol, Self

import pyarrow as pa

from pennon.core.byte_ranges import ByteRequest
from pennon.core.fast_dataclass import dataclass
from pennon.io.limits import FetchLimits


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """A store's description of one object; ``path`` is relative to the store's root, the time is its clock's."""

    path: str
    size_bytes: int
    modified: datetime
    tag: str | None = None
    """The store's name for these bytes (an ETag): other bytes have another one.  None if it has none."""


class ObjectReader(Protocol):
    """One opened object (file)."""

    @property
    def path(self) -> str:
        """Return the path relative to the store's root."""

    @property
    def size_bytes(self) -> int:
        """Return the object's size."""

    @property
    def is_mapped(self) -> bool:
        """Tell whether a `ByteRange` costs no copy and no I/O of its own (memory, memory map)."""

    def read(self, requests: Sequence[ByteRequest]) -> list[pa.Buffer]:
        """Answer one round of requests, each with one buffer of exactly the bytes asked.

        Raises FormatError if a range lies outside the object, StoreError if the store fails.
        """


class ReaderAround:
    """An `ObjectReader` around another one, which answers all but ``read``."""

    __slots__ = ("_inner",)

    def __init__(self, inner: ObjectReader) -> None:
        self._inner = inner

    @property
    def path(self) -> str:
        """Return the path relative to the store's root."""
        return self._inner.path

    @property
    def size_bytes(self) -> int:
        """Return the object's size."""
        return self._inner.size_bytes

    @property
    def is_mapped(self) -> bool:
        """Return what the other reader says."""
        return self._inner.is_mapped


class ObjectWriter(Protocol):
    """A new object that is written front to back and appears when it is closed."""

    def write(self, data: pa.Buffer | bytes | memoryview) -> None:
        """Append bytes."""

    def tell(self) -> int:
        """Return how many bytes were written so far."""

    def close(self) -> None:
        """Make the object durable and visible."""

    def abort(self) -> None:
        """Give the object up; it never becomes visible under its name."""

    def __enter__(self) -> Self:
        """Return the writer."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the writer, or abort it when an exception is on its way."""


class Opens(Protocol):
    """Opens objects for reading."""

    def open(self, path: str, size_bytes: int | None = None) -> ObjectReader:
        """Open an object; ``size_bytes``, where known, saves a request.

        Raises NotFoundError if there is none.
        """

    def read_whole(self, path: str) -> pa.Buffer:
        """Return the bytes of an object whose size is not known, in one request.

        Raises NotFoundError if there is none.
        """

    def info(self, path: str) -> ObjectInfo:
        """Return what a listing says of an object, in one request.

        Raises NotFoundError if there is none.
        """

    def identity(self, path: str, size_bytes: int | None = None) -> Hashable:
        """Return what tells the bytes of an object from all others, without a request.

        Objects of one identity hold the same bytes; what is remembered of an object is kept under
        its identity.  Object stores go by the name and ``size_bytes``: names of data files hold a
        uuid.  Raises NotFoundError if there is no such object and that is known without a request.
        """


class Lists(Protocol):
    """Lists objects."""

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects under the folder ``prefix``, sorted by path; none is no error."""

    def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """Yield path and size of the objects under a folder, sorted by path.

        The size is None where each object would have to be asked for it.
        """

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Yield the paths of the folders directly below the folder ``prefix``, sorted; none is no error.

        What lies within them is not listed.  Object stores have folders that hold an object, and no
        others; a file system may have empty ones.
        """


class Writes(Protocol):
    """Writes objects under unique names (they hold a uuid)."""

    def open_writer(self, path: str) -> ObjectWriter:
        """Start a new object."""

    def put(self, path: str, data: bytes) -> None:
        """Write a small object whole, replacing what was there."""


class CreatesIfAbsent(Protocol):
    """The commit primitive: of all that race for one name, exactly one wins."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write an object whole and durably, unless the name is taken.

        Raises AlreadyExistsError if it is taken, UnsupportedError if the store has no such
        primitive, StoreError if it failed or did not answer (it may then have landed).
        """


class Deletes(Protocol):
    """Deletes objects; clean-up asks for it, and who made what no version names."""

    def delete(self, path: str) -> None:
        """Delete an object; none is no error."""


class Store(Opens, Lists, Writes, CreatesIfAbsent, Deletes, Protocol):
    """All verbs; functions ask for the ones that they need."""

    @property
    def uri(self) -> str:
        """Return the root as the user wrote it."""

    @property
    def limits(self) -> FetchLimits | None:
        """Return how the store likes to be asked, None where to read is no request."""
