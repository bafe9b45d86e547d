"""A store in this process's memory, for tests and for temporary tables.

``memory://name`` is the same store wherever it is opened in one process.  It does not travel: in
another process the same name is another, empty store.  What it holds lives as long as the process,
or until it is deleted.

Each verb is one operation on a dict, which Python does in one piece, so there is no lock that a
fork could leave taken.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field
from datetime import UTC, datetime
from itertools import count
from typing import TypeAlias

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange
from pennon.core.fast_dataclass import dataclass
from pennon.errors import AlreadyExistsError, Breadcrumb, NotFoundError
from pennon.io.mapped import MappedReader
from pennon.io.paths import check_path, check_prefix, folders_of, safe_join
from pennon.io.store import ObjectInfo
from pennon.io.writer_base import Ending


@dataclass(frozen=True, slots=True)
class _Stored:
    data: bytes
    modified: datetime
    number: int = field(default_factory=count().__next__)


_Objects: TypeAlias = dict[str, _Stored]
_STORES: dict[str, _Objects] = {}


def _stored(data: bytes) -> _Stored:
    return _Stored(bytes(data), datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """A `Store` below the folder ``root`` of the memory that is called ``name``."""

    name: str = ""
    root: str = ""

    @property
    def uri(self) -> str:
        """Return the URI that opens this store again in this process."""
        return f"memory://{self.name}" + (f"/{self.root}" if self.root else "")

    @property
    def limits(self) -> None:
        """Return None: nothing here is a request."""

    def open(self, path: str, size_bytes: int | None = None) -> MappedReader:  # noqa: ARG002
        """Open an object; later changes of the store do not reach the reader."""
        found = self._find(path)
        identity = path, found.number
        return MappedReader(self, path, pa.py_buffer(found.data), identity=identity)

    def open_all(self, paths: Sequence[str]) -> list[MappedReader | None]:
        """Open many objects; None for one that is not there."""
        return [
            self.open(path) if safe_join(self.root, path) in self._objects else None
            for path in paths
        ]

    def read_whole(self, path: str) -> pa.Buffer:
        """Return the bytes of an object."""
        reader = self.open(path)
        (data,) = reader.read([ByteRange(0, reader.size_bytes)])
        return data

    def info(self, path: str) -> ObjectInfo:
        """Return size and time of an object."""
        found = self._find(path)
        return ObjectInfo(path, len(found.data), found.modified)

    def identity(self, path: str, size_bytes: int | None = None) -> Hashable:  # noqa: ARG002
        """Return the number of the object: every one that is put has a number of its own."""
        return path, self._find(path).number

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects under a folder, sorted by path."""
        folder = check_prefix(prefix)
        below = safe_join(self.root, folder) if folder else self.root
        start = below + "/" if below else ""
        cut = len(self.root) + 1 if self.root else 0
        for path, found in sorted(self._objects.copy().items()):
            if path.startswith(start):
                yield ObjectInfo(path[cut:], len(found.data), found.modified)

    def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """Yield path and size of the objects under a folder, sorted by path."""
        return ((info.path, info.size_bytes) for info in self.list(prefix))

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Yield the folders directly below a folder, sorted."""
        folder = check_prefix(prefix)
        return folders_of((info.path for info in self.list(folder)), folder)

    def open_writer(self, path: str) -> MemoryWriter:
        """Start a new object."""
        return MemoryWriter(self, check_path(path))

    def put(self, path: str, data: bytes) -> None:
        """Write an object, replacing what was there."""
        self._objects[safe_join(self.root, path)] = _stored(data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write an object, unless the name is taken."""
        mine = _stored(data)
        if self._objects.setdefault(safe_join(self.root, path), mine) is not mine:
            message = "the name is taken"
            raise AlreadyExistsError(message, where=Breadcrumb(path))

    def delete(self, path: str) -> None:
        """Delete an object; none is no error."""
        self._objects.pop(safe_join(self.root, path), None)

    def _find(self, path: str) -> _Stored:
        found = self._objects.get(safe_join(self.root, path))
        if found is None:
            message = "there is no such object"
            raise NotFoundError(message, where=Breadcrumb(path))
        return found

    @property
    def _objects(self) -> _Objects:
        return _STORES.setdefault(self.name, {})


class MemoryWriter(Ending):
    """An `ObjectWriter` for memory."""

    def __init__(self, store: MemoryStore, path: str) -> None:
        self._store = store
        self._path = path
        self._bytes: bytearray | None = bytearray()
        self._size = 0

    def write(self, data: pa.Buffer | bytes | memoryview) -> None:
        """Append bytes."""
        if self._bytes is None:
            message = "the writer is closed"
            raise ValueError(message)
        view = memoryview(data).cast("B")
        self._bytes += view
        self._size += len(view)

    def tell(self) -> int:
        """Return how many bytes were written so far."""
        return self._size

    def close(self) -> None:
        """Put the object under its name; closing twice is fine."""
        whole, self._bytes = self._bytes, None
        if whole is not None:
            self._store.put(self._path, bytes(whole))

    def abort(self) -> None:
        """Forget what was written."""
        self._bytes = None
