"""A folder of a store as a store of its own: a branch of a table lies in one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.io.limits import FetchLimits
from pennon.io.paths import check_path, child_uri
from pennon.io.store import ObjectInfo, ObjectReader, ObjectWriter, Store


@dataclass(frozen=True, slots=True)
class BelowStore:
    """The store whose root is ``folder`` below the root of another one."""

    above: Store
    folder: str

    def __post_init__(self) -> None:
        check_path(self.folder)

    @property
    def uri(self) -> str:
        """Return the folder's URI."""
        return child_uri(self.above.uri, self.folder)

    @property
    def limits(self) -> FetchLimits | None:
        """Return how the store above likes to be asked."""
        return self.above.limits

    def open(self, path: str, size_bytes: int | None = None) -> ObjectReader:
        """Open an object."""
        return self.above.open(self._path(path), size_bytes)

    def read_whole(self, path: str) -> pa.Buffer:
        """Return the bytes of an object."""
        return self.above.read_whole(self._path(path))

    def identity(self, path: str, size_bytes: int | None = None) -> Hashable:
        """Return what tells the bytes of an object from all others."""
        return self.above.identity(self._path(path), size_bytes)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects under a folder, sorted by path."""
        for info in self.above.list(self._folder(prefix)):
            yield replace(info, path=self._relative(info.path))

    def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """Yield path and size of the objects under a folder, sorted by path."""
        for path, size_bytes in self.above.list_names(self._folder(prefix)):
            yield self._relative(path), size_bytes

    def open_writer(self, path: str) -> ObjectWriter:
        """Start a new object."""
        return self.above.open_writer(self._path(path))

    def put(self, path: str, data: bytes) -> None:
        """Write a small object whole."""
        self.above.put(self._path(path), data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write an object whole and durably, unless the name is taken."""
        self.above.put_if_absent(self._path(path), data)

    def delete(self, path: str) -> None:
        """Delete an object."""
        self.above.delete(self._path(path))

    def _path(self, path: str) -> str:
        return f"{self.folder}/{check_path(path)}"

    def _folder(self, prefix: str) -> str:
        return f"{self.folder}/{prefix}" if prefix else self.folder

    def _relative(self, path: str) -> str:
        return path.removeprefix(f"{self.folder}/")
